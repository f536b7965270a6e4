// What the packets of one side must be.
import assert from 'node:assert/strict';

import type { RocePacket } from '../roce.js';

/** No other opcodes, and each at least as often: what was late is there twice. */
export function assertOpcodes(
  what: string,
  packets: readonly RocePacket[],
  expected: readonly number[],
): void {
  const seen = countsOf(packets.map(({ opcode }) => opcode));
  const wanted = countsOf(expected);
  const names = (counts: ReadonlyMap<number, number>): string[] =>
    [...counts.keys()].sort((a, b) => a - b).map((opcode) => opcode.toString(16));
  assert.deepEqual(names(seen), names(wanted), `opcodes of ${what}`);
  for (const [opcode, count] of wanted) {
    const is = seen.get(opcode) ?? 0;
    assert.ok(is >= count, `${what} sent opcode ${opcode.toString(16)} ${is} times, not ${count}`);
  }
}

function countsOf(values: readonly number[]): Map<number, number> {
  const counts = new Map<number, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return counts;
}
