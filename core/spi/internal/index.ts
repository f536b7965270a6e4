/**
 * Internals that core and the providers of this package share (`dapl/spi/internal`). They are no
 * part of `SDK_VERSION`, and change with any release. A plugin that uses them pins the exact
 * version.
 */
export * from '../device/flight-log.js';
export * from '../layout/slab.js';
export * from '../modules/peer-agreement.js';
export {
  configuredPlugin,
  isConfiguredPlugin,
  MODULE_TOKENS,
  sdkMismatch,
  titleOf,
} from '../plugin/define-plugin.js';
export { needOf, needsOf, type Parameter, parametersOf } from '../plugin/injection.js';
