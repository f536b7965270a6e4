/** Events in the flight record of a queue pair: numbers, and their texts. */
import {
  describeReport,
  type Gid,
  ipFromGid,
  nameOf,
  QpState,
  REFUSAL_CODES,
  WcStatus,
} from '../../../core/spi/index.js';
import type { FlightLog } from '../../../core/spi/internal/index.js';
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
  PEER_GONE: 14,
} as const;

/** The number of a queue pair's last events that are reported. */
const EVENTS = 16;

/** Lists the events up to the row `last`, oldest first. @param peer of a connection */
export function flightLines(log: FlightLog, last: number, peer: Gid | undefined): string[] {
  return log.read(last, EVENTS).map(({ timeUs, event, a, b }) => {
    const reported = peer && REPORTED[event];
    const text = reported
      ? `packets to ${ipFromGid(peer)}: ${reported(peer, a, b)}`
      : (OWN[event]?.(a, b) ?? 'completion queue overrun');
    return `${(timeUs / 1000).toFixed(3)} ms ${text}`;
  });
}

/** Texts for reports of the network or the system about packets to the peer. */
const REPORTED: Readonly<Record<number, (gid: Gid, a: number, b: number) => string>> = {
  [FLIGHT.UNREACHABLE]: (gid, _, psn) =>
    `${describeReport({ type: 'port-unreachable', gid })}, oldest PSN ${psn}`,
  [FLIGHT.NO_WAY]: (gid, _, psn) =>
    `${describeReport({ type: 'unreachable', gid })}, oldest PSN ${psn}`,
  [FLIGHT.REFUSED]: (gid, number, psn) => {
    const code = REFUSAL_CODES[number] ?? '';
    return `${describeReport({ type: 'refused', gid, code })}, oldest PSN ${psn}`;
  },
  [FLIGHT.TOO_BIG]: (gid, mtuBytes, ours) => causeOf({ type: 'too-big', gid, mtuBytes }, gid, ours),
  [FLIGHT.TOO_LONG]: (gid, packetBytes, mtuBytes) =>
    causeOf({ type: 'too-long', gid, packetBytes, mtuBytes }, gid, 0),
  [FLIGHT.PEER_GONE]: (gid, path) => describeReport({ type: 'peer-gone', gid, path }),
  [FLIGHT.NEVER_ANSWERED]: (gid, mtuBytes) => neverAnswered(gid, mtuBytes),
};

const OWN: Readonly<Record<number, (a: number, b: number) => string>> = {
  [FLIGHT.STATE]: (from, to) => `${nameOf(QpState, from)} -> ${nameOf(QpState, to)}`,
  [FLIGHT.NAK_SENT]: (syndrome, psn) => `NAK 0x${syndrome.toString(16)} sent, PSN ${psn}`,
  [FLIGHT.NAK_RECEIVED]: (syndrome, psn) => `NAK 0x${syndrome.toString(16)} received, PSN ${psn}`,
  [FLIGHT.ACK_TIMEOUT]: (waitedUs, psn) => `no response for ${waitedUs} us, oldest PSN ${psn}`,
  [FLIGHT.RETRY]: (left, psn) => `retry from PSN ${psn}, ${left} left`,
  [FLIGHT.FAILED]: (status, index) => `work request ${index} failed: ${nameOf(WcStatus, status)}`,
  [FLIGHT.COMM_EST]: (_, psn) => `first packet in RTR, PSN ${psn}`,
};
