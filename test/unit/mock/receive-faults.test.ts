/** Messages that find no receive because a rule says so, and what their sender makes of it. */
import assert from 'node:assert/strict';
import { openIa } from 'dapl';
import { Fabric, mock } from 'dapl/providers/mock';
import { QpType, WcStatus, WrOpcode } from 'dapl/spi';
import { connected, type Peers } from '../../../plugins/testing/suite/peer.js';
import { connectUc, drain, HcaPair, postReceive, postSend } from '../../support/hca-pair.js';

const A = '10.0.0.1';
const B = '10.0.0.2';
const notReady = { type: 'not-ready' } as const;

async function withPeers(body: (peers: Peers, fabric: Fabric) => Promise<void>): Promise<void> {
  const fabric = new Fabric({ seed: 1, autoRun: true });
  const active = await openIa(mock({ fabric, address: A }));
  const passive = await openIa(mock({ fabric, address: B }));
  const close = async (): Promise<void> => {
    await Promise.all([active.close(), passive.close()]);
  };
  try {
    await body(await connected({ active, passive, passiveAddress: B, close }), fabric);
  } finally {
    await close();
  }
}

describe('mock: messages that find no receive', () => {
  it('are answered with RNR NAKs, and arrive when the rule has had its number', async () => {
    await withPeers(async ({ active: a, passive: b }, fabric) => {
      const match = { qpn: b.ep.qpn, count: 2 };
      const rule = fabric.node(B)!.receiveFaults.add({ match, action: notReady });
      const elsewhere = fabric.node(B)!.receiveFaults.add({ match: { qpn: 1 }, action: notReady });
      for (const cookie of [1, 2]) b.ep.postRecv(b.lmr.segment(0, 100), cookie);
      a.ep.postSend(a.lmr.segment(0, 40), 3);
      a.ep.postRdmaWriteWithImmediate([a.lmr.segment(0, 40)], 4, b.remote(), 7);
      await b.expect('dto 1 SUCCESS', 'dto 2 SUCCESS');
      await a.expect('dto 3 SUCCESS', 'dto 4 SUCCESS');
      assert.equal(rule.hits, 2);
      assert.equal(fabric.node(A)!.device.readCounters()['rnrNaksReceived'], 2);
      assert.throws(() => fabric.assertFaultsHit(), /receives of 10\.0\.0\.2: not-ready of qpn 1/);
      elsewhere.remove();
      fabric.assertFaultsHit();
    });
  });

  it('never arrive on UC', () => {
    let asked = 0;
    const pair = new HcaPair(1, { receiveFault: () => ++asked === 2 });
    const [qpA, qpB] = [pair.a.createQp({ type: QpType.UC }), pair.b.createQp({ type: QpType.UC })];
    connectUc(pair, qpA, qpB);
    const segments = [{ offset: 0, length: 3000 }];
    for (let i = 0; i < 3; i++) {
      postReceive(pair.b, qpB, segments, i);
      postSend(pair.a, qpA, { opcode: WrOpcode.SEND, segments, cookie: i });
    }
    pair.run(1000);
    assert.deepEqual(
      drain(pair.a.sendCq).map(({ status }) => status),
      [WcStatus.SUCCESS, WcStatus.SUCCESS, WcStatus.SUCCESS],
    );
    assert.equal(drain(pair.b.receiveCq).length, 2);
  });
});
