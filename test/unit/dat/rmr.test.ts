import assert from 'node:assert/strict';
import { DatDtoStatus, type DatEvent, MemPrivileges, type Rmr } from '../../../core/index.js';
import { Access, SQE, WcFlags, WcStatus, WrFlags, WrOpcode } from '../../../core/spi/index.js';
import { type Bench, connected, drain, texts } from '../../support/fake-endpoints.js';

const { REMOTE_READ, REMOTE_WRITE } = MemPrivileges;

/** Statuses of binds, and other events as texts. */
function outcomes(events: readonly DatEvent[]): (string | number)[] {
  return events.map((event) =>
    event.type === 'rmr-bind' ? `bind ${event.cookie} ${event.status}` : (texts([event])[0] ?? ''),
  );
}

function done(cookie: number, status: keyof typeof DatDtoStatus): string {
  return `bind ${cookie} ${DatDtoStatus[status]}`;
}

/** Words of the oldest request without an end. */
function words({ device }: Bench): (word: number) => number {
  const [work] = device.qp.work;
  assert.ok(work !== undefined);
  const { sendRing } = device.qp;
  // The upper bits of the first word are core's own.
  const mask = (word: number): number => (word === SQE.CONTROL ? 0xffffff : -1);
  return (word) => ((sendRing.words[sendRing.wordOf(work.index) + word] ?? 0) & mask(word)) >>> 0;
}

function bound(bench: Bench, rmr: Rmr, cookie = 1): void {
  rmr.bind(bench.lmr.segment(0, 64), bench.ep, { cookie });
  while (bench.device.qp.work.length > 0) bench.device.qp.completeSend();
  drain(bench.evd);
}

