/** The events of a queue pair that people may want to know of: numbers, and words for them. */
import {
  QpState,
  REFUSAL_CODES,
  WcStatus,
  describeReport,
  ipFromGid,
  nameOf,
} from '../../../core/spi/index.js';
import type { FlightLog, Gid } from '../../../core/spi/index.js';
import { causeOf, neverAnswered } from './report-words.js';

export const FLIGHT = {
  STATE: 0,
  NAK_SENT: 1,
  NAK_RECEIVED: 2,
  ACK_TIMEOUT: 3,
  RETRY: 4,
  FAILED: 5,
  UNREACHABLE: 6,
  COMM_EST: 7,
  CQ_OVERRUN: 8,
  NO_WAY: 9,
  REFUSED: 10,
  TOO_BIG: 11,
  TOO_LONG: 12,
  NEVER_ANSWERED: 13,
} as const;

/** How many of a queue pair's last ones are told. */
const EVENTS = 16;

/** Those up to the row `last`, oldest first. @param peer of a connection */
export function flightLines(log: FlightLog, last: number, peer: Gid | undefined): string[] {
  return log.read(last, EVENTS).map(({ timeUs, event, a, b }) => {
    const text = (peer && describeReported(event, a, b, peer)) ?? describe(event, a, b);
    return `${(timeUs / 1000).toFixed(3)} ms ${text}`;
  });
}

/** What network or system have said of packets to the peer. */
function describeReported(event: number, a: number, b: number, gid: Gid): string | undefined {
  const to = `packets to ${ipFromGid(gid)}`;
  switch (event) {
    case FLIGHT.UNREACHABLE:
      return `${to}: ${describeReport({ type: 'port-unreachable', gid })}, oldest PSN ${b}`;
    case FLIGHT.NO_WAY:
      return `${to}: ${describeReport({ type: 'unreachable', gid })}, oldest PSN ${b}`;
    case FLIGHT.REFUSED: {
      const code = REFUSAL_CODES[a] ?? '';
      return `${to}: ${describeReport({ type: 'refused', gid, code })}, oldest PSN ${b}`;
    }
    case FLIGHT.TOO_BIG:
      return `${to}: ${causeOf({ type: 'too-big', gid, mtuBytes: a }, gid, b)}`;
    case FLIGHT.TOO_LONG:
      return `${to}: ${causeOf({ type: 'too-long', gid, packetBytes: a, mtuBytes: b }, gid, 0)}`;
    case FLIGHT.NEVER_ANSWERED:
      return `${to}: ${neverAnswered(gid, a)}`;
    default:
      return undefined;
  }
}

function describe(event: number, a: number, b: number): string {
  const psn = `PSN ${b}`;
  switch (event) {
    case FLIGHT.STATE:
      return `${nameOf(QpState, a)} -> ${nameOf(QpState, b)}`;
    case FLIGHT.NAK_SENT:
      return `NAK 0x${a.toString(16)} sent, ${psn}`;
    case FLIGHT.NAK_RECEIVED:
      return `NAK 0x${a.toString(16)} received, ${psn}`;
    case FLIGHT.ACK_TIMEOUT:
      return `no response for ${a} us, oldest ${psn}`;
    case FLIGHT.RETRY:
      return `retry from ${psn}, ${a} left`;
    case FLIGHT.FAILED:
      return `work request ${b} failed: ${nameOf(WcStatus, a)}`;
    case FLIGHT.COMM_EST:
      return `first packet in RTR, ${psn}`;
    default:
      return `completion queue overrun`;
  }
}
