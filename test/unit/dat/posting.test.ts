import assert from 'node:assert/strict';
import {
  CompletionFlags,
  DatDto,
  DatDtoStatus,
  DatError,
  type DatEvent,
  type Ep,
  type Evd,
  EvdFlags,
  type Lmr,
  MemPrivileges,
  type Pz,
  RemoteSegment,
} from '../../../core/index.js';
import { QpState, SQE, WcStatus, WrFlags, WrOpcode } from '../../../core/spi/index.js';
import { type FakeIa, openFake } from '../../support/fake-provider.js';

interface Bench extends FakeIa {
  readonly pz: Pz;
  readonly evd: Evd;
  readonly ep: Ep;
  readonly lmr: Lmr;
}

/** A connected endpoint with one EVD for everything. */
async function connected(maxRequestDtos = 8, maxRecvDtos = 4): Promise<Bench> {
  const fake = await openFake();
  const pz = fake.ia.createPz();
  const evd = fake.ia.createEvd({ qlen: 64 });
  const ep = fake.ia.createEndpoint({
    pz,
    recvEvd: evd,
    requestEvd: evd,
    connectEvd: evd,
    attributes: { maxRequestDtos, maxRecvDtos, maxRequestIov: 3 },
  });
  const lmr = fake.ia.allocate(4096, { pz, privileges: MemPrivileges.ALL });
  ep.connect({ address: '192.0.2.2', connQual: 7 });
  fake.cm.connection.emit({ type: 'established', privateData: new Uint8Array(0) });
  fake.world.pump();
  evd.dequeue();
  return { ...fake, pz, evd, ep, lmr };
}

function drain(evd: Evd): DatEvent[] {
  const events: DatEvent[] = [];
  for (let event = evd.dequeue(); event !== undefined; event = evd.dequeue()) events.push(event);
  return events;
}

function cookies(events: readonly DatEvent[]): number[] {
  return events.map((event) => (event.type === 'dto' ? event.cookie : -1));
}

