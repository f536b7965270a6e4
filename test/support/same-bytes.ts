import assert from 'node:assert/strict';

/** Of many bytes: `deepEqual` takes minutes to show how two megabytes differ. */
export function assertSameBytes(found: Uint8Array, expected: Uint8Array): void {
  if (Buffer.compare(found, expected) === 0) return;
  const at = expected.findIndex((byte, i) => byte !== found[i]);
  assert.fail(`byte ${at} of ${found.length} is ${found[at]}, and not ${expected[at]}`);
}

class OwnBytes extends Uint8Array {
  toJSON(): string {
    return 'not the bytes';
  }
}

function sliceOf(bytes: Uint8Array): Uint8Array {
  const whole = new Uint8Array(bytes.length + 8).fill(0xee);
  whole.set(bytes, 4);
  return whole.subarray(4, 4 + bytes.length);
}

/** What a program may have its bytes in. */
export const BYTES_AS: Readonly<Record<string, (bytes: Uint8Array) => Uint8Array>> = {
  'a Buffer': (bytes) => Buffer.from(bytes),
  'a slice': sliceOf,
  'a slice of a Buffer': (bytes) => {
    const slice = sliceOf(bytes);
    return Buffer.from(slice.buffer, slice.byteOffset, slice.length);
  },
  'a subclass': (bytes) => new OwnBytes(bytes),
};

/** A copy of plain data with each of its bytes in something else. */
export function withBytesAs<T>(data: T, bytesAs: (bytes: Uint8Array) => Uint8Array): T {
  const other = (value: unknown): unknown => {
    if (value instanceof Uint8Array) return bytesAs(value);
    if (Array.isArray(value)) return value.map(other);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, other(one)]));
  };
  return other(data) as T;
}
