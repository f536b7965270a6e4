/** 64-bit atomics on the peer's memory (IB extensions). */
import assert from 'node:assert/strict';
import { CompletionFlags, DatDto, DatEventNumber, MemPrivileges } from 'dapl';
import { type Claim, group } from '../behaviour.js';
import type { CompliancePair } from '../fixture.js';
import { connected, type Peer, type Peers, refuses, settle } from '../peer.js';

const { ALL, REMOTE_ATOMIC } = MemPrivileges;
const MAX = 2n ** 64n - 1n;
const NEEDS = ['atomic'] as const;

/** Connects, with memory that allows atomics. */
function atomicPeers(pair: CompliancePair, privileges = ALL | REMOTE_ATOMIC): Promise<Peers> {
  return connected(pair, { privileges });
}

function word(peer: Peer, offsetBytes: number): DataView {
  const { bytes } = peer.lmr;
  return new DataView(bytes.buffer, bytes.byteOffset + offsetBytes, 8);
}

/** True on a little-endian machine. */
const LITTLE = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1;
const read = (peer: Peer, offset: number): bigint => word(peer, offset).getBigUint64(0, LITTLE);
const write = (peer: Peer, offset: number, value: bigint): void =>
  word(peer, offset).setBigUint64(0, value, LITTLE);

