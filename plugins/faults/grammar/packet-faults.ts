/** Faults of packets: the fields that a rule can match, and the actions on a packet. */
import {
  FUNCTION,
  integer,
  type Kind,
  kindOf,
  LIST,
  numberFrom,
  optional,
  record,
} from '../../../core/spi/checks/index.js';
import { type MadHeader, parseMadHeader } from '../../../core/spi/modules/mad-header.js';
import { gidFromIp, GSI_QPN, ipFromGid, MAD_BYTES } from '../../../core/spi/index.js';
import { bthDestQpn, bthOpcode, bthPsn } from '../../../core/spi/wire/bth.js';
import { OPCODES } from '../../../core/spi/wire/opcode.js';
import { HEADER_LENGTH_OF } from '../../../core/spi/wire/packet-layout.js';
import type { FaultGrammar, FaultRule } from './fault-script.js';

const ICRC_BYTES = 4;

/** A packet as rules see it. */
export interface PacketView {
  /** IP addresses in text. */
  readonly from: string;
  readonly to: string;
  /** BTH opcode, and its name: one of `OPCODE_NAMES`, or a name such as `UNKNOWN_0x15`. */
  readonly opcode: number;
  readonly opcodeName: string;
  readonly destinationQpn: number;
  readonly psn: number;
  /** BTH to ICRC, valid only while the predicate runs. */
  readonly bytes: Uint8Array;
  /** The header of a management datagram. */
  readonly mad: MadHeader | undefined;
}

/** Packets to match. `from` and `to` give the direction. */
export interface PacketMatch {
  readonly from?: string;
  readonly to?: string;
  /** A name such as `RC_SEND_ONLY`, or the code, 0 to 255. */
  readonly opcode?: string | number;
  /** 0 to 2^24 - 1, like a PSN. */
  readonly destinationQpn?: number;
  readonly psn?: number;
  /** Fields of the header of a management datagram. */
  readonly mad?: Partial<MadHeader>;
  readonly where?: (packet: PacketView) => boolean;
}

export type PacketAction =
  | { readonly type: 'drop' }
  /** Delays the packet; packets sent after it may overtake it. */
  | { readonly type: 'delay'; readonly byUs: number }
  /** Delivers the packet, and again after each of these times. */
  | { readonly type: 'duplicate'; readonly afterUs: readonly number[] }
  /** Flips bits of the byte at this offset from the BTH (modulo its length); default mask 1. */
  | { readonly type: 'corrupt'; readonly byteOffset: number; readonly mask?: number };

export type PacketFaultRule = FaultRule<PacketMatch, PacketAction>;

/** Names of all opcodes. */
export const OPCODE_NAMES: readonly string[] = OPCODES.filter(({ known }) => known).map(
  ({ name }) => name,
);

const MAX_U16 = 0xffff;
const MAX_U24 = 0xffffff;
const MAX_U32 = 0xffffffff;
const U24 = integer(0, MAX_U24);

/** An address in the one text form that packets use. */
export const ADDRESS: Kind<string> = kindOf(
  'an IP address in its usual text, as "10.0.0.1" or "fd00::1"',
  isUsualAddress,
);
const OPCODE: Kind<string | number> = {
  ...kindOf<string | number>(
    'the name of an opcode, such as "RC_SEND_ONLY" (docs/mock.md has all), or its code, 0 to 255',
    (opcode) => OPCODE_NAMES.includes(opcode as string) || integer(0, 255).accepts(opcode),
  ),
  words: OPCODE_NAMES,
};
const u = (max: number): Kind => optional(integer(0, max));
const MAD = record({
  baseVersion: u(0xff),
  managementClass: u(0xff),
  classVersion: u(0xff),
  method: u(0xff),
  status: u(MAX_U16),
  classSpecific: u(MAX_U16),
  transactionIdHi: u(MAX_U32),
  transactionIdLo: u(MAX_U32),
  attributeId: u(MAX_U16),
  attributeModifier: u(MAX_U32),
} satisfies Record<keyof MadHeader, Kind>);

/** Longest delay: an hour, more than any timer. */
const MAX_DELAY_US = 3_600_000_000;
const DELAY = numberFrom(0, MAX_DELAY_US);
const DELAYS: Kind<readonly number[]> = kindOf(
  `a list of 1 and more numbers from 0 to ${MAX_DELAY_US}`,
  (list) => LIST.accepts(list) && list.length > 0 && list.every((each) => DELAY.accepts(each)),
);
const MAX_MASK = 0xff;

export const PACKET_FAULTS: FaultGrammar<PacketView, PacketMatch, PacketAction> = {
  match: {
    from: { kind: ADDRESS, agrees: (packet, from) => packet.from === from },
    to: { kind: ADDRESS, agrees: (packet, to) => packet.to === to },
    opcode: {
      kind: OPCODE,
      agrees: (packet, opcode) =>
        (typeof opcode === 'string' ? packet.opcodeName : packet.opcode) === opcode,
    },
    destinationQpn: { kind: U24, agrees: (packet, qpn) => packet.destinationQpn === qpn },
    psn: { kind: U24, agrees: (packet, psn) => packet.psn === psn },
    mad: { kind: MAD, agrees: (packet, wanted) => agreesMad(wanted, packet.mad) },
    where: { kind: FUNCTION, agrees: (packet, where) => where(packet) },
  },
  actions: {
    drop: {},
    delay: { byUs: DELAY },
    duplicate: { afterUs: DELAYS },
    corrupt: {
      byteOffset: integer(0, Number.MAX_SAFE_INTEGER),
      mask: optional(integer(1, MAX_MASK)),
    },
  },
};

/**
 * A packet as rules, taps and traces see it.
 * @param view over `bytes`: BTH to ICRC
 */
export function packetView(
  view: DataView,
  bytes: Uint8Array,
  from: string,
  to: string,
): PacketView {
  const opcode = bthOpcode(view, 0);
  const destinationQpn = bthDestQpn(view, 0);
  return {
    from,
    to,
    opcode,
    opcodeName: OPCODES[opcode]?.name ?? '',
    destinationQpn,
    psn: bthPsn(view, 0),
    bytes,
    mad: destinationQpn === GSI_QPN ? madOf(bytes, opcode) : undefined,
  };
}

function madOf(bytes: Uint8Array, opcode: number): MadHeader | undefined {
  const start = HEADER_LENGTH_OF[opcode] ?? 0;
  if (start === 0 || bytes.length !== start + MAD_BYTES + ICRC_BYTES) return undefined;
  return parseMadHeader(bytes.subarray(start, start + MAD_BYTES));
}

function agreesMad(wanted: Partial<MadHeader>, mad: MadHeader | undefined): boolean {
  if (mad === undefined) return false;
  const names = Object.keys(wanted) as (keyof MadHeader)[];
  return names.every((name) => wanted[name] === undefined || wanted[name] === mad[name]);
}

function isUsualAddress(text: unknown): boolean {
  try {
    return typeof text === 'string' && ipFromGid(gidFromIp(text)) === text;
  } catch {
    return false;
  }
}
