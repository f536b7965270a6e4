/** Shared receive queues that are full, empty, or hold receives that are too small. */
import assert from 'node:assert/strict';
import { type Claim, group } from '../behaviour.js';
import type { CompliancePair } from '../fixture.js';
import { connect, meet, type Peers, refuses } from '../peer.js';
import type { Srq } from 'dapl';

interface Scene extends Peers {
  readonly srq: Srq;
}

/** The passive side has an SRQ of four entries; the active side gives up after two RNR NAKs. */
async function scene(pair: CompliancePair): Promise<Scene> {
  const transport = { minRnrTimer: 14, rnrRetryCount: 2 };
  const peers = meet(pair, { attributes: { transport } });
  const { passive } = peers;
  const srq = passive.ia.createSrq({ pz: passive.pz, maxRecvDtos: 4 });
  const here = { ...peers, passive: Object.create(passive) as typeof passive, srq };
  Object.defineProperty(here.passive, 'ep', { value: passive.endpoint(passive.evd, { srq }) });
  await connect(here);
  return here;
}

export const sharingLimits = group('Limits of shared receives', (plain) => {
  const claim: Claim = (name, run) => plain(name, run, ['shared-receive-queue']);

  claim('a full SRQ refuses one more receive, and takes it when one was used', async (pair) => {
    const { active, passive, srq } = await scene(pair);
    const post = (cookie: number): void => srq.postRecv(passive.lmr.segment(0, 64), cookie);
    let posted = 0;
    const fill = (): void => {
      for (; posted < 1000; posted++) post(posted);
    };
    refuses(fill, 'DAT_INSUFFICIENT_RESOURCES');
    assert.ok(posted >= 4 && posted < 1000, `${posted} receives`);
    assert.equal(srq.query().outstandingDtos, posted);
    active.ep.postSend([], 1);
    await passive.expect('dto 0 SUCCESS');
    post(1000);
    refuses(() => post(1001), 'DAT_INSUFFICIENT_RESOURCES');
  });

  claim('no receive on the SRQ: RECEIVER_NOT_READY after the retries', async (pair) => {
    const { active, srq } = await scene(pair);
    active.ep.postSend([], 1);
    await active.expect('dto 1 RECEIVER_NOT_READY', 'BROKEN');
    assert.equal(srq.query().outstandingDtos, 0);
  });

  claim('RDMA write with immediate takes a receive of the SRQ', async (pair) => {
    const { active, passive, srq } = await scene(pair);
    srq.postRecv(passive.lmr.segment(512, 64), 11);
    active.lmr.bytes.fill(0x21, 0, 64);
    active.ep.postRdmaWriteWithImmediate(active.lmr.segment(0, 64), 1, passive.remote(), 77);
    await active.expect('dto 1 SUCCESS');
    const [event] = await passive.expect('dto 11 SUCCESS');
    assert.ok(event?.type === 'dto' && event.immediate === 77);
    assert.ok(passive.lmr.bytes.subarray(0, 64).every((byte) => byte === 0x21));
    assert.equal(srq.query().outstandingDtos, 0);
  });

  claim('a message longer than its receive fails it, and leaves the others', async (pair) => {
    const { active, passive, srq } = await scene(pair);
    for (const cookie of [11, 12]) srq.postRecv(passive.lmr.segment(0, 8), cookie);
    active.ep.postSend(active.lmr.segment(0, 9), 1);
    await passive.expect('dto 11 LOCAL_LENGTH', 'BROKEN');
    await active.expect('dto 1 REMOTE_RESPONDER', 'BROKEN');
    assert.equal(srq.query().outstandingDtos, 1);
  });
});
