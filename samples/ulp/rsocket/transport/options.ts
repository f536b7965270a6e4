/** Options of a connection: sizes, timeouts, polling. */
import { announcedSlots } from '../wire/index.js';

export interface RsocketOptions {
  /** Bytes of the receive buffer: an even number from 2 to 2^30; default 2^20. */
  readonly receiveBytes?: number;
  /** Bytes that are copied and not acknowledged yet: 2048 to 2^30; default 2^20. */
  readonly sendBytes?: number;
  /** Messages that may wait to be read: 16 to 32768; default 384, as librdmacm. */
  readonly credits?: number;
  /** Messages sent and not acknowledged: 16 to 32768; default 256. */
  readonly sends?: number;
  /** The longest message: 1 to 2^29 - 1 bytes; default 2^18. */
  readonly messageBytes?: number;
  /** Areas that the peer may publish (riomap): 0 to 32512; default 0. */
  readonly iomapSlots?: number;
  /**
   * Silence of the peer after which a keepalive is sent: milliseconds, 10 on; 0 for never; default
   * 5000. A side that only waits for credits also detects a dead peer this way.
   */
  readonly keepAliveMs?: number;
  /** The way to wait for completions; default `event`. */
  readonly polling?: 'event' | 'adaptive';
  /** Time that `close` waits for the peer: milliseconds, 1 on; default 5000. */
  readonly closeTimeoutMs?: number;
  /** Timer; default: real time. */
  readonly after?: After;
}

/** Runs `task` once after so many milliseconds. @returns a function that cancels it */
export type After = (ms: number, task: () => void) => () => void;

export type RsocketPlan = Required<RsocketOptions>;

const DEFAULTS = {
  receiveBytes: 1024 * 1024,
  sendBytes: 1024 * 1024,
  credits: 384,
  sends: 256,
  messageBytes: 256 * 1024,
  iomapSlots: 0,
  keepAliveMs: 5000,
  closeTimeoutMs: 5000,
} as const;

const RANGES: Readonly<Record<keyof typeof DEFAULTS, readonly [number, number]>> = {
  receiveBytes: [2, 2 ** 30],
  sendBytes: [2048, 2 ** 30],
  credits: [16, 32_768],
  sends: [16, 32_768],
  messageBytes: [1, 2 ** 29 - 1],
  iomapSlots: [0, 32_512],
  keepAliveMs: [0, 86_400_000],
  closeTimeoutMs: [1, 2 ** 31 - 1],
};

/** The minimum of endpoints. */
const LEAST_KEEP_ALIVE_MS = 10;

/** Real time. The timer does not keep the process alive; waiting for the network does. */
const realTime: After = (ms, task) => {
  const timer = setTimeout(task, ms).unref();
  return () => clearTimeout(timer);
};

/** @throws RangeError naming option, value and limits */
export function planOf(options: RsocketOptions): RsocketPlan {
  const { polling = 'adaptive', after = realTime } = options;
  const plan = { ...DEFAULTS, ...options, polling, after };
  for (const [name, [least, most]] of Object.entries(RANGES)) {
    const value = plan[name as keyof typeof DEFAULTS];
    if (Number.isInteger(value) && value >= least && value <= most) continue;
    throw new RangeError(`${name} is ${String(value)}, must be an integer ${least} to ${most}`);
  }
  if (plan.keepAliveMs > 0 && plan.keepAliveMs < LEAST_KEEP_ALIVE_MS) {
    throw new RangeError(
      `keepAliveMs is ${plan.keepAliveMs}, must be 0, or ${LEAST_KEEP_ALIVE_MS} on`,
    );
  }
  if (plan.receiveBytes % 2 !== 0) {
    throw new RangeError(`receiveBytes is ${plan.receiveBytes}, must be even: it has two halves`);
  }
  return { ...plan, iomapSlots: announcedSlots(plan.iomapSlots) };
}
