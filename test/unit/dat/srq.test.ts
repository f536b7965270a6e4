import assert from 'node:assert/strict';
import { AsyncErrorReason, DatError, type Srq } from '../../../core/index.js';
import { AsyncEventType } from '../../../core/spi/index.js';
import { type Bench, connected, drain, texts, unconnected } from '../../support/fake-endpoints.js';
import type { FakeSharedReceiveQueue } from '../../support/fake-shared-queue.js';

interface Scene extends Bench {
  readonly srq: Srq;
  readonly queue: FakeSharedReceiveQueue;
}

/** The endpoint is on a shared receive queue of eight. */
async function scene(isConnected = true): Promise<Scene> {
  const bench = await unconnected();
  const { ia, pz, evd, cm, world, device } = bench;
  const srq = ia.createSrq({ pz, maxRecvDtos: 8 });
  const [queue] = device.sharedQueues;
  assert.ok(queue !== undefined);
  const evds = { recvEvd: evd, requestEvd: evd, connectEvd: evd };
  const ep = ia.createEndpoint({ pz, ...evds, srq });
  if (isConnected) {
    ep.connect({ address: '192.0.2.2', connQual: 7 });
    cm.connection.emit({ type: 'established', privateData: new Uint8Array(0) });
    world.pump();
    drain(evd);
  }
  return { ...bench, ep, srq, queue };
}

function refusal(call: () => unknown): DatError {
  try {
    call();
  } catch (error) {
    assert.ok(DatError.isDatError(error), String(error));
    return error;
  }
  return assert.fail('the call was taken');
}

