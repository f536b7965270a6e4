/** softroce: READs that have been answered, and whose memory goes before the peer looks. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { type Lmr, MemPrivileges, openIa } from 'dapl';
import { softroce } from 'dapl/providers/softroce';
import { GO, MAIN_SLEEPS, POSTED, type ReaderData, waitFor } from './late-reads-turns.js';
import { CONN_QUAL, Peer, assertSameBytes, fillPattern } from '../../plugins/testing/suite/peer.js';
import { leaveOutUnnamedUser } from '../support/left-out.js';
import { loopback } from '../support/loopback.js';

/** As much as the first window of a connection takes. */
const BYTES = 3 * 57344;
const [LENDER, READER] = [loopback(2, 63), loopback(2, 64)];
const LATER = 0x99;

interface Found {
  readonly result: string;
  readonly bytes: Uint8Array;
  readonly before: Uint8Array;
}

/** What a reader finds for whom `change` came between the answer and its look at it. */
async function read(change: (lender: Peer, lent: Lmr) => void): Promise<Found> {
  const ia = await openIa(softroce({ addresses: [LENDER], shm: false }));
  const turn = new Int32Array(new SharedArrayBuffer(4));
  const lender = new Peer(ia);
  const lent = ia.allocate(BYTES, { pz: lender.pz, privileges: MemPrivileges.ALL });
  fillPattern(lent.bytes, 7);
  const before = lent.bytes.slice();
  const psp = ia.createPsp({ connQual: CONN_QUAL, evd: lender.evd });
  const workerData: ReaderData = { own: READER, to: LENDER, lengthBytes: BYTES, turn };
  const program = fileURLToPath(new URL('late-reads-worker.js', import.meta.url));
  const worker = new Worker(program, { workerData });
  try {
    const ready = once(worker, 'message');
    const cr = await lender.request();
    psp.free();
    const privateData = new Uint8Array(12);
    const view = new DataView(privateData.buffer);
    view.setBigUint64(0, lent.address);
    view.setUint32(8, lent.rmrContext ?? 0);
    cr.accept(lender.ep, { privateData });
    await lender.expect('ESTABLISHED');
    await ready;
    Atomics.store(turn, 0, MAIN_SLEEPS);
    Atomics.notify(turn, 0);
    waitFor(turn, POSTED);
    // The request waits in our socket; now it is answered, to a peer that sleeps.
    await delay(50);
    const message = once(worker, 'message');
    change(lender, lent);
    await delay(10);
    Atomics.store(turn, 0, GO);
    Atomics.notify(turn, 0);
    const [found] = (await message) as [Omit<Found, 'before'>];
    return { ...found, before };
  } finally {
    await worker.terminate();
    await ia.close('abrupt');
  }
}

describe('softroce, READs whose memory goes before the peer takes the answer in', () => {
  it('of a region that is freed and written to: the peer has the bytes of before', async () => {
    const { result, bytes, before } = await read((_, lent) => {
      const { bytes: memory } = lent;
      lent.free();
      memory.fill(LATER);
    });
    assert.equal(result, 'dto 1 SUCCESS');
    assertSameBytes(bytes, before);
  });

  it('of a region that is written to: each byte is one that was there', async () => {
    const { result, bytes, before } = await read((_, lent) => lent.bytes.fill(LATER));
    assert.equal(result, 'dto 1 SUCCESS');
    const strange = bytes.findIndex((byte, i) => byte !== LATER && byte !== before[i]);
    assert.equal(strange, -1);
  });

  it('of a region that is left alone: the peer has it', async () => {
    const { result, bytes, before } = await read(() => undefined);
    assert.equal(result, 'dto 1 SUCCESS');
    assertSameBytes(bytes, before);
  });

  it('after the end of this side, its memory written to: flushed', async function () {
    leaveOutUnnamedUser(this);
    const { result, bytes } = await read((lender, lent) => {
      const { bytes: memory } = lent;
      lender.ep.disconnect('abrupt');
      lent.free();
      memory.fill(LATER);
    });
    assert.equal(result, 'dto 1 FLUSHED');
    assert.ok(!bytes.every((byte) => byte === LATER));
  });
});
