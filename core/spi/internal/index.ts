/**
 * What core and the providers of this package share beneath the SDK (`dapl/spi/internal`): no part
 * of `SDK_VERSION`, and it changes with any release. A plugin that uses it pins the exact version.
 */
export * from '../device/flight-log.js';
export * from '../layout/slab.js';
export * from '../modules/peer-agreement.js';
