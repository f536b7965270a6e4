/** The last events of a queue pair, kept as numbers and put into words when somebody asks. */
import { QpState, WcStatus, nameOf } from '../../core/spi/index.js';

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

const ENTRIES = 16;
const STRIDE = 4;
/** Numbers of events that are kept: a connection without trouble has not many. */
const CAPACITY = ENTRIES * STRIDE;

export class FlightRecorder {
  /** Grows until it is full, and goes round then. */
  private readonly entries: number[] = [];
  private written = 0;

  record(nowUs: number, event: number, a = 0, b = 0): void {
    const { entries } = this;
    if (entries.length < CAPACITY) entries.push(nowUs, event, a, b);
    else {
      const at = (this.written % ENTRIES) * STRIDE;
      entries[at] = nowUs;
      entries[at + 1] = event;
      entries[at + 2] = a;
      entries[at + 3] = b;
    }
    this.written += 1;
  }

  /** Oldest first. */
  lines(): string[] {
    const first = Math.max(0, this.written - ENTRIES);
    const lines: string[] = [];
    for (let i = first; i < this.written; i++) {
      const at = (i % ENTRIES) * STRIDE;
      const [timeUs = 0, event = 0, a = 0, b = 0] = this.entries.slice(at, at + STRIDE);
      lines.push(`${(timeUs / 1000).toFixed(3)} ms ${describe(event, a, b)}`);
    }
    return lines;
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
    case FLIGHT.UNREACHABLE:
      return `the network says unreachable, oldest ${psn}`;
    case FLIGHT.COMM_EST:
      return `first packet in RTR, ${psn}`;
    default:
      return `completion queue overrun`;
  }
}
