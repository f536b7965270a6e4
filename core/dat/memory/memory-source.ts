/**
 * What may be registered. A device keeps the address of registered memory, so memory that can move,
 * shrink, go away, or that is shared with unrelated data, is refused with the reason.
 */
import { DatError, type DatSubtype, type DatType } from '../../errors/index.js';
import { invalid } from '../../errors/guards.js';
import { checkViewable } from './view-limit.js';

/**
 * The bytes of memory that is given to `createLmr`. A SharedArrayBuffer is welcome: other threads
 * see what peers write, with no more order than threads have among themselves.
 */
export function checkMemory(operation: string, position: number, memory: unknown): Uint8Array {
  if (memory instanceof ArrayBuffer || memory instanceof SharedArrayBuffer) {
    checkViewable(operation, memory.byteLength);
    return checkMemory(operation, position, isDetached(memory) ? undefined : wrap(memory));
  }
  if (!ArrayBuffer.isView(memory)) {
    const why =
      'an ArrayBuffer, a SharedArrayBuffer or a view of one (attached: not transferred away)';
    throw invalid(operation, position, 'memory', memory, why);
  }
  checkViewable(operation, memory.byteLength);
  const refuse = (why: string, hint: string, code: DatType = 'DAT_INVALID_PARAMETER'): DatError =>
    new DatError(code, {
      ...(code === 'DAT_INVALID_PARAMETER' && {
        subtype: `DAT_INVALID_ARG${position}` as DatSubtype,
      }),
      operation,
      message: `memory ${why}`,
      hint,
      value: memory,
    });
  const { buffer } = memory;
  if (isDetached(buffer)) {
    throw refuse('is detached: its ArrayBuffer was transferred', 'register before transferring');
  }
  if (isElastic(buffer)) {
    throw refuse('is resizable: its bytes may vanish while a peer writes', 'use a fixed length');
  }
  if (memory.byteLength === 0) {
    throw refuse('has 0 bytes', 'register 1 byte at least', 'DAT_LENGTH_ERROR');
  }
  if (isPooled(memory, buffer)) {
    throw refuse(
      `is ${memory.byteLength} bytes of Node's shared pool of ${buffer.byteLength}`,
      'use ia.allocate() or Buffer.allocUnsafeSlow()',
    );
  }
  return new Uint8Array(buffer, memory.byteOffset, memory.byteLength);
}

/**
 * Node 20 has no `ArrayBuffer.prototype.detached`; a detached one has no bytes and takes no view.
 */
function isDetached(buffer: ArrayBufferLike): boolean {
  if (buffer instanceof SharedArrayBuffer || buffer.byteLength !== 0) return false;
  try {
    return wrap(buffer).byteLength !== 0;
  } catch {
    return true;
  }
}

/** Its length may change: a resizable ArrayBuffer, a growable SharedArrayBuffer. */
function isElastic(buffer: ArrayBufferLike): boolean {
  const { resizable, growable } = buffer as { resizable?: boolean; growable?: boolean };
  return resizable === true || growable === true;
}

function wrap(buffer: ArrayBufferLike): Uint8Array {
  return new Uint8Array(buffer);
}

/** What a slab of small Buffers has: from Node 26 on a little more than Buffer.poolSize. */
const POOL_BYTES = Buffer.allocUnsafe(1).buffer.byteLength;

/** A small Buffer that is a part of a slab: its neighbours belong to other code. */
function isPooled(memory: ArrayBufferView, buffer: ArrayBufferLike): boolean {
  return (
    Buffer.isBuffer(memory) &&
    memory.byteLength < buffer.byteLength &&
    buffer.byteLength <= POOL_BYTES
  );
}