describe('shared receive queue', () => {
  it('posts nothing of what the provider refuses', async () => {
    const { srq, queue, lmr, ia, pz } = await scene();
    const other = ia.allocate(8, { pz });
    queue.takes = 0;
    const error = refusal(() => srq.postRecv(other.segment(), 1));
    assert.equal(error.code, 'DAT_INSUFFICIENT_RESOURCES');
    assert.equal(error.value, 1);
    assert.equal(srq.query().outstandingDtos, 0);
    other.free();
    queue.takes = 2;
    const burst = refusal(() =>
      srq.burst(() => {
        for (let i = 0; i < 5; i++) srq.postRecv(lmr.segment(i * 8, 8), i);
      }),
    );
    assert.equal(burst.value, 3, 'the last three');
    assert.equal(srq.query().outstandingDtos, 2);
    queue.takes = Infinity;
    for (let i = 0; i < 6; i++) srq.postRecv(lmr.segment(), i);
    assert.equal(refusal(() => srq.postRecv(lmr.segment())).subtype, 'DAT_RESOURCE_CREDITS');
    assert.equal(new Set(queue.waiting).size, 8);
  });

  it('frees slots in the order of their completions, and no other', async () => {
    const { srq, queue, ep, lmr, device, evd } = await scene();
    for (let i = 0; i < 8; i++) srq.postRecv(lmr.segment(), i);
    const slot = queue.waiting[5] ?? 0;
    queue.complete(device.qp, slot);
    queue.complete(device.qp, slot);
    queue.complete(device.qp, 4711);
    assert.equal(texts(drain(evd)).length, 1, 'a slot that is not posted does not complete');
    assert.equal(srq.query().outstandingDtos, 7);
    srq.postRecv(lmr.segment(), 9);
    assert.equal(queue.waiting.at(-1), slot);
    assert.equal(ep.state, 'CONNECTED');
  });

  it('takes slots back whose endpoint has gone before they were seen', async () => {
    const { srq, queue, ep, lmr, device, evd } = await scene();
    srq.postRecv(lmr.segment(), 1);
    srq.postRecv(lmr.segment(), 2);
    const { qp } = device;
    queue.complete(qp);
    ep.free();
    queue.complete(qp);
    assert.deepEqual(texts(drain(evd)), []);
    assert.equal(srq.query().outstandingDtos, 0);
    srq.free();
    assert.deepEqual(device.ended.slice(-2), ['qp', 'srq']);
  });

  it('that fails says so once, and refuses what would use it', async () => {
    const { srq, queue, lmr, ia, pz, evd } = await scene();
    queue.emit(AsyncEventType.SRQ_ERR);
    const [event] = drain(ia.asyncEvd);
    assert.ok(event?.type === 'async-error' && event.object === srq);
    assert.equal(event.reason, AsyncErrorReason.SRQ.TRANSFER_TO_ERROR);
    assert.equal(srq.state, 'ERROR');
    const evds = { recvEvd: evd, requestEvd: evd, connectEvd: evd };
    for (const call of [
      () => srq.postRecv(lmr.segment()),
      () => srq.resize(4),
      () => srq.setLowWatermark(1),
      () => ia.createEndpoint({ pz, ...evds, srq }),
    ]) {
      assert.equal(refusal(call).subtype, 'DAT_INVALID_STATE_SRQ_ERROR');
    }
    assert.equal(srq.query().state, 'ERROR');
  });

  it('keeps its size and its watermark when the provider refuses another', async () => {
    const { srq, queue } = await scene();
    assert.equal(refusal(() => srq.resize(9)).code, 'DAT_MODEL_NOT_SUPPORTED');
    assert.equal(srq.maxRecvDtos, 8);
    srq.setLowWatermark(3);
    assert.equal(queue.limit, 3);
    queue.setLimit = () => {
      throw new Error('not now');
    };
    refusal(() => srq.setLowWatermark(5));
    assert.equal(srq.query().lowWatermark, 3);
  });

  it('lets an endpoint end when the provider says that no receive comes any more', async () => {
    const { srq, queue, ep, lmr, device, evd, world } = await scene();
    srq.postRecv(lmr.segment(), 1);
    ep.disconnect();
    queue.complete(device.qp);
    assert.deepEqual(texts(drain(evd)), ['dto 1 SUCCESS']);
    assert.equal(ep.state, 'DISCONNECT_PENDING');
    device.qp.eventHandler(AsyncEventType.QP_LAST_WQE_REACHED);
    world.pump();
    assert.deepEqual(texts(drain(evd)), ['DISCONNECTED']);
  });

  it('is shut down before its endpoints when the adapter is closed', async () => {
    const { srq, ia, lmr, device } = await scene();
    srq.postRecv(lmr.segment());
    await ia.close();
    assert.equal(srq.state, 'SHUTDOWN');
    assert.equal(lmr.inFlight, 0);
    const ended = device.ended;
    assert.ok(ended.indexOf('qp') < ended.indexOf('srq'));
    assert.ok(ended.indexOf('srq') < ended.indexOf('mr'));
  });

  it('goes with a device that has been removed, receives posted and all', async () => {
    const { srq, queue, lmr, ia, device, world } = await scene();
    srq.postRecv(lmr.segment(), 1);
    device.deviceEventHandler(AsyncEventType.DEVICE_FATAL);
    queue.ringDoorbell = () => {
      throw new Error('the device is gone');
    };
    world.pump();
    refusal(() => srq.postRecv(lmr.segment(), 2));
    assert.equal(srq.query().outstandingDtos, 1);
    await ia.close();
    assert.equal(lmr.inFlight, 0);
  });

  it('is not offered where the device has none', async () => {
    const { ia, pz, device } = await connected();
    Object.assign(device, { createSharedReceiveQueue: undefined, createMemoryWindow: undefined });
    const none = 'DAT_MODEL_NOT_SUPPORTED';
    assert.equal(refusal(() => ia.createSrq({ pz, maxRecvDtos: 1 })).code, none);
    assert.equal(refusal(() => ia.createRmr(pz)).code, none);
    assert.equal(refusal(() => ia.createRmrForEp(pz)).code, none);
    assert.equal(refusal(() => ia.mapFile(0, { pz })).code, none);
  });
});
