/**
 * Scripted faults: what is to happen to the n-th packet that matches. A rule sees a packet where it
 * enters the wire, before chance has its say; duplicates that the fabric makes are not shown again.
 */
import {
  checkNames,
  checkOptions,
  outOfRange,
  integer,
  numberFrom,
  OBJECT,
  optional,
} from '../../core/spi/checks/index.js';
import { type MadHeader, parseMadHeader } from '../../core/spi/mad-header.js';
import { GSI_QPN, MAD_BYTES } from '../../core/spi/index.js';
import { bthDestQpn, bthOpcode, bthPsn } from '../hca/wire/bth.js';
import { HEADER_LENGTH_OF } from '../hca/wire/packet-layout.js';
import { OPCODES } from '../hca/wire/opcode.js';
import { ICRC_BYTES, type WirePacket } from './wire-packet.js';

/** A packet as rules see it. */
export interface PacketView {
  /** IP addresses in text. */
  readonly from: string;
  readonly to: string;
  /** BTH opcode, and its name: `RC_SEND_ONLY`, `RC_ACKNOWLEDGE`, `UD_SEND_ONLY` and so on. */
  readonly opcode: number;
  readonly opcodeName: string;
  readonly destinationQpn: number;
  readonly psn: number;
  /** BTH to ICRC, to be looked at only while the predicate runs. */
  readonly bytes: Uint8Array;
  /** The header of a management datagram. */
  readonly mad: MadHeader | undefined;
}

/** All that are given must agree. */
export interface PacketMatch {
  readonly from?: string;
  readonly to?: string;
  /** A name such as `RC_SEND_ONLY`, or the code. */
  readonly opcode?: string | number;
  readonly destinationQpn?: number;
  readonly psn?: number;
  readonly mad?: Partial<MadHeader>;
  readonly where?: (packet: PacketView) => boolean;
}

export type FaultAction =
  | { readonly type: 'drop' }
  /** Arrives so much later than it would; packets sent after it may overtake it. */
  | { readonly type: 'delay'; readonly byUs: number }
  /** Arrives as it would, and again after each of these times. */
  | { readonly type: 'duplicate'; readonly afterUs: readonly number[] }
  /** Flips bits of the byte at this offset from the BTH. */
  | { readonly type: 'corrupt'; readonly byteOffset: number; readonly mask?: number };

export interface FaultRule {
  readonly match: PacketMatch;
  readonly action: FaultAction;
  /** The first match that is hit, from 1 (default). */
  readonly nth?: number;
  /** How many matches in a row are hit: default 1; Infinity for all. */
  readonly count?: number;
}

/** A rule at work. */
export interface Fault {
  /** Packets that matched, and those of them that were hit. */
  readonly matched: number;
  readonly hits: number;
  remove(): void;
}

/** Matches are counted from 1. */
export const NTH = optional(integer(1, Infinity));
const RULE = {
  match: OBJECT,
  action: OBJECT,
  nth: NTH,
  count: optional(numberFrom(0, Infinity)),
};
const MATCH: readonly (keyof PacketMatch)[] = [
  'from',
  'to',
  'opcode',
  'destinationQpn',
  'psn',
  'mad',
  'where',
];

class ActiveFault implements Fault {
  matched = 0;
  hits = 0;
  private readonly first: number;
  private readonly last: number;

  constructor(
    readonly rule: FaultRule,
    private readonly onRemove: (fault: ActiveFault) => void,
  ) {
    checkOptions(rule, RULE, outOfRange);
    checkNames(rule.match, MATCH, outOfRange);
    const { nth = 1, count = 1 } = rule;
    this.first = nth;
    this.last = nth + count - 1;
  }

  /** Whether this packet is hit. */
  takes(packet: PacketView): boolean {
    if (!matches(this.rule.match, packet)) return false;
    this.matched++;
    if (this.matched < this.first || this.matched > this.last) return false;
    this.hits++;
    return true;
  }

  remove(): void {
    this.onRemove(this);
  }
}

/** The rules of a fabric; the first one that takes a packet decides. */
export class FaultScript {
  private readonly faults: ActiveFault[] = [];

  add(rule: FaultRule): Fault {
    const fault = new ActiveFault(rule, (gone) => {
      const at = this.faults.indexOf(gone);
      if (at >= 0) this.faults.splice(at, 1);
    });
    this.faults.push(fault);
    return fault;
  }

  clear(): void {
    this.faults.length = 0;
  }

  decide(packet: WirePacket): FaultAction | undefined {
    if (this.faults.length === 0) return undefined;
    const view = packetView(packet);
    return this.faults.find((fault) => fault.takes(view))?.rule.action;
  }
}

/** What rules, taps and traces see of a packet. */
export function packetView(packet: WirePacket): PacketView {
  const { view, flow } = packet;
  const opcode = bthOpcode(view, 0);
  const destinationQpn = bthDestQpn(view, 0);
  return {
    from: flow.from,
    to: flow.to,
    opcode,
    opcodeName: OPCODES[opcode]?.name ?? '',
    destinationQpn,
    psn: bthPsn(view, 0),
    bytes: packet.buffer.subarray(0, packet.length),
    mad: destinationQpn === GSI_QPN ? madOf(packet, opcode) : undefined,
  };
}

function madOf(packet: WirePacket, opcode: number): MadHeader | undefined {
  const start = HEADER_LENGTH_OF[opcode] ?? 0;
  if (start === 0 || packet.length !== start + MAD_BYTES + ICRC_BYTES) return undefined;
  return parseMadHeader(packet.buffer.subarray(start, start + MAD_BYTES));
}

function matches(match: PacketMatch, packet: PacketView): boolean {
  const { from, to, opcode, destinationQpn, psn, mad, where } = match;
  if (from !== undefined && from !== packet.from) return false;
  if (to !== undefined && to !== packet.to) return false;
  const code = typeof opcode === 'string' ? packet.opcodeName : packet.opcode;
  if (opcode !== undefined && opcode !== code) return false;
  if (destinationQpn !== undefined && destinationQpn !== packet.destinationQpn) return false;
  if (psn !== undefined && psn !== packet.psn) return false;
  if (mad !== undefined && !matchesMad(mad, packet.mad)) return false;
  return where === undefined || where(packet);
}

function matchesMad(wanted: Partial<MadHeader>, mad: MadHeader | undefined): boolean {
  if (mad === undefined) return false;
  const names = Object.keys(wanted) as (keyof MadHeader)[];
  return names.every((name) => wanted[name] === mad[name]);
}
