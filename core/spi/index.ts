/**
 * The plugin SDK (`dapl/spi`): contracts of providers and modules, and what they share. All of it
 * is covered by `SDK_VERSION` (docs/versions.md).
 */
export * from './address.js';
export * as kinds from './checks/kinds.js';
export { checkOptions, type Kind, type Kinds, mustBe, type Refuse } from './checks/index.js';
export * from './time/clock.js';
export * from './cm.js';
export * from './define-plugin.js';
export * from './device.js';
export * from './device-share.js';
export * from './forwarding-port.js';
export * from './grh.js';
export * from './ia-params.js';
export * from './ib.js';
export * from './injection.js';
export * from './logger.js';
export * from './mad.js';
export * from './mad-header.js';
export * from './network-report.js';
export * from './packet-port.js';
export * from './provider-init.js';
export * from './qp-transitions.js';
export * from './layout/iova.js';
export * from './layout/ring.js';
export * from './layout/rkey.js';
export * from './spi-error.js';
export * from './time/leave-unhandled.js';
export * from './time/timer-wheel.js';
export * from './time/timers.js';
export * from './tokens.js';
export * from './xrc.js';
