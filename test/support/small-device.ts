/** A provider whose device has lower limits than its own. */
import { decorate } from '../../core/spi/decorators/index.js';
import type { ConfiguredProvider, DeviceAttributes } from '../../core/spi/index.js';

export function withLimits(
  provider: ConfiguredProvider,
  limits: Partial<DeviceAttributes>,
): ConfiguredProvider {
  return decorate(provider, {
    device: ({ attributes }) => ({ attributes: { ...attributes, ...limits } }),
  });
}
