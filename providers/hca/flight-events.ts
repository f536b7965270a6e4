/** The events of a queue pair that people may want to know of: numbers, and words for them. */
import { QpState, WcStatus, nameOf } from '../../core/spi/index.js';
import type { FlightLog } from '../../core/spi/index.js';

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
} as const;

/** How many of a queue pair's last ones are told. */
const EVENTS = 16;

/** Those up to the row `last`, oldest first. */
export function flightLines(log: FlightLog, last: number): string[] {
  return log
    .read(last, EVENTS)
    .map(({ timeUs, event, a, b }) => `${(timeUs / 1000).toFixed(3)} ms ${describe(event, a, b)}`);
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
    case FLIGHT.UNREACHABLE:
      return `the network says unreachable, oldest ${psn}`;
    case FLIGHT.COMM_EST:
      return `first packet in RTR, ${psn}`;
    default:
      return `completion queue overrun`;
  }
}
