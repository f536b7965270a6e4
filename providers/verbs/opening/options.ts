/** Checks the options of `verbs()`. */
import {
  checkOptions as checkTable,
  integer,
  kindOf,
  oneOf,
  optional,
  record,
  TEXT,
} from '../../../core/spi/checks/index.js';
import { einval } from '../../../core/spi/errors/einval.js';
import { gidFromIp, ipFromGid, isMulticastGid, type PollingMode } from '../../../core/spi/index.js';

import { checkRequest } from './choose-device.js';

/** Paths of shared libraries that cannot be found by name. */
export interface LibraryPaths {
  /** libibverbs.so.1 */
  readonly verbs?: string;
  /** librdmacm.so.1 */
  readonly rdmacm?: string;
  /** Replaces the files /dev/infiniband/umad*: for tests. */
  readonly umad?: string;
}

export interface VerbsOptions {
  /**
   * Name of an RDMA device (`mlx5_0`, `rxe0`), or of a network interface (`eth0`). Not with
   * `address`; with neither, the first device that can be used.
   */
  readonly device?: string;
  /**
   * An IP address of our own, or of a peer that the routing table has a route to. It decides
   * device, port and GID.
   */
  readonly address?: string;
  /** Port of `device`, from 1; default the first one that is active. */
  readonly port?: number;
  /** Index in the port's GID table; default: the best one, RoCE v2 over IPv4 if there is one. */
  readonly gidIndex?: number;
  /**
   * Wait method for completions if the EVD says 'event', its default. 'event' (default) sleeps
   * until the device wakes us; 'adaptive' polls for a while after activity.
   */
  readonly polling?: 'event' | 'adaptive';
  readonly libraries?: LibraryPaths;
}

/** Addresses that stand for all addresses. */
const UNSPECIFIED = ['0.0.0.0', '::'];
const OPTIONAL_TEXT = optional(TEXT);
const ADDRESS = kindOf<string>(
  'an IP address of one host, in text',
  (address) => typeof address === 'string' && isHostAddress(address),
);
/** `port_num` and the GID index are a byte each in verbs. */
const MAX_BYTE = 255;
/** The kinds of the options: the plugin's table. */
export const OPTIONS = {
  device: OPTIONAL_TEXT,
  address: optional(ADDRESS),
  port: optional(integer(1, MAX_BYTE)),
  gidIndex: optional(integer(0, MAX_BYTE)),
  polling: optional(oneOf<PollingMode>(['event', 'adaptive'])),
  libraries: optional(record({ verbs: OPTIONAL_TEXT, rdmacm: OPTIONAL_TEXT, umad: OPTIONAL_TEXT })),
};

/**
 * @throws SpiError('EINVAL') naming the option, its value and the allowed values; or two options
 * that exclude each other
 */
export function checkOptions(given: unknown = {}): VerbsOptions {
  const options = given as VerbsOptions;
  checkTable(options, OPTIONS, einval);
  checkRequest(options);
  return options;
}

/** A zone (`%eth0`) may follow. */
function isHostAddress(address: string): boolean {
  try {
    const gid = gidFromIp(address.replace(/%[^%]+$/, ''));
    return !isMulticastGid(gid) && !UNSPECIFIED.includes(ipFromGid(gid));
  } catch {
    return false;
  }
}
