/** Checks which memory may be registered, and keeps it in place. */
import { types } from 'node:util';
import { markAsUntransferable } from 'node:worker_threads';
import { memoryRefused } from '../system/errors.js';

/** Node's own pool: all its slices share one ArrayBuffer (from Node 26 on of a little more). */
const POOL_BYTES = Buffer.allocUnsafe(1).buffer.byteLength;

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

/** The number of regions of each buffer. */
const pins = new WeakMap<ArrayBuffer, number>();
/**
 * Memory made by the addon: Node holds it untransferable, and Node 26 aborts if it is marked again.
 */
const external = new WeakSet<ArrayBufferLike>();
/** Methods that move the memory to another ArrayBuffer (Node 22 and later). */
const MOVERS = ['transfer', 'transferToFixedLength'] as const;

/**
 * From now on the memory cannot be transferred to another thread, which would take it from under
 * the adapter: there is no way back, Node has none. And up to `unpin` its own `transfer()` refuses,
 * of which that mark knows nothing before Node 26; calling the prototype's takes the bytes from
 * the buffer, and the region keeps them (native/backing_store.h). A SharedArrayBuffer has neither
 * of the two.
 */
export function pin(memory: ArrayBufferView): void {
  const { buffer } = memory;
  if (!types.isArrayBuffer(buffer)) return;
  if (!external.has(buffer)) markAsUntransferable(buffer);
  const count = pins.get(buffer) ?? 0;
  pins.set(buffer, count + 1);
  if (count > 0) return;
  for (const name of MOVERS) {
    if (!(name in buffer)) continue;
    Reflect.defineProperty(buffer, name, { value: refuseTransfer, configurable: true });
  }
}

/** Memory that the addon has made, before it is registered. */
export function ownMemory<T extends ArrayBufferLike>(buffer: T): T {
  external.add(buffer);
  return buffer;
}

/** A region of it is gone. */
export function unpin(memory: ArrayBufferView): void {
  const { buffer } = memory;
  if (!types.isArrayBuffer(buffer)) return;
  const count = pins.get(buffer) ?? 0;
  if (count > 1) {
    pins.set(buffer, count - 1);
    return;
  }
  pins.delete(buffer);
  for (const name of MOVERS) Reflect.deleteProperty(buffer, name);
}

function refuseTransfer(): never {
  throw memoryRefused('registered');
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
