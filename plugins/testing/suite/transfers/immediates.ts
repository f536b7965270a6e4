/** Immediate data: sends and RDMA writes that carry 32 bits to a receive (IB extensions). */
import assert from 'node:assert/strict';
import { CompletionFlags, DatDto, type DatEvent, DatEventNumber, EventBatch } from 'dapl';
import { group } from '../behaviour.js';
import {
  assertAll,
  assertSameBytes,
  connected,
  expectQuiet,
  fillPattern,
  mtuBytes,
  refuses,
} from '../peer.js';

/** A value of four different bytes with the sign bit set. */
const IMMEDIATE = 0xdeadbe01;

function facts(event: DatEvent | undefined): unknown {
  assert.ok(event?.type === 'dto');
  const { number, operation, immediate, transferredLength } = event;
  return { number, operation, immediate, transferredLength };
}

export const immediates = group('Immediate data', (claim) => {
  claim('send with immediate: the receive is RECV_MSG_IMMED and has the number', async (pair) => {
    const { active, passive } = await connected(pair);
    fillPattern(active.lmr.bytes, 3);
    passive.ep.postRecv(passive.lmr.segment(0, 100), 1);
    active.ep.postSendWithImmediate(active.lmr.segment(0, 60), 2, IMMEDIATE);
    const [received] = await passive.expect('dto 1 SUCCESS');
    assert.deepEqual(facts(received), {
      number: DatEventNumber.IB_DTO,
      operation: DatDto.RECV_MSG_IMMED,
      immediate: IMMEDIATE,
      transferredLength: 60,
    });
    assertSameBytes(passive.lmr.bytes.subarray(0, 60), active.lmr.bytes.subarray(0, 60));
    const [sent] = await active.expect('dto 2 SUCCESS');
    assert.deepEqual(facts(sent), {
      number: DatEventNumber.DTO_COMPLETION,
      operation: DatDto.SEND,
      immediate: undefined,
      transferredLength: 60,
    });
  });

  claim('RDMA write with immediate: bytes first, then RECV_IMMED', async (pair) => {
    const size = 3 * mtuBytes(pair.active) + 5;
    const { active, passive } = await connected(pair);
    fillPattern(active.lmr.bytes, 4);
    passive.lmr.bytes.fill(0xee);
    passive.ep.postRecv(passive.lmr.segment(0, 16), 1);
    const source = active.lmr.segment(0, size);
    active.ep.postRdmaWriteWithImmediate(source, 2, passive.remote(64), IMMEDIATE);
    const [received] = await passive.expect('dto 1 SUCCESS');
    assert.deepEqual(facts(received), {
      number: DatEventNumber.IB_DTO,
      operation: DatDto.RECV_IMMED,
      immediate: IMMEDIATE,
      transferredLength: size,
    });
    assertSameBytes(passive.lmr.bytes.subarray(64, 64 + size), source.bytes);
    // The receive is consumed, but its memory is not written.
    assertAll(passive.lmr.bytes.subarray(0, 64), 0xee);
    const [written] = await active.expect('dto 2 SUCCESS');
    assert.deepEqual(facts(written), {
      number: DatEventNumber.IB_DTO,
      operation: DatDto.RDMA_WRITE_IMMED,
      immediate: undefined,
      transferredLength: size,
    });
  });

  claim('an immediate of 0, and none at all, are told apart', async (pair) => {
    const { active, passive } = await connected(pair);
    for (const cookie of [1, 2, 3]) passive.ep.postRecv([], cookie);
    active.ep.postSendWithImmediate([], 1, 0);
    active.ep.postSend([], 2);
    active.ep.postRdmaWriteWithImmediate([], 3, passive.remote(), 0);
    const events = await passive.expect('dto 1 SUCCESS', 'dto 2 SUCCESS', 'dto 3 SUCCESS');
    assert.deepEqual(
      events.map((event) => event.type === 'dto' && [event.operation, event.immediate]),
      [
        [DatDto.RECV_MSG_IMMED, 0],
        [DatDto.RECEIVE, undefined],
        [DatDto.RECV_IMMED, 0],
      ],
    );
  });

  claim('dequeueInto has the immediates as columns', async (pair) => {
    const { active, passive } = await connected(pair);
    passive.ep.postRecv([], 1);
    passive.ep.postRecv([], 2);
    active.ep.postSendWithImmediate([], 1, IMMEDIATE);
    active.ep.postRdmaWriteWithImmediate([], 2, passive.remote(), 7);
    await active.expect('dto 1 SUCCESS', 'dto 2 SUCCESS');
    const batch = new EventBatch(8);
    while (batch.count < 2) {
      await new Promise((resolve) => setImmediate(resolve));
      if (passive.evd.query().pending === 2) passive.evd.dequeueInto(batch);
    }
    assert.deepEqual([...batch.immediates.subarray(0, 2)], [IMMEDIATE, 7]);
    assert.deepEqual(
      [...batch.operations.subarray(0, 2)],
      [DatDto.RECV_MSG_IMMED, DatDto.RECV_IMMED],
    );
    assert.deepEqual(
      [...batch.numbers.subarray(0, 2)],
      [DatEventNumber.IB_DTO, DatEventNumber.IB_DTO],
    );
  });

  claim('RDMA write with immediate waits for a receive', async (pair) => {
    const transport = { minRnrTimer: 14, rnrRetryCount: 7 };
    const peers = await connected(pair, { attributes: { transport } });
    const { active, passive } = peers;
    active.lmr.bytes[0] = 0x77;
    const source = active.lmr.segment(0, 1);
    active.ep.postRdmaWriteWithImmediate(source, 1, passive.remote(9), 5);
    await expectQuiet(peers);
    passive.ep.postRecv([], 2);
    await passive.expect('dto 2 SUCCESS');
    await active.expect('dto 1 SUCCESS');
    assert.equal(passive.lmr.bytes[9], 0x77);
  });

  claim('RDMA write with immediate: SUPPRESS hides the success here, not there', async (pair) => {
    const peers = await connected(pair);
    const { active, passive } = peers;
    passive.ep.postRecv([], 1);
    const { SUPPRESS } = CompletionFlags;
    active.ep.postRdmaWriteWithImmediate([], 2, passive.remote(), 5, SUPPRESS);
    await passive.expect('dto 1 SUCCESS');
    await expectQuiet(peers);
  });

  claim('RDMA write with immediate, wrong rkey: REMOTE_ACCESS as RDMA_WRITE_IMMED', async (p) => {
    const { active, passive } = await connected(p);
    passive.ep.postRecv([], 1);
    const { address } = passive.remote();
    const wrong = { address, rmrContext: 1 };
    active.ep.postRdmaWriteWithImmediate(active.lmr.segment(0, 8), 2, wrong, 5);
    const [failed] = await active.expect('dto 2 REMOTE_ACCESS', 'BROKEN');
    assert.ok(failed?.type === 'dto');
    assert.equal(failed.operation, DatDto.RDMA_WRITE_IMMED);
    assert.equal(failed.immediate, undefined);
    const seen = await passive.until('BROKEN');
    assert.ok(seen.includes('dto 1 FLUSHED'), seen.join());
  });

  claim('immediates that are not u32 are refused, and nothing is sent', async (pair) => {
    const peers = await connected(pair);
    const { active, passive } = peers;
    for (const value of [-1, 0.5, 2 ** 32, NaN, '1', 1n, undefined]) {
      const immediate = value as number;
      refuses(() => active.ep.postSendWithImmediate([], 1, immediate), 'DAT_INVALID_ARG5');
      const write = (): void =>
        active.ep.postRdmaWriteWithImmediate([], 1, passive.remote(), immediate);
      refuses(write, 'DAT_INVALID_ARG6');
    }
    await expectQuiet(peers);
  });
});
