/** Operational negotiation by a target: the result of each key, and the answer. */
import {
  agree,
  ANSWER,
  isKeyName,
  type KeyName,
  KEYS,
  readKey,
  ruleOf,
  WireError,
} from '../../../wire/index.js';

export type SessionType = 'Normal' | 'Discovery';

/** Values that a target wants, by key; a list contains the values that it accepts. */
export type Wishes = Readonly<Partial<Record<KeyName, string>>>;

/** Negotiated values of a session. */
export interface Negotiated {
  /** True if a command may include data. */
  readonly immediateData: boolean;
  /** Limit of that data in bytes. */
  readonly firstBurstLength: number;
  /** Limit of one solicited burst in bytes. */
  readonly maxBurstLength: number;
  /** Limit of data bytes in one PDU to the initiator. */
  readonly sendDataSegmentLength: number;
  /** Limit of data bytes in one PDU to the target. */
  readonly recvDataSegmentLength: number;
  /** True if iSER is in use. */
  readonly rdmaExtensions: boolean;
}

/** Keys without a meaning in a discovery session (RFC 7143, section 13): "Irrelevant" there. */
const FOR_NORMAL_SESSIONS: ReadonlySet<string> = new Set<KeyName>([
  'MaxConnections',
  'InitialR2T',
  'ImmediateData',
  'MaxBurstLength',
  'FirstBurstLength',
  'MaxOutstandingR2T',
  'DataPDUInOrder',
  'DataSequenceInOrder',
  'RDMAExtensions',
  'TaskReporting',
]);

/** The operational keys of one login. */
export class OperationalKeys {
  private readonly values = new Map<KeyName, string>();

  constructor(private readonly wishes: Wishes) {}

  /**
   * @returns the answer, or undefined for a declaration of the initiator
   * @throws WireError for a value that the key cannot have, and for a list without a common value
   */
  answer(key: string, value: string, sessionType: SessionType): string | undefined {
    if (!isKeyName(key)) return ANSWER.NOT_UNDERSTOOD;
    if (sessionType === 'Discovery' && FOR_NORMAL_SESSIONS.has(key)) return ANSWER.IRRELEVANT;
    const rule = ruleOf(key);
    if (rule.kind.startsWith('declared')) {
      this.values.set(key, String(readKey(key, value)));
      return undefined;
    }
    const outcome = agree(key, this.wishOf(key), value);
    if (outcome === ANSWER.REJECT) throw new WireError('text', key, value, this.wishOf(key));
    // A first burst is a part of a burst (RFC 7143, 13.14).
    const most = key === 'FirstBurstLength' ? this.number('MaxBurstLength') : Infinity;
    const answer = Number(outcome) > most ? String(most) : outcome;
    this.values.set(key, answer);
    return answer;
  }

  /** True if the initiator has mentioned the key. */
  has(key: KeyName): boolean {
    return this.values.has(key);
  }

  /** @param declared the MaxRecvDataSegmentLength that the target has declared */
  result(declared: number): Negotiated {
    const rdmaExtensions = this.isYes('RDMAExtensions');
    const maxBurstLength = this.number('MaxBurstLength');
    return {
      immediateData: this.isYes('ImmediateData'),
      firstBurstLength: Math.min(this.number('FirstBurstLength'), maxBurstLength),
      maxBurstLength,
      sendDataSegmentLength: rdmaExtensions
        ? this.number('InitiatorRecvDataSegmentLength')
        : Number(this.values.get('MaxRecvDataSegmentLength') ?? UNSPOKEN_SEGMENT_BYTES),
      recvDataSegmentLength: rdmaExtensions ? this.number('TargetRecvDataSegmentLength') : declared,
      rdmaExtensions,
    };
  }

  private wishOf(key: KeyName): string {
    return this.wishes[key] ?? unspoken(key);
  }

  private number(key: KeyName): number {
    return Number(this.values.get(key) ?? unspoken(key));
  }

  private isYes(key: KeyName): boolean {
    return (this.values.get(key) ?? unspoken(key)) === 'Yes';
  }
}

/** MaxRecvDataSegmentLength of a side that does not declare it (RFC 7143, 13.12). */
export const UNSPOKEN_SEGMENT_BYTES = 8192;

/** The value of a key that neither side mentions. */
function unspoken(key: KeyName): string {
  const rule = KEYS[key];
  if (!('initial' in rule)) return '';
  const { initial } = rule;
  return typeof initial === 'boolean' ? (initial ? 'Yes' : 'No') : String(initial);
}
