/** The addon, which these tests are about: without it they fail rather than pass unseen. */
import assert from 'node:assert/strict';
import {
  loadNativeAddon,
  type NativeAddon,
  nativeAddonProblem,
} from '../../providers/softroce/port/native-addon.js';

export function nativeAddon(): NativeAddon {
  const addon = loadNativeAddon();
  assert.ok(addon, nativeAddonProblem());
  return addon;
}
