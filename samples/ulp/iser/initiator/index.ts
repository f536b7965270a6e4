/** An initiator of iSCSI over iSER and TCP. */
export { discover, listLuns } from './discover.js';
export {
  Disk,
  type DiskDescription,
  type DiskWriteOptions,
  type IoOptions,
  openDisk,
  type OpenDiskOptions,
} from './disk.js';
export type { ChapSecrets, PortalOptions, TransportName } from './options.js';
export type { Timing } from './options.js';
export {
  type Backoff,
  type DiscoveredTarget,
  type IscsiCode,
  IscsiError,
  type PortalAddress,
} from '../session/initiator/index.js';
