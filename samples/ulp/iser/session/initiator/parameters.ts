/**
 * Login parameters: an initiator's offers, and the negotiated results (RFC 7143, 13; RFC 7145, 6).
 */
import {
  agree,
  isKeyName,
  type KeyName,
  readKey,
  readBoolean,
  ruleOf,
  type TextPair,
} from '../../wire/index.js';
import { IscsiError, protocolError } from './iscsi-error.js';

export type SessionType = 'Normal' | 'Discovery';

/** Parameters of the full feature phase. Lengths are in bytes. */
export interface SessionParameters {
  readonly isIser: boolean;
  readonly initialR2T: boolean;
  readonly immediateData: boolean;
  readonly firstBurstLength: number;
  readonly maxBurstLength: number;
  readonly maxOutstandingR2T: number;
  /** The longest data segment that the target takes. */
  readonly maxSendDataSegment: number;
  /** The longest that it may send. */
  readonly maxRecvDataSegment: number;
  /** Seconds. */
  readonly defaultTime2Wait: number;
  readonly targetPortalGroupTag: number | undefined;
  readonly targetAlias: string | undefined;
}

/** Values that this side wants; `DEFAULT_WISHES` has the defaults. */
export interface Wishes {
  readonly initialR2T: boolean;
  readonly immediateData: boolean;
  readonly firstBurstLength: number;
  readonly maxBurstLength: number;
  readonly maxOutstandingR2T: number;
  /** The longest data segment that this side takes. */
  readonly recvDataSegment: number;
  /** iSER: the longest that it wants to send. */
  readonly sendDataSegment: number;
}

export const DEFAULT_WISHES: Readonly<Record<'iser' | 'tcp', Wishes>> = {
  // What is not immediate is fetched by RDMA Read, so nothing is gained by unsolicited Data-Out.
  iser: {
    initialR2T: true,
    immediateData: true,
    firstBurstLength: 65_536,
    maxBurstLength: 16_776_192,
    maxOutstandingR2T: 1,
    recvDataSegment: 8192,
    sendDataSegment: 8192,
  },
  tcp: {
    initialR2T: false,
    immediateData: true,
    firstBurstLength: 262_144,
    maxBurstLength: 16_776_192,
    maxOutstandingR2T: 8,
    recvDataSegment: 262_144,
    sendDataSegment: 262_144,
  },
};

/** Keys of the operational stage, in the order in which they are sent. */
export function operationalOffer(
  type: SessionType,
  isIser: boolean,
  wishes: Wishes,
): readonly (readonly [KeyName, string])[] {
  const yesNo = (value: boolean): string => (value ? 'Yes' : 'No');
  const common: [KeyName, string][] = [
    ['HeaderDigest', 'None'],
    ['DataDigest', 'None'],
    ['DefaultTime2Wait', '2'],
    ['DefaultTime2Retain', '0'],
    ['ErrorRecoveryLevel', '0'],
  ];
  if (type === 'Discovery') {
    return [...common, ['MaxRecvDataSegmentLength', String(wishes.recvDataSegment)]];
  }
  const normal: [KeyName, string][] = [
    ['InitialR2T', yesNo(wishes.initialR2T)],
    ['ImmediateData', yesNo(wishes.immediateData)],
    ['MaxBurstLength', String(wishes.maxBurstLength)],
    ['FirstBurstLength', String(wishes.firstBurstLength)],
    ['MaxOutstandingR2T', String(wishes.maxOutstandingR2T)],
    ['MaxConnections', '1'],
    ['DataPDUInOrder', 'Yes'],
    ['DataSequenceInOrder', 'Yes'],
  ];
  const data: [KeyName, string][] = isIser
    ? [
        ['InitiatorRecvDataSegmentLength', String(wishes.recvDataSegment)],
        ['TargetRecvDataSegmentLength', String(wishes.sendDataSegment)],
        ['RDMAExtensions', 'Yes'],
      ]
    : [['MaxRecvDataSegmentLength', String(wishes.recvDataSegment)]];
  return [...common, ...normal, ...data];
}

/** Values of the target that this side cannot live with, each with what it must be. */
const NEEDED: Partial<Readonly<Record<KeyName, string>>> = {
  HeaderDigest: 'None',
  DataDigest: 'None',
  MaxConnections: '1',
  ErrorRecoveryLevel: '0',
};

/** The keys of a login, from offer and answer to what holds. */
export class Negotiation {
  private readonly offered: ReadonlyMap<string, string>;
  private readonly values = new Map<KeyName, string>();
  private readonly seen = new Set<string>();

