/**
 * Compares what two pairs of ends made of the same script, life by life, and knows where rxe
 * differs from IBTA.
 */
import { isNak, isRnr } from '../roce.js';
import type { Completion } from '../verbs/end.js';
import { REQUEST_PSN } from '../verbs/manual-pair.js';
import { type LifeRecord, RNR_TIMER } from './play.js';
import type { Fault } from './script.js';

/** An acknowledgement on the wire. */
export interface Acknowledgement {
  readonly destinationQpn: number;
  readonly psn: number;
  readonly syndrome: number | undefined;
}

/** A played script: by whom, what they said, what went by. */
export interface Played {
  readonly asks: string;
  readonly answers: string;
  readonly records: readonly LifeRecord[];
  readonly acknowledgements: readonly Acknowledgement[];
}

/** Everything that can be seen of a life, in words, each beside its place. */
type Facts = ReadonlyMap<string, string>;

/** Where rxe 6.1 is known to differ from IBTA and from the HCA; nothing else may. */
interface Deviation {
  readonly fault: Fault;
  /** What rxe was in the pair that differs. */
  readonly rxe: 'asks' | 'answers';
  /** Of which facts: the beginning of their places. */
  readonly place: string;
  readonly hca: RegExp;
  readonly peer: RegExp;
  readonly why: string;
}

const SHORT = 'a receive that is too short is a malformed one to it (NAK 0x63, not 0x61)';
export const DEVIATIONS: readonly Deviation[] = [
  {
    ...{ fault: 'receive too short', rxe: 'answers', place: 'send ', why: SHORT },
    hca: /^REM_INV_REQ_ERR /,
    peer: /^REM_OP_ERR /,
  },
  {
    ...{ fault: 'receive too short', rxe: 'answers', place: 'receive ', why: SHORT },
    hca: /^LOC_LEN_ERR /,
    peer: /^LOC_QP_OP_ERR /,
  },
  {
    ...{ fault: 'receive too short', rxe: 'answers', place: 'NAKs', why: SHORT },
    hca: /61@\d+$/,
    peer: /63@\d+$/,
  },
  {
    ...{ fault: 'source deregistered', rxe: 'asks', place: 'send ' },
    hca: /^LOC_PROT_ERR /,
    peer: /^LOC_QP_OP_ERR /,
    why: 'a key of its own that is gone makes a malformed request of it',
  },
  ...(['bad key', 'out of bounds'] as const).map((fault) => ({
    ...{ fault, rxe: 'answers' as const, place: 'receive ' },
    hca: /^WR_FLUSH_ERR /,
    peer: /^REM_ACCESS_ERR /,
    why: 'a WRITE with immediate takes its receive before its key is looked at',
  })),
];

/** @returns lines about what differs and may not */
export function differences(reference: Played, other: Played): string[] {
  return reference.records.flatMap((record, index) => {
    const counterpart = other.records[index];
    if (counterpart === undefined) return [`life ${index} was not played`];
    const expected = factsOf(reference, record);
    const actual = factsOf(other, counterpart);
    return [...new Set([...expected.keys(), ...actual.keys()])].flatMap((place) => {
      const [hca, peer] = [expected.get(place) ?? 'nothing', actual.get(place) ?? 'nothing'];
      if (hca === peer || isKnown(other, record, place, hca, peer)) return [];
      const fault = record.life.fault ?? 'no fault';
      return [`life ${index} (${fault}), ${place}: ${peer}, and not ${hca}`];
    });
  });
}

function isKnown(
  { asks, answers }: Played,
  { life }: LifeRecord,
  place: string,
  hca: string,
  peer: string,
): boolean {
  return DEVIATIONS.some(
    (deviation) =>
      deviation.fault === life.fault &&
      (deviation.rxe === 'asks' ? asks : answers) === 'rxe' &&
      place.startsWith(deviation.place) &&
      deviation.hca.test(hca) &&
      deviation.peer.test(peer),
  );
}

function factsOf(played: Played, record: LifeRecord): Facts {
  const facts = new Map<string, string>();
  const { keys } = record;
  record.sends.forEach((send, index) => facts.set(`send ${index}`, textOf(send, keys)));
  record.receives.forEach((each, index) => facts.set(`receive ${index}`, textOf(each, keys)));
  record.results.forEach((digest, index) => facts.set(`result ${index}`, String(digest)));
  record.messages.forEach((digest, index) => facts.set(`message ${index}`, String(digest)));
  facts.set("the target's bytes", String(record.target));
  facts.set("the requester's state", record.states.requester);
  facts.set("the responder's state", record.states.responder);
  facts.set('NAKs', naksOf(played, record).join(' '));
  return facts;
}

/** Keys differ between runs, immediates do not. */
function textOf(completion: Completion, keys: readonly number[]): string {
  const { status, wr, opcode, bytes, immediate } = completion;
  const what = opcode === undefined ? '' : ` ${opcode} ${bytes} B`;
  if (immediate === undefined) return `${status} of ${wr}${what}`;
  const window = keys.indexOf(immediate);
  const data = window < 0 ? `immediate ${immediate}` : `key of window ${window}`;
  return `${status} of ${wr}${what}, ${data}`;
}

/**
 * Syndromes and PSNs in order, the latter counted from the first request's. Of RNR NAKs only the
 * last, where no receive comes: how often they are sent, and for which message, depends on when
 * late receives come. Left out too is rxe's sequence NAK behind an RNR NAK: it takes the packets
 * that were in flight behind the refused one for a gap.
 */
function naksOf({ acknowledgements, answers }: Played, { life, qpns }: LifeRecord): string[] {
  const naks: string[] = [];
  let notReadyPsn: number | undefined;
  for (const { destinationQpn, psn, syndrome } of acknowledgements) {
    if (destinationQpn !== qpns.requester || syndrome === undefined || !isNak(syndrome)) continue;
    if (isRnr(syndrome)) notReadyPsn = psn;
    if (syndrome === NOT_READY) continue;
    if (answers === 'rxe' && syndrome === SEQUENCE_NAK && psn === notReadyPsn) continue;
    naks.push(nakText(syndrome, psn));
  }
  const waits = life.fault === 'never a receive' || life.fault === 'ended while waiting';
  return waits ? [...naks, nakText(NOT_READY, notReadyPsn ?? 0)] : naks;
}

function nakText(syndrome: number, psn: number): string {
  return `${syndrome.toString(16)}@${(psn - REQUEST_PSN) & 0xffffff}`;
}

const SEQUENCE_NAK = 0x60;
/** With the timer that the lives ask for. */
const NOT_READY = 0x20 | RNR_TIMER;
