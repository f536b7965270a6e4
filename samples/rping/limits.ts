/** Receives and the timeout of both sides. */
import { MESSAGE_BYTES } from './protocol.js';

/** The peer sends one message and waits for ours: two receives are always enough. */
export const RECEIVES = { receives: { buffers: 2, bufferBytes: MESSAGE_BYTES } } as const;

/** Timeout for an unresponsive peer. A peer that is gone is detected sooner. */
export const STEP = { timeoutMs: 10_000 } as const;