describe('posting', () => {
  it('writes requests as the words of ring.ts and rings once', async () => {
    const { ep, lmr, device } = await connected();
    const { qp } = device;
    ep.postSend([lmr.segment(0, 10), lmr.segment(100, 20)], 2 ** 40 + 3);
    assert.equal(qp.sendDoorbells, 1);
    const [send] = qp.work;
    assert.deepEqual(send, {
      index: 0,
      opcode: WrOpcode.SEND,
      flags: WrFlags.SIGNALED,
      cookie: 2 ** 40 + 3,
      remoteAddress: 0n,
      rkey: 0,
      segments: [
        { address: lmr.address, length: 10, lkey: lmr.lmrContext },
        { address: lmr.address + 100n, length: 20, lkey: lmr.lmrContext },
      ],
    });
    const { BARRIER_FENCE, SOLICITED_WAIT, SUPPRESS } = CompletionFlags;
    ep.postSend(lmr.segment(), 1, SOLICITED_WAIT | BARRIER_FENCE | SUPPRESS);
    assert.equal(qp.work[1]?.flags, WrFlags.SOLICITED | WrFlags.FENCE);
    const remote = new RemoteSegment({ address: 0xffff_fff0n, rmrContext: 0xfedcba98 });
    ep.postRdmaWrite(lmr.segment(5, 6), 2, remote.seek(0x20), BARRIER_FENCE);
    assert.equal(qp.work[2]?.opcode, WrOpcode.RDMA_WRITE);
    assert.equal(qp.work[2]?.remoteAddress, 0x1_0000_0010n);
    assert.equal(qp.work[2]?.rkey, 0xfedcba98);
    ep.postRdmaRead(lmr.segment(0, 0), 3, { address: 2n ** 64n - 1n, rmrContext: 1 });
    assert.equal(qp.work[3]?.opcode, WrOpcode.RDMA_READ);
    assert.equal(qp.work[3]?.remoteAddress, 2n ** 64n - 1n);
    assert.equal(qp.sendRing.words[qp.sendRing.wordOf(3) + SQE.INLINE_LENGTH], 0);
    ep.postSend([], 4);
    assert.deepEqual(qp.work[4]?.segments, []);
    assert.equal(qp.sendDoorbells, 5);
  });

  it('writes receives, in any state', async () => {
    const { ia, pz, device, world, lmr } = await connected();
    const ep = ia.createEndpoint({ pz });
    ep.postRecv([lmr.segment(8, 16)], 99);
    assert.equal(device.qp.state, QpState.INIT);
    assert.equal(device.qp.receiveDoorbells, 1);
    assert.deepEqual(device.qp.receives[0]?.segments, [
      { address: lmr.address + 8n, length: 16, lkey: lmr.lmrContext },
    ]);
    assert.equal(device.qp.receives[0]?.cookie, 99);
    world.pump();
  });

  it('rings once for a burst, also when the work throws', async () => {
    const { ep, lmr, device } = await connected();
    const { qp } = device;
    ep.burst(() => {
      ep.postSend(lmr.segment());
      ep.burst(() => ep.postSend(lmr.segment()));
      ep.postRecv(lmr.segment());
      assert.equal(qp.work.length, 0);
    });
    assert.deepEqual([qp.sendDoorbells, qp.receiveDoorbells], [1, 1]);
    assert.throws(() =>
      ep.burst(() => {
        ep.postSend(lmr.segment());
        throw new Error('mine');
      }),
    );
    assert.deepEqual([qp.sendDoorbells, qp.receiveDoorbells, qp.work.length], [2, 1, 3]);
  });

  it('makes events with cookie, operation, length and endpoint', async () => {
    const { ep, lmr, evd, device } = await connected();
    ep.postRecv(lmr.segment(), 11);
    ep.postSend(lmr.segment(0, 5), 12);
    device.qp.completeReceive(77);
    device.qp.completeSend();
    const [receive, send] = drain(evd);
    assert.deepEqual(
      { ...receive },
      {
        type: 'dto',
        number: 1,
        ep,
        cookie: 11,
        status: DatDtoStatus.SUCCESS,
        transferredLength: 77,
        operation: DatDto.RECEIVE,
      },
    );
    assert.equal(send?.type === 'dto' && send.operation, DatDto.SEND);
    assert.equal(send?.type === 'dto' && send.transferredLength, 5);
  });

  it('hides suppressed successes, signals often enough to reclaim, shows failures', async () => {
    const { ep, lmr, evd, device } = await connected(8);
    const { qp } = device;
    for (let i = 0; i < 8; i++) ep.postSend(lmr.segment(), i, CompletionFlags.SUPPRESS);
    assert.deepEqual(
      qp.work.map((work) => work.flags & WrFlags.SIGNALED),
      [0, 0, 0, 2, 0, 0, 0, 2],
    );
    for (let i = 0; i < 4; i++) qp.completeSend();
    // Nothing was dequeued: the post itself takes the completion in.
    for (let i = 8; i < 12; i++) ep.postSend(lmr.segment(), i, CompletionFlags.SUPPRESS);
    assert.throws(() => ep.postSend(lmr.segment(), 99), queueFull);
    for (let i = 0; i < 7; i++) qp.completeSend();
    assert.deepEqual(drain(evd), []);
    qp.completeSend(WcStatus.REM_ACCESS_ERR);
    const [failure, ...rest] = drain(evd);
    assert.equal(failure?.type === 'dto' && failure.status, DatDtoStatus.REMOTE_ACCESS);
    assert.equal(failure?.type === 'dto' && failure.cookie, 11);
    assert.equal(rest[0]?.type, 'connection');
  });

  it('counts free entries, and says when a queue is full', async () => {
    const { ep, lmr, evd, device } = await connected(3, 2);
    for (let i = 0; i < 3; i++) ep.postSend(lmr.segment(), i);
    assert.equal(ep.requestsFree, 0);
    assert.throws(() => ep.postSend(lmr.segment()), queueFull);
    ep.postRecv(lmr.segment());
    ep.postRecv(lmr.segment());
    assert.throws(() => ep.postRecv(lmr.segment()), queueFull);
    assert.equal(device.qp.work.length, 3);
    assert.equal(lmr.inFlight, 5);
    device.qp.completeSend();
    assert.equal(evd.feed.scan(), 1);
    assert.equal(ep.requestsFree, 1);
    assert.equal(lmr.inFlight, 4);
    assert.deepEqual(ep.getStatus(), { state: 'CONNECTED', recvIdle: false, requestIdle: false });
  });

  it('goes round the ring many times', async () => {
    const { ep, lmr, evd, device } = await connected(5);
    let next = 0;
    for (let round = 0; round < 100; round++) {
      const count = (round % 5) + 1;
      for (let i = 0; i < count; i++) {
        const flags = (next + i) % 3 === 0 ? 0 : CompletionFlags.SUPPRESS;
        ep.postSend(lmr.segment(), next + i, flags);
      }
      const expected: number[] = [];
      for (let i = 0; i < count; i++) {
        if ((next + i) % 3 === 0) expected.push(next + i);
        device.qp.completeSend();
      }
      assert.deepEqual(cookies(drain(evd)), expected);
      next += count;
    }
    // What is left is the tail that no signalled request has followed.
    assert.ok(lmr.inFlight <= 2);
  });

  it('keeps regions that requests use', async () => {
    const { ep, lmr, ia, pz, evd, device } = await connected();
    ep.postSend(lmr.segment(), 1);
    assert.throws(
      () => lmr.free(),
      (error) => {
        assert.ok(DatError.isDatError(error));
        assert.equal(error.subtype, 'DAT_INVALID_STATE_LMR_IN_USE');
        assert.equal(error.value, 1);
        return true;
      },
    );
    assert.throws(() => pz.free(), /DAT_INVALID_STATE_PZ_IN_USE/);
    device.qp.completeSend();
    // Freed by the completion's arrival, not by its being dequeued.
    lmr.free();
    assert.equal(device.regions[0]?.destroyed, true);
    assert.equal(cookies(drain(evd))[0], 1);
    const other = ia.allocate(8, { pz });
    const segment = other.segment();
    other.free();
    assert.throws(() => ep.postSend(segment), /DAT_INVALID_HANDLE_LMR/);
  });

  it('gives separate EVDs their own completions', async () => {
    const { ia, pz, lmr, cm, world, device } = await connected();
    const recvEvd = ia.createEvd({ qlen: 8, streams: EvdFlags.DTO });
    const requestEvd = ia.createEvd({ qlen: 8, streams: EvdFlags.DTO });
    const connectEvd = ia.createEvd({ qlen: 8, streams: EvdFlags.CONNECTION });
    const ep = ia.createEndpoint({ pz, recvEvd, requestEvd, connectEvd });
    ep.connect({ address: '192.0.2.2', connQual: 7 });
    cm.connection.emit({ type: 'established', privateData: new Uint8Array(0) });
    world.pump();
    ep.postRecv(lmr.segment(), 1);
    ep.postSend(lmr.segment(), 2);
    device.qp.completeSend();
    device.qp.completeReceive(1);
    assert.deepEqual(cookies(drain(recvEvd)), [1]);
    assert.deepEqual(cookies(drain(requestEvd)), [2]);
    assert.equal(drain(connectEvd).length, 1);
  });
});

function queueFull(error: unknown): boolean {
  assert.ok(DatError.isDatError(error));
  assert.equal(error.code, 'DAT_INSUFFICIENT_RESOURCES');
  assert.equal(error.subtype, 'DAT_RESOURCE_CREDITS');
  return true;
}
