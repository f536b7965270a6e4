import assert from 'node:assert/strict';
import { DatError } from '../../../core/index.js';
import { drain, unconnected } from '../../support/fake-endpoints.js';
import { openFake } from '../../support/fake-provider.js';

const inUse = (error: unknown): boolean =>
  DatError.isDatError(error) && error.subtype === 'DAT_INVALID_STATE_EVD_IN_USE';

describe('event dispatchers that the adapter has made', () => {
  it('the asynchronous one lives as long as the adapter', async () => {
    const { ia } = await openFake();
    await assert.rejects(ia.asyncEvd.free(), inUse);
    assert.equal(ia.asyncEvd.isFreed, false);
    await ia.close('graceful');
    assert.equal(ia.asyncEvd.isFreed, true);
  });

  it('a private one that another endpoint feeds too is left to the consumer', async () => {
    const { ia, pz, ep, evd, lmr, device } = await unconnected();
    const first = ia.createEndpoint({ pz });
    const { recvEvd, requestEvd, connectEvd } = first.query();
    const second = ia.createEndpoint({ pz, recvEvd, requestEvd, connectEvd });
    first.free();
    assert.deepEqual([recvEvd.isFreed, connectEvd.isFreed], [false, false]);
    assert.deepEqual(drain(recvEvd), []);
    second.free();
    for (const object of [ep, lmr, pz]) object.free();
    await evd.free();
    await assert.rejects(ia.close('graceful'), /2 objects/);
    await ia.close();
    assert.deepEqual([recvEvd.isFreed, connectEvd.isFreed], [true, true]);
    assert.equal(device.ended.filter((what) => what === 'cq').length, 2, 'and the one of `evd`');
  });
});
