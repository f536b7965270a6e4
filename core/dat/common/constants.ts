/** Enumerations of DAT, with the numbers of dat.h and udat.h. */
import { show } from '../../spi/checks/index.js';
import { Access } from '../../spi/index.js';

/** Completion flags: a bit set, on a posted request and as an endpoint attribute. */
export const CompletionFlags = {
  DEFAULT: 0x00,
  /** No event when the request succeeds; a failure always has one. */
  SUPPRESS: 0x01,
  /** A send asks for a notifying receive completion at the peer. */
  SOLICITED_WAIT: 0x02,
  /** An event without a notification; the endpoint attribute must allow it. */
  UNSIGNALLED: 0x04,
  /** Starts after all RDMA reads posted before it have completed. */
  BARRIER_FENCE: 0x08,
  /** Endpoint attribute only: `wait` counts to its threshold. */
  EVD_THRESHOLD: 0x10,
} as const;

/** Memory privileges: a bit set. */
export const MemPrivileges = {
  NONE: 0x00,
  LOCAL_READ: 0x01,
  REMOTE_READ: 0x02,
  LOCAL_WRITE: 0x10,
  REMOTE_WRITE: 0x20,
  ALL: 0x33,
  /** IB extension: remote atomics. */
  REMOTE_ATOMIC: 0x40,
} as const;

/** DAT_MEM_TYPE: the kind of a region's memory. FILE is ours; the kernel's types are below. */
export const MemType = {
  VIRTUAL: 0x00,
  /** The memory of another region. */
  LMR: 0x01,
  /** Memory that several adapters register under one name. */
  SHARED_VIRTUAL: 0x02,
  PHYSICAL: 0x10,
  PLATFORM: 0x20,
  IA: 0x40,
  BYPASS: 0x80,
  PHYSICAL_VAR_PAGES: 0x100,
  /** A part of a file (`ia.mapFile`). */
  FILE: 0x10000,
} as const;
export type MemTypeName = keyof typeof MemType;

/** DAT_VA_TYPE: the start of addresses within a region. */
export const VaType = {
  /** At a virtual address. */
  VA: 0,
  /** At 0 (zero-based). */
  ZB: 1,
} as const;

export const Qos = {
  BEST_EFFORT: 0,
  HIGH_THROUGHPUT: 1,
  LOW_LATENCY: 2,
  ECONOMY: 4,
  PREMIUM: 8,
} as const;

export const ConnectFlags = {
  DEFAULT: 0,
  MULTIPATH_REQUESTED: 1,
  MULTIPATH_REQUIRED: 2,
} as const;

export const PspFlags = { CONSUMER: 0, PROVIDER: 1 } as const;

/** DAT_CLOSE_FLAGS in words; `abrupt` is DAT's default. */
export type CloseFlag = 'abrupt' | 'graceful';

/** The names of the bits that are set, for messages and traces: `SUPPRESS|BARRIER_FENCE`. */
export function flagNames(table: Readonly<Record<string, number>>, value: unknown): string {
  if (typeof value !== 'number') return show(value);
  const names = Object.keys(table).filter((name) => {
    const bit = table[name] ?? 0;
    return bit !== 0 && (bit & (bit - 1)) === 0 && (value & bit) !== 0;
  });
  if (names.length > 0) return names.join('|');
  return Object.keys(table).find((name) => table[name] === value) ?? String(value);
}

// DAT memory privileges, and the SPI access rights for them.

/** Every privilege bit there is. */
export const PRIVILEGE_MASK = MemPrivileges.ALL | MemPrivileges.REMOTE_ATOMIC;

/** Privileges that give peers access. */
export const REMOTE_PRIVILEGES =
  MemPrivileges.REMOTE_READ | MemPrivileges.REMOTE_WRITE | MemPrivileges.REMOTE_ATOMIC;

const TO_ACCESS: readonly (readonly [number, number])[] = [
  [MemPrivileges.LOCAL_WRITE, Access.LOCAL_WRITE],
  [MemPrivileges.REMOTE_READ, Access.REMOTE_READ],
  // IBTA 11.2.8.2: remote write and remote atomic require local write.
  [MemPrivileges.REMOTE_WRITE, Access.REMOTE_WRITE | Access.LOCAL_WRITE],
  [MemPrivileges.REMOTE_ATOMIC, Access.REMOTE_ATOMIC | Access.LOCAL_WRITE],
];

/** Verbs implies local read with any registration; core checks it when requests are posted. */
export function accessOf(privileges: number): number {
  let access = 0;
  for (const [privilege, bits] of TO_ACCESS) if (privileges & privilege) access |= bits;
  return access;
}
