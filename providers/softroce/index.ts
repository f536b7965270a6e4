/**
 * The softroce provider (`dapl/providers/softroce`): RoCEv2 in user space over UDP 4791, wire
 * compatible with Linux rdma_rxe and with RoCE adapters, without privileges.
 */
import { type DatProviderInit, definePlugin } from '../../core/spi/index.js';
import { optionsOf, SOFTROCE_META, type SoftroceOptions, softroceInstance } from './instance.js';

export { inspectSoftroce, type SoftroceAddress, type SoftroceInspection } from './inspect.js';
export type { SoftroceOptions } from './instance.js';
export type { IcrcCheck } from './port/port-options.js';
export { ROCE_UDP_PORT } from './port/port-options.js';
export type { ShmOptions } from './shm/shm-options.js';

/**
 * Options that it does not take are refused when it is called. Opening fails with DatError, which
 * names the address: DAT_PORT_IN_USE, DAT_INVALID_ADDRESS (not of this machine) or
 * DAT_PRIVILEGES_VIOLATION.
 */
export const softroce = definePlugin(SOFTROCE_META, (options: SoftroceOptions) =>
  softroceInstance(options),
);

/** Opened by a line of dat.conf (docs/registry.md). */
export const datProviderInit: DatProviderInit = (_info, iaParams) => softroce(optionsOf(iaParams));