  constructor(
    private readonly isIser: boolean,
    private readonly wishes: Wishes,
    offer: readonly (readonly [KeyName, string])[],
  ) {
    this.offered = new Map(offer);
  }

  /**
   * Keys that the target has sent in the operational stage.
   * @returns what has to be answered: offers of the target's own
   * @throws IscsiError, WireError for a value that cannot be
   */
  take(pairs: readonly TextPair[]): TextPair[] {
    const answers: TextPair[] = [];
    for (const [key, value] of pairs) {
      if (this.seen.has(key)) throw protocolError(`${key} comes twice in one login`);
      this.seen.add(key);
      const answer = this.takeOne(key, value);
      if (answer !== undefined) answers.push([key, answer]);
    }
    return answers;
  }

  private takeOne(key: string, value: string): string | undefined {
    const own = this.offered.get(key);
    if (value === 'Reject') {
      const offer = own === undefined ? key : `${key}=${own}`;
      const why = `the target rejects ${offer}, and there is nothing else to offer`;
      throw new IscsiError('ISCSI_LOGIN_FAILED', why);
    }
    if (value === 'NotUnderstood' || value === 'Irrelevant') {
      if (own !== undefined && key !== 'RDMAExtensions') return undefined;
      throw protocolError(`it answers ${key} with ${value}`);
    }
    if (!isKeyName(key)) return 'NotUnderstood';
    const needed = NEEDED[key];
    const rule = ruleOf(key);
    if (own === undefined && rule.kind !== 'list' && !rule.kind.startsWith('declared')) {
      // The target's own offer: this side has no wish but the value that holds without a word.
      const initial =
        rule.kind === 'boolean' ? (rule.initial ? 'Yes' : 'No') : String((rule as Initial).initial);
      const outcome = agree(key, initial, value);
      this.values.set(key, outcome);
      return outcome;
    }
    readKey(key, value);
    if (needed !== undefined && value !== needed) {
      throw protocolError(`it answers ${key} with ${JSON.stringify(value)}, must be ${needed}`);
    }
    this.checkOutcome(key, own, value);
    this.values.set(key, value);
    return own === undefined && rule.kind === 'list' ? 'None' : undefined;
  }

  /** An answer must be what the rule makes of both values. */
  private checkOutcome(key: KeyName, own: string | undefined, value: string): void {
    if (own === undefined) return;
    const rule = ruleOf(key);
    const isPossible =
      rule.kind === 'number'
        ? rule.outcome === 'lowest'
          ? Number(value) <= Number(own)
          : Number(value) >= Number(own)
        : rule.kind === 'boolean'
          ? agree(key, own, value) === value
          : true;
    if (!isPossible) throw protocolError(`it answers ${key}=${own} with ${value}`);
  }

  /**
   * The negotiated parameters.
   * @throws IscsiError if this side cannot work with them
   */
  outcome(): SessionParameters {
    const { isIser, wishes } = this;
    if (isIser && !this.boolean('RDMAExtensions', false)) {
      throw protocolError('it does not answer RDMAExtensions with Yes');
    }
    const maxBurstLength = this.number('MaxBurstLength', 262_144);
    const firstBurstLength = this.number('FirstBurstLength', 65_536);
    const declared = this.number('MaxRecvDataSegmentLength', 8192);
    const tag = this.values.get('TargetPortalGroupTag');
    return {
      isIser,
      initialR2T: this.boolean('InitialR2T', true),
      immediateData: this.boolean('ImmediateData', true),
      firstBurstLength: Math.min(firstBurstLength, maxBurstLength),
      maxBurstLength,
      maxOutstandingR2T: this.number('MaxOutstandingR2T', 1),
      maxSendDataSegment: isIser ? this.number('TargetRecvDataSegmentLength', 8192) : declared,
      maxRecvDataSegment: isIser
        ? this.number('InitiatorRecvDataSegmentLength', 8192)
        : wishes.recvDataSegment,
      defaultTime2Wait: this.number('DefaultTime2Wait', 2),
      targetPortalGroupTag: tag === undefined ? undefined : Number(tag),
      targetAlias: this.values.get('TargetAlias'),
    };
  }

  private number(key: KeyName, initial: number): number {
    const value = this.values.get(key);
    return value === undefined ? initial : Number(value);
  }

  private boolean(key: KeyName, initial: boolean): boolean {
    const value = this.values.get(key);
    return value === undefined ? initial : readBoolean(key, value);
  }
}

interface Initial {
  readonly initial: number | string;
}
