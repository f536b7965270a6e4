/**
 * The software HCA (`dapl/providers/hca`), for providers over a packet port: softroce and mock are
 * two of those.
 */
export { DROP_REASONS } from './common/counters.js';
export type { DropReason, HcaCounters } from './common/counters.js';
export { type DeviceHooks, HCA_PROVIDES, HcaDevice } from './device.js';
export { HcaDriver } from './driver.js';
export type { HcaDriverOptions } from './driver.js';
export type { DeviceSetup } from './hca.js';
export { defaultParameters } from './common/parameters.js';
export type { HcaParameters } from './common/parameters.js';
export { checkPort } from './common/port-arrays.js';
