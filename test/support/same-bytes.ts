import assert from 'node:assert/strict';

/** Of many bytes: `deepEqual` takes minutes to show how two megabytes differ. */
export function assertSameBytes(found: Uint8Array, expected: Uint8Array): void {
  if (Buffer.compare(found, expected) === 0) return;
  const at = expected.findIndex((byte, i) => byte !== found[i]);
  assert.fail(`byte ${at} of ${found.length} is ${found[at]}, and not ${expected[at]}`);
}
