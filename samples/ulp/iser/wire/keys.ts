/** Keys of login (RFC 7143, section 13; RFC 7145, section 6), and how each is negotiated. */
import { emitBoolean, readBoolean, readList, readNumber } from './values.js';
import { WireError } from './wire-error.js';

/** One key, its values and what both sides end with. */
export type KeyRule =
  /** Both offer, and the outcome holds for both. */
  | { readonly kind: 'boolean'; readonly outcome: 'and' | 'or'; readonly initial: boolean }
  | {
      readonly kind: 'number';
      readonly outcome: 'lowest' | 'highest';
      readonly initial: number;
      readonly least: number;
      readonly most: number;
    }
  /** The first offered value that the answering side takes. */
  | { readonly kind: 'list'; readonly initial: string }
  /** A declaration of one side; it is not answered. */
  | { readonly kind: 'declared number'; readonly least: number; readonly most: number }
  | { readonly kind: 'declared boolean' }
  | { readonly kind: 'declared text' };

const boolean = (outcome: 'and' | 'or', initial: boolean): KeyRule => ({
  kind: 'boolean',
  outcome,
  initial,
});
const number = (
  outcome: 'lowest' | 'highest',
  initial: number,
  least: number,
  most: number,
): KeyRule => ({ kind: 'number', outcome, initial, least, most });
const declaredNumber = (least: number, most: number): KeyRule => ({
  kind: 'declared number',
  least,
  most,
});
const list = (initial: string): KeyRule => ({ kind: 'list', initial });
const DECLARED_TEXT: KeyRule = { kind: 'declared text' };

const MAX_SEGMENT_BYTES = 2 ** 24 - 1;

/** All keys but those of an authentication method, which are values of `chap.ts`. */
export const KEYS = {
  // Of a session: its ends and its kind.
  InitiatorName: DECLARED_TEXT,
  InitiatorAlias: DECLARED_TEXT,
  TargetName: DECLARED_TEXT,
  TargetAlias: DECLARED_TEXT,
  TargetAddress: DECLARED_TEXT,
  TargetPortalGroupTag: declaredNumber(0, 65_535),
  SessionType: DECLARED_TEXT,
  SendTargets: DECLARED_TEXT,
  // Security stage.
  AuthMethod: list('None'),
  // Operational stage.
  HeaderDigest: list('None'),
  DataDigest: list('None'),
  MaxConnections: number('lowest', 1, 1, 65_535),
  InitialR2T: boolean('or', true),
  ImmediateData: boolean('and', true),
  /** Bytes of a data segment that the declaring side takes; over iSER only in discovery. */
  MaxRecvDataSegmentLength: declaredNumber(512, MAX_SEGMENT_BYTES),
  MaxBurstLength: number('lowest', 262_144, 512, MAX_SEGMENT_BYTES),
  FirstBurstLength: number('lowest', 65_536, 512, MAX_SEGMENT_BYTES),
  DefaultTime2Wait: number('highest', 2, 0, 3600),
  DefaultTime2Retain: number('lowest', 20, 0, 3600),
  MaxOutstandingR2T: number('lowest', 1, 1, 65_535),
  DataPDUInOrder: boolean('or', true),
  DataSequenceInOrder: boolean('or', true),
  ErrorRecoveryLevel: number('lowest', 0, 0, 2),
  /** Keys of RFC 3720; RFC 7143 has no markers, and they are always refused. */
  IFMarker: boolean('and', false),
  OFMarker: boolean('and', false),
  iSCSIProtocolLevel: number('lowest', 1, 0, 31),
  TaskReporting: list('RFC3720'),
  // iSER.
  RDMAExtensions: boolean('and', false),
  /** Bytes of a data segment towards the initiator, over iSER. */
  InitiatorRecvDataSegmentLength: number('lowest', 8192, 512, MAX_SEGMENT_BYTES),
  /** Bytes of a data segment towards the target, over iSER. */
  TargetRecvDataSegmentLength: number('lowest', 8192, 512, MAX_SEGMENT_BYTES),
  /** Control PDUs without a command that the declaring side has room for; 0 says nothing. */
  MaxOutstandingUnexpectedPDUs: declaredNumber(0, 2 ** 32 - 1),
  MaxAHSLength: declaredNumber(2, 2 ** 32 - 1),
  TaggedBufferForSolicitedDataOnly: { kind: 'declared boolean' },
  iSERHelloRequired: { kind: 'declared boolean' },
} as const satisfies Readonly<Record<string, KeyRule>>;

export type KeyName = keyof typeof KEYS;

export function isKeyName(key: string): key is KeyName {
  return Object.hasOwn(KEYS, key);
}

/** The rule of a key as one of all rules. */
export function ruleOf(key: KeyName): KeyRule {
  return KEYS[key];
}

/**
 * A value that the peer has sent for a key, checked.
 * @throws WireError naming key, value and what it may be
 */
export function readKey(key: KeyName, value: string): boolean | number | string {
  const rule = ruleOf(key);
  switch (rule.kind) {
    case 'boolean':
    case 'declared boolean':
      return readBoolean(key, value);
    case 'number':
    case 'declared number':
      return readNumber(key, value, rule.least, rule.most);
    case 'list':
    case 'declared text':
      return value;
  }
}

/**
 * Negotiates a key that both sides name.
 * @param own the value that this side wants; for a list the accepted values, separated by commas
 * @param peers the value that the peer has sent
 * @returns the outcome as text, to be sent as the answer; `Reject` for lists with none in common
 * @throws WireError for a value that the key cannot have, RangeError for a key that is declared
 */
export function agree(key: KeyName, own: string, peers: string): string {
  const rule = ruleOf(key);
  switch (rule.kind) {
    case 'boolean': {
      const ours = readBoolean(key, own);
      const theirs = readBoolean(key, peers);
      return emitBoolean(rule.outcome === 'and' ? ours && theirs : ours || theirs);
    }
    case 'number': {
      const ours = readNumber(key, own, rule.least, rule.most);
      const theirs = readNumber(key, peers, rule.least, rule.most);
      return String(rule.outcome === 'lowest' ? Math.min(ours, theirs) : Math.max(ours, theirs));
    }
    case 'list': {
      const taken = readList(own);
      return readList(peers).find((value) => taken.includes(value)) ?? 'Reject';
    }
    default:
      throw new RangeError(`${key} is declared, not agreed`);
  }
}

/** The longest iSCSI name in bytes (RFC 7143, 4.2.7.1). */
const MAX_NAME_BYTES = 223;

/**
 * A name of an initiator or target: iqn., eui. or naa. (RFC 7143, 4.2.7).
 * @throws WireError for what is none
 */
export function checkName(key: string, value: string): string {
  const isName =
    value.length <= MAX_NAME_BYTES &&
    (/^iqn\.\d{4}-\d{2}\.[^\s=\0,]+$/.test(value) ||
      /^eui\.[0-9a-fA-F]{16}$/.test(value) ||
      /^naa\.([0-9a-fA-F]{16}|[0-9a-fA-F]{32})$/.test(value));
  if (isName) return value;
  const limit = `iqn.YYYY-MM.NAME, eui. or naa. of at most ${MAX_NAME_BYTES} bytes`;
  throw new WireError('text', key, value, limit);
}