export const atomics = group('Atomics', (plain) => {
  const claim: Claim = (name, run) => plain(name, run, NEEDS);

  claim('fetch-and-add adds, and brings the old value', async (pair) => {
    const { active, passive } = await atomicPeers(pair);
    write(passive, 64, 40n);
    active.ep.postFetchAdd(active.lmr.segment(8, 8), 1, passive.remote(64), 2n);
    const [done] = await active.expect('dto 1 SUCCESS');
    assert.ok(done?.type === 'dto');
    assert.equal(done.number, DatEventNumber.IB_DTO);
    assert.equal(done.operation, DatDto.FETCH_ADD);
    assert.equal(done.transferredLength, 8);
    assert.equal(read(active, 8), 40n);
    assert.equal(read(passive, 64), 42n);
  });

  claim('fetch-and-add wraps at 2^64, and takes all 64 bits', async (pair) => {
    const { active, passive } = await atomicPeers(pair);
    write(passive, 0, MAX);
    active.ep.postFetchAdd(active.lmr.segment(0, 8), 1, passive.remote(), 0x1234_5678_9abc_def0n);
    await active.expect('dto 1 SUCCESS');
    assert.equal(read(active, 0), MAX);
    assert.equal(read(passive, 0), 0x1234_5678_9abc_deefn);
  });

  claim('compare-and-swap swaps what is equal, and leaves what is not', async (pair) => {
    const { active, passive } = await atomicPeers(pair);
    write(passive, 8, MAX - 5n);
    const result = active.lmr.segment(16, 8);
    active.ep.postCompareSwap(result, 1, passive.remote(8), MAX - 5n, 7n);
    const [swapped] = await active.expect('dto 1 SUCCESS');
    assert.ok(swapped?.type === 'dto');
    assert.equal(swapped.operation, DatDto.CMP_SWAP);
    assert.equal(read(active, 16), MAX - 5n);
    assert.equal(read(passive, 8), 7n);
    active.ep.postCompareSwap(result, 2, passive.remote(8), 8n, 9n);
    await active.expect('dto 2 SUCCESS');
    assert.equal(read(active, 16), 7n);
    assert.equal(read(passive, 8), 7n);
  });

  claim('many atomics in flight: each happens once, in order', async (pair) => {
    const { active, passive } = await atomicPeers(pair);
    const count = 100;
    for (let i = 0; i < count; i++) {
      active.ep.postFetchAdd(active.lmr.segment(8 * i, 8), i, passive.remote(), 3n);
    }
    for (let i = 0; i < count; i++) await active.expect(`dto ${i} SUCCESS`);
    for (let i = 0; i < count; i++) assert.equal(read(active, 8 * i), BigInt(3 * i));
    assert.equal(read(passive, 0), BigInt(3 * count));
  });

  claim('atomics of both sides at once lose nothing', async (pair) => {
    const { active, passive } = await atomicPeers(pair);
    const count = 40;
    for (let i = 0; i < count; i++) {
      active.ep.postFetchAdd(active.lmr.segment(8, 8), i, passive.remote(), 1n);
      passive.ep.postFetchAdd(passive.lmr.segment(8, 8), i, active.remote(), 1n);
    }
    await active.until(`dto ${count - 1} SUCCESS`);
    await passive.until(`dto ${count - 1} SUCCESS`);
    assert.deepEqual([read(active, 0), read(passive, 0)], [BigInt(count), BigInt(count)]);
  });

  claim('SUPPRESS hides the success of an atomic; BARRIER_FENCE waits for it', async (pair) => {
    const { active, passive } = await atomicPeers(pair);
    write(passive, 0, 5n);
    passive.ep.postRecv(passive.lmr.segment(64, 8), 9);
    const result = active.lmr.segment(0, 8);
    active.ep.postFetchAdd(result, 1, passive.remote(), 1n, CompletionFlags.SUPPRESS);
    active.ep.postSend(result, 2, CompletionFlags.BARRIER_FENCE);
    await active.expect('dto 2 SUCCESS');
    await passive.expect('dto 9 SUCCESS');
    assert.equal(read(passive, 64), 5n);
  });

  claim('without REMOTE_ATOMIC: REMOTE_ACCESS, memory untouched, one BROKEN', async (pair) => {
    const { active, passive } = await atomicPeers(pair, ALL);
    write(passive, 0, 11n);
    active.ep.postFetchAdd(active.lmr.segment(0, 8), 1, passive.remote(), 1n);
    active.ep.postCompareSwap(active.lmr.segment(0, 8), 2, passive.remote(), 11n, 1n);
    await active.expect('dto 1 REMOTE_ACCESS', 'dto 2 FLUSHED', 'BROKEN');
    await settle(pair);
    assert.equal(read(passive, 0), 11n);
  });

  claim('an atomic beyond the region: REMOTE_ACCESS, memory untouched', async (pair) => {
    const { active, passive } = await atomicPeers(pair);
    const end = passive.lmr.lengthBytes;
    active.ep.postFetchAdd(active.lmr.segment(0, 8), 1, passive.remote(end), 1n);
    await active.expect('dto 1 REMOTE_ACCESS', 'BROKEN');
  });

  claim('an atomic with a wrong key: REMOTE_ACCESS, memory untouched', async (pair) => {
    const { active, passive } = await atomicPeers(pair);
    write(passive, 0, 11n);
    const { address, rmrContext } = passive.remote();
    const wrong = { address, rmrContext: (rmrContext ^ 1) >>> 0 };
    active.ep.postCompareSwap(active.lmr.segment(0, 8), 1, wrong, 11n, 1n);
    await active.expect('dto 1 REMOTE_ACCESS', 'BROKEN');
    await settle(pair);
    assert.equal(read(passive, 0), 11n);
  });

  claim('fetch-and-add of 0 reads, and changes nothing', async (pair) => {
    const { active, passive } = await atomicPeers(pair);
    write(passive, 0, 11n);
    active.ep.postFetchAdd(active.lmr.segment(0, 8), 1, passive.remote(), 0n);
    await active.expect('dto 1 SUCCESS');
    assert.deepEqual([read(active, 0), read(passive, 0)], [11n, 11n]);
  });

  claim('bad operands, sinks and addresses are refused, and the endpoint goes on', async (pair) => {
    const { active, passive } = await atomicPeers(pair);
    const { ep, lmr } = active;
    const sink = lmr.segment(0, 8);
    const to = passive.remote();
    for (const bad of [-1n, 2n ** 64n, 1, '1', undefined]) {
      refuses(() => ep.postFetchAdd(sink, 1, to, bad as bigint), 'DAT_INVALID_ARG2');
      refuses(() => ep.postCompareSwap(sink, 1, to, bad as bigint, 0n), 'DAT_INVALID_ARG2');
      refuses(() => ep.postCompareSwap(sink, 1, to, 0n, bad as bigint), 'DAT_INVALID_ARG3');
    }
    for (const bytes of [0, 4, 7, 9, 16]) {
      refuses(() => ep.postFetchAdd(lmr.segment(0, bytes), 1, to, 1n), 'DAT_INVALID_ARG3');
    }
    for (const off of [1, 2, 4, 7]) {
      refuses(() => ep.postFetchAdd(sink, 1, passive.remote(off), 1n), 'DAT_INVALID_ARG5');
    }
    refuses(
      () => ep.postFetchAdd(sink, 1, to, 1n, CompletionFlags.SOLICITED_WAIT),
      'DAT_INVALID_ARG6',
    );
    ep.postFetchAdd(sink, 3, to, 1n);
    await active.expect('dto 3 SUCCESS');
    assert.equal(read(passive, 0), 1n);
  });

  claim('maxRdmaReadOut 0 refuses atomics and reads', async (pair) => {
    const { active, passive } = await connected(pair, {
      privileges: ALL | REMOTE_ATOMIC,
      attributes: { maxRdmaReadOut: 0 },
    });
    const sink = active.lmr.segment(0, 8);
    refuses(() => active.ep.postFetchAdd(sink, 1, passive.remote(), 1n), 'DAT_INVALID_STATE');
    refuses(() => active.ep.postRdmaRead(sink, 1, passive.remote()), 'DAT_INVALID_STATE');
  });
});
