/**
 * The pace of an RC requester. ACKs and their timing decide how much may be in flight and how long
 * to wait. The window is one part of it, the round trip time the other.
 */
import { type ConnectionMemory, NEVER_YET, TIME } from '../queue-pair/queue-pair-memory.js';
import { PSN_MASK, psnAdd, psnDiff } from '../wire/psn.js';
import { CongestionWindow } from './congestion-window.js';

// The time until a packet is answered, estimated as TCP does (RFC 6298); and the shortest one seen,
// which is that of a path without queues. Repeated packets are not timed (Karn's algorithm).

/**
 * Timeout before the first sample. If it is too short, a few packets are sent again, at doubling
 * intervals (no retries). If it is too long, a flow whose first packet is lost waits while the
 * others go on.
 */
const INITIAL_TIMEOUT_US = 5000;

/** The time at the last look, in microseconds. */
export interface HcaClock {
  readonly nowUs: number;
}

/** Forgets all times: the shortest is Infinity. */
function resetRoundTrip(times: ConnectionMemory): void {
  times.shortestUs = Infinity;
  times.smoothedUs = 0;
}

/**
 * Adds the round trip of the timed packet, which has been acknowledged. Called once per ACK. It
 * finds the times itself: a time that is passed to a function or returned by one may become an
 * object.
 */
function addRoundTrip({ doubles, firstDouble }: ConnectionMemory, clock: HcaClock): void {
  const sampleUs = clock.nowUs - doubles[firstDouble + TIME.timedAtUs]!;
  const shortestUs = doubles[firstDouble + TIME.shortestUs]!;
  if (shortestUs === Infinity) {
    doubles[firstDouble + TIME.smoothedUs] = sampleUs;
    doubles[firstDouble + TIME.deviationUs] = sampleUs / 2;
  } else {
    const error = sampleUs - doubles[firstDouble + TIME.smoothedUs]!;
    const deviationUs = doubles[firstDouble + TIME.deviationUs]!;
    doubles[firstDouble + TIME.deviationUs] = deviationUs + (Math.abs(error) - deviationUs) / 4;
    doubles[firstDouble + TIME.smoothedUs]! += error / 8;
  }
  if (sampleUs < shortestUs) doubles[firstDouble + TIME.shortestUs] = sampleUs;
}

/** Delay that queues add to the shortest time, as a ratio; Infinity if unknown. */
function inflationOf({ shortestUs, smoothedUs }: ConnectionMemory): number {
  return shortestUs === Infinity ? Infinity : smoothedUs / shortestUs;
}

/**
 * The requester waits for longer than an answer takes, by all that is known of it, and then probes.
 * @param leastUs of such a wait
 * @param backoff times so long
 */
function awaitAnswer(
  { doubles, firstDouble }: ConnectionMemory,
  clock: HcaClock,
  leastUs: number,
  backoff: number,
): void {
  const known = doubles[firstDouble + TIME.shortestUs] !== Infinity;
  const usualUs =
    doubles[firstDouble + TIME.smoothedUs]! + 4 * doubles[firstDouble + TIME.deviationUs]!;
  const waitUs = Math.max(known ? usualUs : INITIAL_TIMEOUT_US, leastUs);
  doubles[firstDouble + TIME.probeDeadlineUs] = clock.nowUs + waitUs * backoff;
}

const NONE = -1;
/** Least wait before an early repeat: timers of Node are not shorter. */
const LEAST_US = 1000;
/**
 * As `LEAST_US`, on a path that loses packets all the time: there it pays to let the event loop
 * turn meanwhile.
 */
const LOSSY_LEAST_US = 200;

export class RcPace {
  readonly window = new CongestionWindow();
  /** PSNs up to here have been counted into the window. */
  private counted = 0;
  /** One after the PSN that is being timed, or NONE; `timedAtUs` says when it left. */
  private timedEnd = NONE;
  /**
   * Deliveries are counted for a round trip: since `roundAtUs` (NEVER_YET: from the next), and
   * where that was.
   */
  private roundUna = 0;
  /** PSN of the tail-loss probe in flight, or NONE. */
  private probePsn = NONE;
  /** Where the requester went back to, and when. */
  private backPsn = NONE;
  /** Packets before this one were sent before: which of them is answered is not known. */
  private ambiguousEnd = 0;
  /** The time that answers take has been measured since nothing came back in time. */
  timed = false;

  /** Losses of the round trip after `loweredAtUs` are the same event. */
  constructor(private readonly times: ConnectionMemory) {}

  /** @returns the largest window, in packets of `mtuBytes` (see CongestionWindow) */
  begin(mostPackets: number, mtuBytes: number, psn: number): number {
    const most = this.window.begin(mostPackets, mtuBytes);
    resetRoundTrip(this.times);
    this.counted = psn;
    this.timedEnd = NONE;
    this.times.roundAtUs = NEVER_YET;
    this.times.loweredAtUs = NEVER_YET;
    this.probePsn = NONE;
    this.backPsn = NONE;
    this.ambiguousEnd = psn;
    this.timed = false;
    return most;
  }

  /** The path loses packets all the time: waits are short, and exact. */
  get lossy(): boolean {
    return this.window.lossy;
  }

  /** The requester waits before it probes, `backoff` times longer than an answer takes. */
  awaitAnswer(clock: HcaClock, backoff: number): void {
    awaitAnswer(this.times, clock, this.lossy ? LOSSY_LEAST_US : LEAST_US, backoff);
  }