describe('remote memory region', () => {
  it('writes a bind as the provider reads it', async () => {
    const bench = await connected();
    const { ia, pz, lmr, ep } = bench;
    const rmr = ia.createRmr(pz);
    const privileges = REMOTE_READ | REMOTE_WRITE;
    const context = rmr.bind(lmr.segment(16, 32), ep, { privileges, cookie: 2 ** 33 + 5 });
    const at = words(bench);
    assert.equal(at(SQE.CONTROL), WrOpcode.BIND_MW | (WrFlags.SIGNALED << 8));
    assert.equal(at(SQE.COOKIE_LO), 5);
    assert.equal(at(SQE.COOKIE_HI), 2);
    assert.equal(BigInt(at(SQE.REMOTE_ADDRESS_LO)), (lmr.address + 16n) & 0xffffffffn);
    assert.equal(BigInt(at(SQE.REMOTE_ADDRESS_HI)), (lmr.address + 16n) >> 32n);
    assert.equal(at(SQE.BIND_LENGTH_LO), 32);
    assert.equal(at(SQE.BIND_LENGTH_HI), 0);
    assert.equal(at(SQE.BIND_REGION_LKEY), lmr.lmrContext);
    assert.equal(at(SQE.BIND_ACCESS), Access.REMOTE_READ | Access.REMOTE_WRITE);
    assert.equal(at(SQE.BIND_RKEY), context);
    assert.equal((context ?? 0) >>> 8, at(SQE.BIND_WINDOW));
  });

  it('that fails after the post breaks the connection, and leaves it as it was', async () => {
    const bench = await connected();
    const { ia, pz, lmr, ep, evd, device } = bench;
    const rmr = ia.createRmr(pz);
    bound(bench, rmr);
    const before = rmr.rmrContext;
    rmr.bind(lmr.segment(64, 64), ep, { cookie: 2 });
    rmr.bind(lmr.segment(128, 64), ep, { cookie: 3 });
    ep.postSend(lmr.segment(), 4);
    assert.notEqual(rmr.rmrContext, before);
    device.qp.completeSend(WcStatus.MW_BIND_ERR);
    assert.deepEqual(outcomes(drain(evd)), [
      done(2, 'RMR_OPERATION_FAILED'),
      done(3, 'FLUSHED'),
      'dto 4 FLUSHED',
      'BROKEN',
    ]);
    assert.equal(ep.state, 'DISCONNECTED');
    assert.equal(rmr.rmrContext, before);
    assert.equal(lmr.query().boundRmrs, 1);
    rmr.free();
    lmr.free();
  });

  it('of an endpoint is closed before it is opened anew, with one event', async () => {
    const bench = await connected();
    const { ia, pz, lmr, ep, evd, device } = bench;
    const rmr = ia.createRmrForEp(pz);
    bound(bench, rmr);
    const old = rmr.rmrContext;
    rmr.bind(lmr.segment(64, 64), ep, { cookie: 2 });
    assert.equal(words(bench)(SQE.CONTROL), WrOpcode.LOCAL_INV);
    assert.equal(words(bench)(SQE.IMMEDIATE_OR_INVALIDATE), old);
    device.qp.completeSend();
    assert.equal(words(bench)(SQE.CONTROL) & 0xff, WrOpcode.BIND_MW);
    device.qp.completeSend();
    assert.deepEqual(outcomes(drain(evd)), [done(2, 'SUCCESS')]);
    rmr.unbind(ep, { cookie: 3 });
    assert.equal(words(bench)(SQE.CONTROL), WrOpcode.LOCAL_INV | (WrFlags.SIGNALED << 8));
    device.qp.completeSend();
    assert.deepEqual(outcomes(drain(evd)), [done(3, 'SUCCESS')]);
    assert.equal(rmr.query().lmr, undefined);
  });

  it('of an endpoint tells of a failed closing by the event of the bind', async () => {
    const bench = await connected();
    const { ia, pz, lmr, ep, evd, device } = bench;
    const rmr = ia.createRmrForEp(pz);
    bound(bench, rmr);
    rmr.bind(lmr.segment(64, 64), ep, { cookie: 2 });
    device.qp.completeSend(WcStatus.MW_BIND_ERR);
    assert.deepEqual(outcomes(drain(evd)), [done(2, 'RMR_OPERATION_FAILED'), 'BROKEN']);
    assert.equal(rmr.query().lengthBytes, 64);
    assert.equal(rmr.query().address, lmr.address);
  });

  it('of an endpoint is closed when its bind fails behind the closing', async () => {
    const bench = await connected();
    const { ia, pz, lmr, ep, evd, device } = bench;
    const rmr = ia.createRmrForEp(pz);
    bound(bench, rmr);
    rmr.bind(lmr.segment(64, 64), ep, { cookie: 2 });
    device.qp.completeSend();
    device.qp.completeSend(WcStatus.MW_BIND_ERR);
    assert.deepEqual(outcomes(drain(evd)), [done(2, 'RMR_OPERATION_FAILED'), 'BROKEN']);
    assert.equal(rmr.query().lmr, undefined);
    assert.equal(lmr.query().boundRmrs, 0);
  });

  it('of an endpoint is closed by a peer that is quicker than its completion', async () => {
    const bench = await connected();
    const { ia, pz, lmr, ep, evd, device } = bench;
    const rmr = ia.createRmrForEp(pz);
    ep.postRecv(lmr.segment(), 9);
    const key = rmr.bind(lmr.segment(0, 64), ep, { cookie: 1 });
    device.qp.completeReceive(4, WcStatus.SUCCESS, WcFlags.WITH_INV, key);
    assert.deepEqual(outcomes(drain(evd)), ['dto 9 SUCCESS']);
    assert.equal(rmr.rmrContext, undefined);
    assert.equal(lmr.query().boundRmrs, 0);
    // Nothing is left to be closed, so the next bind is one request.
    const next = rmr.bind(lmr.segment(64, 64), ep, { cookie: 2 });
    assert.notEqual(next, key);
    assert.equal(device.qp.work.length, 2);
    device.qp.completeSend();
    assert.deepEqual(outcomes(drain(evd)), [done(1, 'SUCCESS')]);
    assert.equal(rmr.rmrContext, next);
    device.qp.completeSend();
    assert.deepEqual(outcomes(drain(evd)), [done(2, 'SUCCESS')]);
    assert.equal(rmr.rmrContext, next);
    assert.equal(lmr.query().boundRmrs, 1);
  });

  it('is closed by a reset, if of an endpoint; binds that are flushed are told', async () => {
    const bench = await connected();
    const { ia, pz, lmr, ep, evd, cm, world, device } = bench;
    const [own, free] = [ia.createRmrForEp(pz), ia.createRmr(pz)];
    bound(bench, own);
    bound(bench, free);
    cm.connection.emit({ type: 'disconnected', byPeer: true });
    world.pump();
    drain(evd);
    own.bind(lmr.segment(0, 8), ep, { cookie: 8 });
    ep.reset();
    assert.equal(own.rmrContext, undefined);
    assert.notEqual(free.rmrContext, undefined);
    assert.equal(lmr.query().boundRmrs, 1);
    const left = drain(evd);
    assert.deepEqual(outcomes(left), [done(8, 'FLUSHED')]);
    assert.ok(left[0]?.type === 'rmr-bind' && left[0].rmr === own && left[0].ep === ep);
    free.free();
    lmr.free();
    assert.deepEqual(device.ended.slice(-2), ['mw', 'mr']);
  });

  it('is ended behind the queue pairs and before the regions', async () => {
    const bench = await connected();
    const { ia, pz, device } = bench;
    bound(bench, ia.createRmr(pz));
    ia.createRmrForEp(pz).bind(bench.lmr.segment(), bench.ep);
    await ia.close();
    const { ended } = device;
    assert.ok(ended.indexOf('qp') < ended.indexOf('mw'));
    assert.ok(ended.lastIndexOf('mw') < ended.indexOf('mr'));
  });
});
