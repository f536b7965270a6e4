/** READs of memory that its owner writes to all the time: each packet is as the memory was once. */
import assert from 'node:assert/strict';
import { openIa } from 'dapl';
import { softroce } from 'dapl/providers/softroce';
import { connected } from '../../plugins/testing/suite/peer.js';
import { loopback } from '../support/loopback.js';

const BYTES = 1 << 20;
const READS = 12;

const words = (bytes: Uint8Array): Uint32Array =>
  new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);

describe('softroce, memory that changes while it is read', () => {
  it('READs of it complete, with bytes that were there', async () => {
    const [active, passive] = await Promise.all(
      [loopback(2, 61), loopback(2, 62)].map((address) =>
        openIa(softroce({ addresses: [address], shm: false })),
      ),
    );
    assert.ok(active && passive);
    const close = async (): Promise<void> => {
      await Promise.all([active.close('abrupt'), passive.close('abrupt')]);
    };
    const pair = { active, passive, passiveAddress: passive.address, close };
    const peers = await connected(pair, { lengthBytes: BYTES });
    const owned = words(peers.passive.lmr.bytes);
    let value = 0;
    const change = (): void => {
      owned.fill(++value);
      turn = setImmediate(change);
    };
    let turn = setImmediate(change);
    try {
      const { ep, lmr } = peers.active;
      for (let i = 0; i < READS; i++) {
        const first = value;
        ep.postRdmaRead(lmr.segment(0, BYTES), i, peers.passive.remote());
        await peers.active.expect(`dto ${i} SUCCESS`);
        const strange = words(lmr.bytes).find((word) => word < first || word > value);
        assert.equal(strange, undefined, `READ ${i}, between ${first} and ${value}`);
      }
    } finally {
      clearImmediate(turn);
      await close();
    }
  });
});
