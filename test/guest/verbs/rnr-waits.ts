/**
 * Whether a requester honours the waits of RNR NAKs, as far as a capture at one point of the link
 * can tell. IBTA 9.7.5.2.8.
 *
 * A NAK is captured before its requester has it, and a request after it has left. So whoever waits
 * is never captured with the refused PSN sooner than the wait after the NAK. What is captured
 * sooner left before the NAK came ("crossed" it), or breaks the wait. Who had not seen the NAK had
 * another cause to send that PSN once more, which the capture has too, before the NAK; and each
 * cause sends once:
 *
 * - an earlier RNR NAK whose wait was over;
 * - a sequence NAK;
 * - the time-out of the first packet that was repeated, the refused one or one before it;
 * - a READ before the refused PSN, whose responses did not reach the requester.
 */
import { isRnr, OPCODE, type RocePacket } from '../roce.js';

/** Timer codes and what they stand for, in microseconds. IBTA table 45. */
export const RNR_WAIT_US = { 14: 1_280, 20: 10_240, 24: 40_960 } as const;
/** A guest finds out how fast its clock is when it boots, and on a busy machine not well. */
const CLOCK = 0.9;
const SEQUENCE_NAK = 0x60;
const HALF_OF_PSNS = 1 << 23;

export type CapturedRequest = Pick<RocePacket, 'timeUs' | 'psn' | 'opcode'>;
export type CapturedResponse = Pick<RocePacket, 'timeUs' | 'psn' | 'syndrome'>;

/** What passed between two queue pairs, in the order captured. */
export interface Flow {
  readonly requests: readonly CapturedRequest[];
  readonly responses: readonly CapturedResponse[];
  readonly ackTimeoutUs: number;
}

export interface RnrWaits {
  /** A line for each repetition that broke a wait. */
  readonly broken: readonly string[];
  /** How many repetitions of a refused PSN had left before its NAK came. */
  readonly crossings: number;
}

export function rnrWaits(flow: Flow): RnrWaits {
  const refused = new Set(flow.responses.filter(isRefusal).map(({ psn }) => psn));
  const judged = [...refused].map((psn) => judge(flow, psn));
  return {
    broken: judged.flatMap(({ broken }) => broken),
    crossings: judged.reduce((sum, { crossings }) => sum + crossings, 0),
  };
}

interface Refusal {
  readonly timeUs: number;
  readonly overUs: number;
  isUsed: boolean;
}

function judge(flow: Flow, psn: number): RnrWaits {
  const refusals = flow.responses
    .filter((response) => isRefusal(response) && response.psn === psn)
    .map((response): Refusal => ({ ...response, overUs: overUs(response), isUsed: false }));
  const broken: string[] = [];
  let crossings = 0;
  for (const { request, previous, start, startPrevious } of repetitions(flow.requests, psn)) {
    const { timeUs } = request;
    const known = refusals.filter((refusal) => refusal.timeUs < timeUs);
    const pending = known.find((refusal) => refusal.overUs > timeUs);
    if (pending === undefined) {
      // No wait was over that let it go: it asks, after silence, what that NAK is going to refuse.
      if (known.every(({ isUsed }) => isUsed)) crossings += 1;
      for (const refusal of known) refusal.isUsed = true;
      continue;
    }
    const isAskedFor = flow.responses.some(
      (response) =>
        response.syndrome === SEQUENCE_NAK &&
        response.psn === start.psn &&
        response.timeUs > previous.timeUs &&
        response.timeUs < pending.timeUs,
    );
    const isLate =
      startPrevious !== undefined &&
      start.timeUs - startPrevious.timeUs >= CLOCK * flow.ackTimeoutUs;
    const isRead = start.psn !== psn && start.opcode === OPCODE.READ_REQUEST;
    const waited = known.find(({ isUsed, overUs: end }) => !isUsed && end <= timeUs);
    if (!isAskedFor && !isLate && !isRead) {
      if (waited === undefined) {
        broken.push(`PSN ${psn} again ${timeUs - pending.timeUs} us after its RNR NAK`);
        continue;
      }
      waited.isUsed = true;
    }
    crossings += 1;
  }
  return { broken, crossings };
}

interface Repetition {
  readonly request: CapturedRequest;
  /** The same PSN, as it was captured last. */
  readonly previous: CapturedRequest;
  /** Where the requester went back to, and that packet as it was captured before. */
  readonly start: CapturedRequest;
  readonly startPrevious: CapturedRequest | undefined;
}

function repetitions(requests: readonly CapturedRequest[], psn: number): Repetition[] {
  const found: Repetition[] = [];
  const last = new Map<number, CapturedRequest>();
  let start: CapturedRequest | undefined;
  let startPrevious: CapturedRequest | undefined;
  let before: CapturedRequest | undefined;
  for (const request of requests) {
    if (start === undefined || before === undefined || !isAfter(request.psn, before.psn)) {
      start = request;
      startPrevious = last.get(request.psn);
    }
    const previous = last.get(request.psn);
    if (request.psn === psn && previous !== undefined)
      found.push({ request, previous, start, startPrevious });
    last.set(request.psn, request);
    before = request;
  }
  return found;
}

function isRefusal({ syndrome }: CapturedResponse): boolean {
  return isRnr(syndrome);
}

function overUs({ timeUs, syndrome = 0 }: CapturedResponse): number {
  const code = syndrome & 0x1f;
  const waitUs = (RNR_WAIT_US as Readonly<Record<number, number>>)[code];
  if (waitUs === undefined) throw new Error(`RNR timer ${code}: how long is that?`);
  return timeUs + CLOCK * waitUs;
}

/** PSNs wrap. IBTA 9.7.1. */
function isAfter(psn: number, other: number): boolean {
  const ahead = (psn - other) & 0xffffff;
  return ahead !== 0 && ahead < HALF_OF_PSNS;
}
