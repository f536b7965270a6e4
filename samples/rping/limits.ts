/** What both sides give the calls of a connection. */
import { MESSAGE_BYTES } from './protocol.js';

/** The peer sends one message and waits for ours: two receives are never used up. */
export const RECEIVES = { receives: { buffers: 2, bufferBytes: MESSAGE_BYTES } } as const;

/** A peer that lives, and does not go on. One that is gone shows sooner. */
export const STEP = { timeoutMs: 10_000 } as const;
