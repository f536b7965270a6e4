/** Which memory may be registered, and what keeps it in place. */
import { markAsUntransferable } from 'node:worker_threads';
import { memoryRefused } from './errors.js';

/** Node's own pool: all its slices share one ArrayBuffer. */
const POOL_BYTES = Buffer.poolSize;

/**
 * The bytes of a view that may be registered.
 * @throws SpiError('EINVAL') with the reason
 */
export function pinnable(memory: ArrayBufferView): Uint8Array {
  const { buffer, byteOffset, byteLength } = memory;
  if (isResizable(buffer)) throw memoryRefused('resizable');
  if (isDetached(buffer)) throw memoryRefused('detached');
  if (byteLength === 0) throw memoryRefused('empty');
  if (isPooled(memory)) throw memoryRefused('pooled');
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/**
 * From now on the memory cannot be transferred to another thread, which would take it from under
 * the adapter. A SharedArrayBuffer has nothing that could. There is no way back: Node has none.
 */
export function pin(memory: ArrayBufferView): void {
  if (memory.buffer instanceof ArrayBuffer) markAsUntransferable(memory.buffer);
}

function isResizable(buffer: ArrayBufferLike): boolean {
  const { resizable, growable } = buffer as { resizable?: boolean; growable?: boolean };
  return resizable === true || growable === true;
}

/** A detached buffer has no bytes, and takes no view. */
function isDetached(buffer: ArrayBufferLike): boolean {
  if (buffer.byteLength > 0) return false;
  try {
    return new Uint8Array(buffer).length !== 0;
  } catch {
    return true;
  }
}

function isPooled(memory: ArrayBufferView): boolean {
  const { buffer, byteLength } = memory;
  return Buffer.isBuffer(memory) && buffer.byteLength === POOL_BYTES && byteLength < POOL_BYTES;
}
