/**
 * The plugin SDK (`dapl/spi`): contracts of providers and modules, and their common parts.
 * `SDK_VERSION` covers all of it (docs/versions.md).
 */
export * from './wire/address.js';
export * as kinds from './checks/kinds.js';
export { checkOptions, type Kind, type Kinds, mustBe, type Refuse } from './checks/index.js';
export * from './time/clock.js';
export * from './modules/cm.js';
export {
  CAPABILITIES,
  type ClassMeta,
  type ConfiguredModule,
  type ConfiguredPlugin,
  type ConfiguredProvider,
  definePlugin,
  type ModuleClass,
  type ModuleKind,
  type ModuleMeta,
  type ModuleTypes,
  plugin,
  type Plugin,
  type PluginKind,
  type PluginMeta,
  pluginOf,
  PROVIDER,
  type ProviderInstance,
  SDK_VERSION,
  withModules,
} from './plugin/define-plugin.js';
export * from './device/device.js';
export * from './device/device-share.js';
export * from './port/forwarding-port.js';
export * from './wire/grh.js';
export * from './plugin/ia-params.js';
export * from './wire/ib.js';
export {
  type ClassPart,
  type Given,
  inject,
  type Inject,
  type Injected,
  type Need,
  optional,
  type OptionalToken,
  OPTIONS,
  part,
  type Part,
  type PartClass,
  type Registrar,
} from './plugin/injection.js';
export * from './plugin/logger.js';
export * from './modules/mad.js';
export * from './modules/mad-header.js';
export * from './port/network-report.js';
export * from './port/packet-port.js';
export * from './plugin/provider-init.js';
export * from './device/qp-transitions.js';
export * from './layout/iova.js';
export * from './layout/ring.js';
export * from './layout/rkey.js';
export * from './errors/spi-error.js';
export * from './time/leave-unhandled.js';
export * from './time/timer-wheel.js';
export * from './time/timers.js';
export * from './plugin/tokens.js';
export * from './modules/xrc.js';
