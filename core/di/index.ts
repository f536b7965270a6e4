/** Composition of devices. */
export { DeviceContainer, type Override } from './container.js';
export { DeviceServices } from './device-services.js';
export { tearDown, type TeardownLimits, type TeardownStep } from './teardown.js';
