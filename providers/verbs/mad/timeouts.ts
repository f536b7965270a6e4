/** How long the kernel takes at most to say what has become of a request. */
import { MAD_BYTES } from '../../../core/spi/index.js';

/** The kernel waits no longer for an ACK, and repeats then. */
const ACK_WAIT_MS = 2000;
/** A receiver of the kernel's lets an eighth of QP1's receive queue come before it answers. */
const LEAST_WINDOW = 8;
/** Least data of a segment: 256 bytes without the longest headers. */
const LEAST_SEGMENT_BYTES = MAD_BYTES - 64;
/** For queues, and work queues, on the way. */
const SLACK_MS = 2000;
/** The longest that the kernel's header can say. */
const MAX_TIMEOUT_MS = 0x7fffffff;

/** Whole milliseconds, which is how the kernel counts. */
export function timeoutMsOf(timeoutUs: number): number {
  return Math.min(Math.ceil(timeoutUs / 1000), MAX_TIMEOUT_MS);
}

/** @param transferBytes of an RMPP transfer; 0 for a single datagram */
export function longestWaitUs(timeoutMs: number, retries: number, transferBytes: number): number {
  const tries = retries + 1;
  const windows = Math.ceil(transferBytes / LEAST_SEGMENT_BYTES / LEAST_WINDOW);
  const acks = windows * tries * Math.min(timeoutMs, ACK_WAIT_MS);
  return (acks + tries * timeoutMs + SLACK_MS) * 1000;
}
