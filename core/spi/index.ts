/** The plugin SDK (`dapl/spi`): contracts of providers and modules, and what they share. */
export * from './address.js';
export * from './clock.js';
export * from './cm.js';
export * from './define-plugin.js';
export * from './device.js';
export * from './ib.js';
export * from './logger.js';
export * from './mad.js';
export * from './packet-port.js';
export * from './qp-transitions.js';
export * from './ring.js';
export * from './spi-error.js';
export * from './timer-wheel.js';
export * from './timers.js';
export * from './tokens.js';
export * from './xrc.js';
