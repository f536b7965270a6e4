/**
 * Memory that several adapters of the process register under one name (DAT_MEM_TYPE_SHARED_VIRTUAL,
 * DAT_LMR_COOKIE): all must register the same memory.
 */
import { DatError } from '../../errors/index.js';
import { invalid } from '../../errors/guards.js';

/** Bytes of DAT_LMR_COOKIE; all of them are compared. */
const COOKIE_BYTES = 40;

interface Entry {
  readonly bytes: Uint8Array;
  users: number;
}

const entries = new Map<string, Entry>();

/** The key of a name: its bytes, as DAT pads them. @throws DatError DAT_INVALID_PARAMETER */
export function checkSharedName(operation: string, name: unknown): string {
  const bytes = typeof name === 'string' ? new TextEncoder().encode(name) : name;
  if (bytes instanceof Uint8Array && bytes.length >= 1 && bytes.length <= COOKIE_BYTES) {
    const padded = new Uint8Array(COOKIE_BYTES);
    padded.set(bytes);
    return String.fromCharCode(...padded);
  }
  throw invalid(operation, 'sharedAs', name, '1 to 40 bytes, or a string of so many');
}

/**
 * Joins the memory of a name; the first caller supplies it.
 * @returns a function that leaves it
 * @throws DatError DAT_INVALID_STATE when the name belongs to other memory
 */
export function shareMemory(operation: string, key: string, bytes: Uint8Array): () => void {
  const entry = entries.get(key) ?? { bytes, users: 0 };
  if (!isSame(entry.bytes, bytes)) {
    throw new DatError('DAT_INVALID_STATE', {
      operation,
      message: 'that name stands for other memory: another buffer, offset or length',
      hint: 'pass the same bytes, or free the regions that have the name',
      value: bytes,
    });
  }
  entry.users++;
  entries.set(key, entry);
  return () => {
    if (--entry.users === 0) entries.delete(key);
  };
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return a.buffer === b.buffer && a.byteOffset === b.byteOffset && a.length === b.length;
}
