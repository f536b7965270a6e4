/**
 * What may be registered. A device keeps the address of registered memory, so memory that can move,
 * shrink, go away, or that is shared with data of somebody else, is refused with the reason.
 */
import { DatError, type DatType } from '../errors/index.js';
import { invalid } from './guards.js';

/**
 * The bytes of memory that is given to `createLmr`.
 *
 * SharedArrayBuffer is refused: Node-API cannot hand its address to a native provider, and a region
 * that works on one provider only would be a trap.
 */
export function checkMemory(operation: string, position: number, memory: unknown): Uint8Array {
  if (memory instanceof ArrayBuffer) {
    return checkMemory(operation, position, isDetached(memory) ? undefined : wrap(memory));
  }
  if (!ArrayBuffer.isView(memory)) {
    const why = 'an ArrayBuffer or a view of one (attached: not transferred away)';
    throw invalid(operation, position, 'memory', memory, why);
  }
  const refuse = (why: string, hint: string, code: DatType = 'DAT_INVALID_PARAMETER'): DatError =>
    new DatError(code, { operation, message: `memory ${why}`, hint, value: memory });
  const { buffer } = memory;
  if (!(buffer instanceof ArrayBuffer)) {
    const why = 'is a SharedArrayBuffer, which native providers cannot address';
    throw refuse(why, 'use ia.allocate() and copy', 'DAT_MODEL_NOT_SUPPORTED');
  }
  if (isDetached(buffer)) {
    throw refuse('is detached: its ArrayBuffer was transferred', 'register before transferring');
  }
  if ('resizable' in buffer && buffer.resizable === true) {
    throw refuse('is resizable: its bytes may vanish while a peer writes', 'use a fixed length');
  }
  if (memory.byteLength === 0) {
    throw refuse('has 0 bytes', 'a region has at least 1 byte', 'DAT_LENGTH_ERROR');
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
function isDetached(buffer: ArrayBuffer): boolean {
  if (buffer.byteLength !== 0) return false;
  try {
    return wrap(buffer).byteLength !== 0;
  } catch {
    return true;
  }
}

function wrap(buffer: ArrayBuffer): Uint8Array {
  return new Uint8Array(buffer);
}

/** A small Buffer that is a part of a slab: its neighbours belong to other code. */
function isPooled(memory: ArrayBufferView, buffer: ArrayBuffer): boolean {
  return (
    Buffer.isBuffer(memory) &&
    memory.byteLength < buffer.byteLength &&
    buffer.byteLength <= Buffer.poolSize
  );
}