  /** A packet has left that requests an ACK; `psn` is the one after it. */
  onAckRequested(psn: number, nowUs: number): void {
    if (this.timedEnd !== NONE || psnDiff(psn, this.ambiguousEnd) <= 0) return;
    this.timedEnd = psn;
    this.times.timedAtUs = nowUs;
  }

  /** Everything before `una` has been answered. */
  onProgress(una: number, clock: HcaClock): void {
    const { window } = this;
    if (this.probePsn !== NONE) {
      // A responder drops what follows a gap, so more than the probe was there already.
      window.onAnswer(psnDiff(una, psnAdd(this.probePsn, 1)) > 0);
      this.probePsn = NONE;
    }
    if (this.timedEnd !== NONE && psnDiff(una, this.timedEnd) >= 0) {
      addRoundTrip(this.times, clock);
      this.timedEnd = NONE;
      this.timed = true;
    }
    this.countDelivered(una, clock);
    window.onAcknowledged((una - this.counted) & PSN_MASK);
    this.counted = una;
  }

  private countDelivered(una: number, { nowUs }: HcaClock): void {
    const { times } = this;
    const elapsedUs = nowUs - times.roundAtUs;
    if (times.roundAtUs !== NEVER_YET) {
      if (elapsedUs < times.smoothedUs || times.shortestUs === Infinity) return;
      const delivered = (una - this.roundUna) & PSN_MASK;
      this.window.onRoundTrip(delivered, elapsedUs, times.shortestUs);
    }
    times.roundAtUs = nowUs;
    this.roundUna = una;
  }

  /** Packets have been lost. */
  onLoss(nowUs: number): void {
    if (this.probePsn !== NONE) {
      this.window.onAnswer(false);
      this.probePsn = NONE;
    } else if (nowUs - this.times.loweredAtUs >= this.times.smoothedUs) {
      this.window.onLoss(inflationOf(this.times));
      this.times.loweredAtUs = nowUs;
    }
  }

  /** No answer arrived in time for the outstanding packets: the first, `una`, is the probe. */
  onSilence(una: number, outstanding: number, nowUs: number): void {
    this.window.onSilence(inflationOf(this.times), outstanding);
    this.probePsn = una;
    this.times.loweredAtUs = nowUs;
    this.timed = false;
  }

  /**
   * Notes a retransmission from `una` on. The time of an answer to a packet that may have arrived
   * before says nothing (Karn's algorithm).
   * @param ambiguousEnd one after the last packet that may have
   */
  onWentBack(una: number, ambiguousEnd: number, nowUs: number): void {
    this.timedEnd = NONE;
    this.times.roundAtUs = NEVER_YET;
    this.ambiguousEnd = ambiguousEnd;
    this.backPsn = una;
    this.times.backAtUs = nowUs;
  }

  /** True if the oldest packet has already been retransmitted. */
  hasGoneBackTo(una: number): boolean {
    return una === this.backPsn;
  }

  /** True if a sign of loss is probably older than the last retransmission. */
  isEcho(nowUs: number): boolean {
    const { shortestUs, smoothedUs } = this.times;
    const answerUs = shortestUs === Infinity ? LEAST_US : Math.max(shortestUs, smoothedUs);
    return nowUs - this.times.backAtUs < answerUs;
  }
}

// Decides which packets of an RC requester request an acknowledgement (AckReq, IBTA 9.7.5.1.5). The
// last packet of a message does if its completion is awaited. Of messages in quick succession that
// are not awaited, only some do: each acknowledgement costs the peer a packet, and one covers all
// before it.

/** More packets than any window: the next one requests an ACK. */
const OVERDUE = 1 << 20;
/** Messages in a row that may go without. */
const MAX_WITHOUT = 16;
/**
 * A message that comes so long after the one before may be the last for a while, and requests one.
 * Sixteen of these make less than the requester waits before it probes.
 */
const CLOSE_US = 50;

export class RcAckRequests {
  /** Packets since the last request. */
  private since = OVERDUE;
  /** One after the last packet with a request. */
  private requestedEnd = 0;

  constructor(
    private readonly window: CongestionWindow,
    private readonly times: ConnectionMemory,
  ) {}

  /**
   * Restarts, with a connection or with the oldest unacknowledged packet. It requests an ACK at
   * once: that shows the round trip time, or that the missing packet has arrived.
   */
  begin(): void {
    this.since = OVERDUE;
  }

  /** True if the packet built last requests an ACK. */
  get requested(): boolean {
    return this.since === 0;
  }

  /** Notes that the packet before `psn` requested an ACK. */
  noteRequested(psn: number): void {
    this.requestedEnd = psn;
  }

  /** True if any packet from `una` on requests an ACK. */
  areRequested(una: number): boolean {
    return psnDiff(this.requestedEnd, una) > 0;
  }

  /** A request whose answer is more than an acknowledgement. */
  answered(): void {
    this.since = 0;
  }

  /**
   * Decides whether the next packet of a SEND or WRITE requests an ACK.
   * @param last it is the last packet of its message
   * @param awaited the consumer waits for the message to complete
   */
  setsAckReq(last: boolean, awaited: boolean, clock: HcaClock): boolean {
    this.since += 1;
    const requests =
      (last && this.lastRequests(awaited, clock)) || this.since >= this.window.ackEvery;
    if (requests) this.since = 0;
    return requests;
  }

  private lastRequests(awaited: boolean, { nowUs }: HcaClock): boolean {
    const { doubles, firstDouble } = this.times;
    const alone = nowUs - doubles[firstDouble + TIME.sentAtUs]! >= CLOSE_US;
    doubles[firstDouble + TIME.sentAtUs] = nowUs;
    return awaited || alone || this.since >= MAX_WITHOUT || this.window.lossy;
  }
}
