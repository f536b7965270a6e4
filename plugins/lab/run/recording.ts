/** The recording of a run: packets, states, queues, calls and claims, each with its time. */

/** How a packet ended on its way; 'unknown' in a capture that shows one side alone. */
export type Fate = 'delivered' | 'lost' | 'partitioned' | 'undeliverable' | 'faulted' | 'unknown';

/** Each in words. */
export const FATES: Readonly<Record<Fate, string>> = {
  delivered: 'delivered',
  lost: 'lost',
  partitioned: 'lost, the cable is cut',
  undeliverable: 'lost, nothing is there',
  faulted: 'lost by the scenario',
  unknown: 'sent',
};

export interface Arrival {
  readonly timeUs: number;
  /** Its bytes are not those that were sent: the receiver's check drops it. */
  readonly isCorrupt: boolean;
}

export interface PacketRow {
  /** Indices of `nodes`. */
  readonly from: number;
  readonly to: number;
  readonly sentUs: number;
  /** From the BTH to the ICRC. */
  readonly bytes: Uint8Array;
  /** More than one for a packet that the network duplicated. */
  readonly arrivals: Arrival[];
  fate: Fate;
}

export type Machine = 'EP' | 'CM' | 'QP';

export interface StateRow {
  readonly timeUs: number;
  readonly node: number;
  readonly machine: Machine;
  /** Tells machines of a kind apart. */
  name: string;
  readonly from: string;
  readonly to: string;
  /** Trigger, for a CM; else ''. */
  readonly input: string;
  /** The side that connects, or that accepts, for a CM; else ''. */
  readonly role: string;
}

export interface LineRow {
  readonly timeUs: number;
  readonly node: number;
  /** A call of the application, an event that it takes, an upcall, a note of the scenario. */
  readonly kind: 'call' | 'event' | 'upcall' | 'note' | 'log';
  text: string;
}

export interface QueueRow {
  readonly timeUs: number;
  readonly node: number;
  readonly name: string;
  readonly pending: number;
  readonly policy: string;
  readonly upcallsInProgress: number;
}

export interface RequestRow {
  readonly node: number;
  readonly qpn: number;
  readonly opcode: string;
  readonly bytes: number;
  readonly postedUs: number;
  /** Infinity while it is in flight. */
  doneUs: number;
  status: string;
}

/** A sentence of the scenario, and whether the run agrees with it. */
export interface Claim {
  readonly timeUs: number;
  readonly text: string;
  readonly holds: boolean;
}

export interface Recording {
  readonly title: string;
  /** Names of the lifelines, from left to right. */
  readonly nodes: string[];
  readonly packets: PacketRow[];
  readonly states: StateRow[];
  readonly lines: LineRow[];
  readonly queues: QueueRow[];
  readonly requests: RequestRow[];
  readonly claims: Claim[];
  endUs: number;
  /** Why the run ended before the scenario did; '' if it did not. */
  problem: string;
}

export function emptyRecording(title: string, nodes: readonly string[]): Recording {
  const rows = { packets: [], states: [], lines: [], queues: [], requests: [], claims: [] };
  return { title, nodes: [...nodes], ...rows, endUs: 0, problem: '' };
}

/** 64 bits over everything in a recording, as hexadecimal text: equal runs have equal digests. */
export function digestOf(recording: Recording): string {
  const hash = { low: 0xdeadbeef, high: 0x41c6ce57 };
  for (const { bytes } of recording.packets) for (const byte of bytes) mix(hash, byte);
  const text = JSON.stringify(recording, (_, value: unknown) => {
    if (value instanceof Uint8Array) return value.length;
    return value === Infinity ? 'Infinity' : value;
  });
  for (let i = 0; i < text.length; i++) mix(hash, text.charCodeAt(i));
  const hex = (word: number): string => (word >>> 0).toString(16).padStart(8, '0');
  return hex(hash.high) + hex(hash.low);
}

function mix(hash: { low: number; high: number }, value: number): void {
  hash.low = Math.imul(hash.low ^ value, 2654435761) ^ (hash.high >>> 15);
  hash.high = Math.imul(hash.high ^ value, 1597334677) ^ (hash.low >>> 13);
}
