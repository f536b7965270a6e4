/** Limits of memory and channels that a device shares with others of its host. */
import {
  BOOLEAN,
  checkOptions,
  integer,
  isInteger,
  kindOf,
  OBJECT,
  optional,
  within,
} from '../../../core/spi/checks/index.js';
import { einval } from '../../../core/spi/errors/einval.js';

const MIB = 1 << 20;

export interface ShmOptions {
  /** Channels at a time, one for each device of this host that is connected: 1 to 4096. */
  readonly maxChannels: number;
  /** Packets that wait in a channel for its peer, a power of two: 64 to 65,536. */
  readonly ringSlots: number;
  /**
   * Bytes of a channel for payload that is copied in transit: 2 MiB to 1 GiB, in MiB. Memory is
   * allocated as it is used.
   */
  readonly bounceBytes: number;
  /** Memory of one peer that may be mapped here to be read in place: 0 to 2^46 bytes. */
  readonly peerBytes: number;
  /**
   * Memory for `ia.allocate` that peers can map: 0 to 2^46 bytes. Beyond it memory is allocated as
   * usual, and its payload is copied in transit.
   */
  readonly arenaBytes: number;
}

export const defaultShmOptions: ShmOptions = {
  maxChannels: 256,
  ringSlots: 4096,
  bounceBytes: 8 * MIB,
  peerBytes: 2 ** 36,
  arenaBytes: 2 ** 36,
};

const OPTIONS = {
  maxChannels: optional(integer(1, 4096)),
  ringSlots: optional(
    kindOf<number>(
      'a power of two from 64 to 65536',
      (value) => isInteger(value, 64, 65_536) && Number.isInteger(Math.log2(value)),
    ),
  ),
  bounceBytes: optional(
    kindOf<number>(
      'a multiple of 1048576 from 2097152 to 1073741824',
      (value) => isInteger(value, 2 * MIB, 1024 * MIB) && value % MIB === 0,
    ),
  ),
  peerBytes: optional(integer(0, 2 ** 46)),
  arenaBytes: optional(integer(0, 2 ** 46)),
};

/** The kind of the option: on, off, or on with limits. */
export const SHM = optional(
  kindOf<boolean | Partial<ShmOptions>>(
    'a boolean, or limits as an object',
    (value) => BOOLEAN.accepts(value) || OBJECT.accepts(value),
  ),
);

/**
 * The limits with their defaults, or undefined where no memory is to be shared.
 * @throws SpiError('EINVAL') naming the option, its value and its limits
 */
export function shmOptionsOf(given: boolean | Partial<ShmOptions> = true): ShmOptions | undefined {
  if (typeof given === 'boolean') return given ? defaultShmOptions : undefined;
  checkOptions(given, OPTIONS, within('shm', einval));
  const set = Object.entries(given).filter(([, value]) => value !== undefined);
  return { ...defaultShmOptions, ...(Object.fromEntries(set) as Partial<ShmOptions>) };
}
