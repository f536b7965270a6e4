/** Composition of devices. */
export { DeviceContainer, type Layer } from './container.js';
export { DeviceServices } from './device-services.js';
export { tearDown, type TeardownStep } from './teardown.js';
