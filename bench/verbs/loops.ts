/** perftest's loops: one message there and one back, or a window of them. */
import { CompletionFlags, DatDto, RemoteSegment } from 'dapl';
import { type End } from './end.js';
import type { Result, Target, Work } from './workload.js';

const MIB = 2 ** 20;
/** Round trips before those that count: compilation, caches, the peer's first wake-up. */
export const WARM_UP = 20;
const { SUPPRESS, DEFAULT } = CompletionFlags;

/** The client's part: measures. */
export function measure(end: End, target: Target): Promise<Result> {
  switch (end.work.test) {
    case 'ib_send_lat':
      return sendLatency(end);
    case 'ib_write_lat':
      return writeLatency(end, remoteOf(target));
    case 'ib_write_bw':
    case 'ib_read_bw':
      return bandwidth(end, remoteOf(target));
  }
}

/** The server's part, until all is answered or it is stopped: one-sided bandwidth needs nobody. */
export async function serve(end: End, client: Target): Promise<void> {
  if (end.work.test === 'ib_send_lat') await echoSends(end);
  if (end.work.test === 'ib_write_lat') await echoWrites(end, remoteOf(client));
}

function remoteOf({ address, rmrContext }: Target): RemoteSegment {
  return new RemoteSegment({ address: BigInt(`0x${address}`), rmrContext });
}

/** Half round trips, in the order in which they came. */
class Laps {
  private readonly us: Float64Array;
  private count = -WARM_UP;
  private sinceMs = performance.now();

  constructor(private readonly iterations: number) {
    this.us = new Float64Array(iterations);
  }

  /** A round trip is over. Returns whether it was the last. */
  lap(): boolean {
    const nowMs = performance.now();
    if (this.count >= 0) this.us[this.count] = (nowMs - this.sinceMs) * 500;
    this.count += 1;
    this.sinceMs = nowMs;
    return this.count === this.iterations;
  }

  result(): Result {
    const sorted = this.us.slice().sort();
    const at = (quantile: number): number => sorted[Math.floor(quantile * sorted.length)] ?? NaN;
    return { p50: at(0.5), p99: at(0.99) };
  }
}

/** Receives in a batch. A send is not signalled, so one at most: one message is under way. */
function hasReceived(end: End): boolean {
  const { count, operations } = end.poll();
  for (let i = 0; i < count; i++) if (operations[i] === DatDto.RECEIVE) return true;
  return false;
}

async function sendLatency(end: End): Promise<Result> {
  const laps = new Laps(end.work.iterations);
  const isOver = end.onCompletions(() => {
    if (!hasReceived(end)) return false;
    if (laps.lap()) return true;
    pingOn(end);
    return false;
  });
  end.ep.postSend(end.source, 0, SUPPRESS);
  await isOver;
  return laps.result();
}

async function echoSends(end: End): Promise<void> {
  let left = roundTrips(end);
  await end.onCompletions(() => {
    if (!hasReceived(end)) return false;
    pingOn(end);
    left -= 1;
    return left === 0;
  });
}

/** What the client asks for in all: whoever has answered the last one may find himself alone. */
function roundTrips({ work }: End): number {
  return WARM_UP + work.iterations;
}

function pingOn(end: End): void {
  end.postReceive();
  end.ep.postSend(end.source, 0, SUPPRESS);
}

/** Looks at the last byte of what the peer writes; the n-th message has n there. */
class Mailbox {
  private readonly last: number;
  private expected = 1;

  constructor(private readonly end: End) {
    this.last = end.work.bytes - 1;
  }

  /** True once for each message that has come. */
  take(): boolean {
    if (Atomics.load(this.end.sink.bytes, this.last) !== this.expected) return false;
    this.expected = (this.expected + 1) & 0xff;
    return true;
  }
}

/** One write at a time: the next one when the peer's has come and ours is acknowledged. */
class Writer {
  private next = 1;
  private underWay = 0;

  constructor(
    private readonly end: End,
    private readonly remote: RemoteSegment,
  ) {}

  write(): void {
    const { source, ep, work } = this.end;
    source.bytes[work.bytes - 1] = this.next;
    this.next = (this.next + 1) & 0xff;
    ep.postRdmaWrite(source, 0, this.remote, DEFAULT);
    this.underWay += 1;
  }

  /** Whether the last one has completed. */
  isIdle(): boolean {
    if (this.underWay > 0) this.underWay -= this.end.poll().count;
    return this.underWay === 0;
  }
}

async function writeLatency(end: End, remote: RemoteSegment): Promise<Result> {
  const laps = new Laps(end.work.iterations);
  const [mailbox, writer] = [new Mailbox(end), new Writer(end, remote)];
  writer.write();
  await end.spin(() => {
    if (!writer.isIdle() || !mailbox.take()) return false;
    if (laps.lap()) return true;
    writer.write();
    return false;
  });
  return laps.result();
}

async function echoWrites(end: End, remote: RemoteSegment): Promise<void> {
  const [mailbox, writer] = [new Mailbox(end), new Writer(end, remote)];
  let left = roundTrips(end);
  await end.spin(() => {
    if (!writer.isIdle() || !mailbox.take()) return false;
    writer.write();
    left -= 1;
    return left === 0;
  });
}

/** Keeps `depth` messages in flight; the time is from the first post to the last completion. */
async function bandwidth(end: End, remote: RemoteSegment): Promise<Result> {
  const { work } = end;
  const post = posterOf(end, remote);
  let posted = 0;
  let completed = 0;
  const fill = (): void => {
    const until = Math.min(work.iterations, completed + work.depth);
    for (; posted < until; posted++) post(flagsOf(work, posted));
  };
  const startMs = performance.now();
  end.ep.burst(fill);
  await end.spin(() => {
    const { count } = end.poll();
    if (count === 0) return false;
    completed = Math.min(work.iterations, completed + count * work.moderation);
    if (posted < work.iterations) end.ep.burst(fill);
    return completed === work.iterations;
  });
  const seconds = (performance.now() - startMs) / 1000;
  return { mibps: (work.iterations * work.bytes) / MIB / seconds };
}

function posterOf({ ep, source, work }: End, remote: RemoteSegment): (flags: number) => void {
  return work.test === 'ib_read_bw'
    ? (flags) => ep.postRdmaRead(source, 0, remote, flags)
    : (flags) => ep.postRdmaWrite(source, 0, remote, flags);
}

/** Every so many messages one is signalled, and the last of all. */
function flagsOf({ iterations, moderation }: Work, index: number): number {
  const isLast = index === iterations - 1;
  return isLast || index % moderation === moderation - 1 ? DEFAULT : SUPPRESS;
}
