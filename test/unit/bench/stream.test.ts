import assert from 'node:assert/strict';
import { DatDto } from 'dapl';
import { type Cell, cell, serverSlots } from '../../../bench/compare/cells.js';
import type { Connection, Take } from '../../../bench/compare/connection.js';
import { stream } from '../../../bench/compare/stream.js';

const ADDRESS = 0x10000n;

/** Where each WRITE went, in messages from the start; every one completes when it is posted. */
async function places(wanted: Cell): Promise<number[]> {
  const { bytes, depth } = wanted;
  const seen: number[] = [];
  const slots: number[] = [];
  let over = false;
  const postRdmaWrite = (_: unknown, slot: number, remote: { readonly address: bigint }): void => {
    seen.push(Number((remote.address - ADDRESS) / BigInt(bytes)));
    slots.push(slot);
  };
  const connection = {
    cell: wanted,
    segments: Array.from({ length: depth }, () => ({})),
    epOf: () => ({ postRdmaWrite }),
    burst: (work: () => void) => work(),
    stop: () => void (over = true),
    consume: (take: Take) =>
      Promise.resolve().then(() => {
        while (!over) take(DatDto.RDMA_WRITE, slots.shift()!);
      }),
  };
  const target = { port: 0, address: ADDRESS, rmrContext: 0 };
  await stream(connection as unknown as Connection, target, 0.005);
  return seen;
}

describe('A stream of the benchmark', () => {
  it('has memory at the server for twice what is in flight', () => {
    assert.equal(serverSlots(cell('softroce', 'send', 1 << 20)), 8);
    assert.equal(serverSlots(cell('softroce', 'send', 64, { endpoints: 1000 })), 2);
  });

  it('writes all round the memory that receives of SENDs would have', async () => {
    const seen = await places(cell('softroce', 'write', 1 << 20));
    assert.ok(seen.length > 4);
    assert.deepEqual(
      seen,
      seen.map((_, i) => i % 8),
    );
  });
});
