/** Options of a connection: sizes, modes, timeouts, polling. */
import { LEAST_RECEIVE_BYTES, type LocalLimits, MOST_MESSAGE_BYTES } from '../session/index.js';
import type { Mode } from '../wire/index.js';
import type { Tap } from './tap.js';

export interface SdpOptions {
  /** Receives that are posted: 4 to 1024; default 64. */
  readonly receives?: number;
  /** Bytes of each: 128 to 1048576; default 32768. */
  readonly receiveBytes?: number;
  /** Size to which the peer may enlarge receives: `receiveBytes` to 1048576, default 65536. */
  readonly maxReceiveBytes?: number;
  /** Bytes that receives of the peer should have: 128 to 1048576; default 32768. */
  readonly desiredPeerBytes?: number;
  /** SrcAvail, and SinkAvail, that the peer may have outstanding: 1 to 255; default 4. */
  readonly maxAdverts?: number;
  /**
   * The most advanced mode, as a source and as a sink: BUFFERED copies everything, COMBINED reads
   * one SrcAvail at a time, PIPELINED several. Default PIPELINED.
   */
  readonly zeroCopy?: Mode;
  /**
   * True to offer memory of this side to the peer's writes (SinkAvail) in PIPELINED. Default false.
   */
  readonly offersSink?: boolean;
  /** Number of contiguous bytes from which they are not copied: 2 to 2^30; default 1 MiB. */
  readonly zeroCopyBytes?: number;
  /** Bytes of one SrcAvail at most: 4096 to 2^30; default 4 MiB. */
  readonly advertBytes?: number;
  /**
   * Size of a piece of memory for the data of SrcAvail and SinkAvail: 4096 to 2^24; default 1 MiB.
   */
  readonly areaBytes?: number;
  /** Number of such pieces for a connection: 1 to 1024; default 2. */
  readonly areas?: number;
  /** A SrcAvail is cancelled after so many milliseconds without progress: 1 on; default 1000. */
  readonly advertMs?: number;
  /** A cancel that is not answered ends the connection: milliseconds, 1 on; default 60000. */
  readonly cancelMs?: number;
  /** Time that `close` waits for the peer: milliseconds, 1 on; default 5000. */
  readonly closeTimeoutMs?: number;
  /** The way to wait for completions; default `event`. */
  readonly polling?: 'event' | 'adaptive';
  /** Receives every message and RDMA operation of each connection. */
  readonly tap?: Tap | undefined;
  /** Clock and timers; default: real time. */
  readonly time?: Time;
}

export interface Time {
  /** Milliseconds; never goes back. */
  now(): number;
  /** Runs `task` once after so many milliseconds. @returns a function that cancels it */
  after(ms: number, task: () => void): () => void;
}

export type SdpPlan = Required<SdpOptions>;

/**
 * Size from which bytes are not copied. In bench:sockets both ways are equal at 16 MiB and have not
 * crossed there (docs/sdp.md).
 */
const CROSSING_BYTES = 32 * 1024 * 1024;

const DEFAULTS = {
  receives: 64,
  receiveBytes: 32 * 1024,
  maxReceiveBytes: 64 * 1024,
  desiredPeerBytes: 32 * 1024,
  maxAdverts: 4,
  zeroCopyBytes: CROSSING_BYTES,
  advertBytes: 4 * 1024 * 1024,
  areaBytes: 1024 * 1024,
  areas: 2,
  advertMs: 1000,
  cancelMs: 60_000,
  closeTimeoutMs: 5000,
} as const;

const MOST_BYTES = 2 ** 20;
const MOST_MS = 2 ** 31 - 1;
const LEAST_BYTES = 128;

const RANGES: Readonly<Record<keyof typeof DEFAULTS, readonly [number, number]>> = {
  receives: [4, 1024],
  receiveBytes: [LEAST_BYTES, MOST_BYTES],
  maxReceiveBytes: [LEAST_BYTES, MOST_BYTES],
  desiredPeerBytes: [LEAST_BYTES, MOST_BYTES],
  maxAdverts: [1, 255],
  zeroCopyBytes: [2, 2 ** 30],
  advertBytes: [4096, 2 ** 30],
  areaBytes: [4096, 2 ** 24],
  areas: [1, 1024],
  advertMs: [1, MOST_MS],
  cancelMs: [1, MOST_MS],
  closeTimeoutMs: [1, MOST_MS],
};

const MODE_NAMES: readonly Mode[] = ['BUFFERED', 'COMBINED', 'PIPELINED'];

/** Real time. Timers do not keep the process alive; waiting for the network does. */
const REAL_TIME: Time = {
  now: () => performance.now(),
  after(ms, task) {
    const timer = setTimeout(task, ms).unref();
    return () => clearTimeout(timer);
  },
};

/** @throws RangeError naming option, value and limits */
export function planOf(options: SdpOptions): SdpPlan {
  const { zeroCopy = 'PIPELINED', offersSink = false, polling = 'adaptive' } = options;
  const { time = REAL_TIME, tap } = options;
  const plan = { ...DEFAULTS, ...options, zeroCopy, offersSink, polling, time, tap };
  for (const [name, [least, most]] of Object.entries(RANGES)) {
    const value = plan[name as keyof typeof DEFAULTS];
    if (Number.isInteger(value) && value >= least && value <= most) continue;
    throw new RangeError(`${name} is ${String(value)}, must be an integer ${least} to ${most}`);
  }
  if (!MODE_NAMES.includes(zeroCopy)) {
    throw new RangeError(`zeroCopy is ${String(zeroCopy)}, must be ${MODE_NAMES.join(', ')}`);
  }
  const maxReceiveBytes = Math.max(plan.maxReceiveBytes, plan.receiveBytes);
  return { ...plan, maxReceiveBytes };
}

export function limitsOf(plan: SdpPlan): LocalLimits {
  const { receives, receiveBytes, maxReceiveBytes, desiredPeerBytes, maxAdverts } = plan;
  const { zeroCopy: most, offersSink, zeroCopyBytes: thresholdBytes, advertBytes } = plan;
  const { advertMs, cancelMs, closeTimeoutMs: finMs } = plan;
  return {
    ...{ receives, receiveBytes, maxReceiveBytes, maxAdverts },
    wantedPeerBytes: Math.min(desiredPeerBytes, MOST_MESSAGE_BYTES),
    zeroCopy: { most, offersSink, thresholdBytes, advertBytes },
    times: { advertMs, cancelMs, finMs },
  };
}

/** Size of the buffers for messages to such a peer. */
export function sendBytesOf(plan: SdpPlan, peerBytes: number): number {
  const most = Math.max(peerBytes, plan.desiredPeerBytes, LEAST_RECEIVE_BYTES);
  return Math.min(most, MOST_MESSAGE_BYTES);
}
