/** Faults of sends on every type of queue pair, and what MAD and CM over the HCA make of them. */
import assert from 'node:assert/strict';
import {
  DEVICE,
  GSI_QKEY,
  GSI_QPN,
  MAD,
  type MadAddress,
  type MadAgent,
  type MadSend,
  nameOf,
  QpState,
  QpType,
  WcStatus,
  WrOpcode,
} from '../../../core/spi/index.js';
import { DatDtoStatus, openIa } from '../../../core/index.js';
import {
  HcaPair,
  type SideOptions,
  connectUc,
  drain,
  postReceive,
  postSend,
} from '../../support/hca-pair.js';
import { VENDOR_CLASS, madOf } from '../../support/mad-pair.js';
import { Fabric, MockNode, mock } from '../../../providers/mock/index.js';
import { connected } from '../../../plugins/testing/suite/peer.js';
import { openMock } from './container.js';

const A = '10.0.0.1';
const B = '10.0.0.2';
const { SUCCESS, WR_FLUSH_ERR, LOC_QP_OP_ERR, LOC_LEN_ERR } = WcStatus;

describe('mock: sends that fail', () => {
  it('are asked for by the UC requester too: that request fails, unsent, and SQE follows', () => {
    let asked = 0;
    const sendFault: SideOptions['sendFault'] = (qp, opcode) => {
      assert.deepEqual([qp.type, opcode], [QpType.UC, WrOpcode.SEND]);
      return ++asked === 2 ? LOC_QP_OP_ERR : undefined;
    };
    const pair = new HcaPair(1, { sendFault });
    const [qpA, qpB] = [pair.a.createQp({ type: QpType.UC }), pair.b.createQp({ type: QpType.UC })];
    connectUc(pair, qpA, qpB);
    const segments = [{ offset: 0, length: 3000 }];
    for (let i = 0; i < 3; i++) {
      postReceive(pair.b, qpB, segments, i);
      postSend(pair.a, qpA, { opcode: WrOpcode.SEND, segments, cookie: i });
    }
    pair.run(1000);
    const ends = drain(pair.a.sendCq).map(({ cookie, status }) => [cookie, status]);
    assert.deepEqual(ends, [
      [0, SUCCESS],
      [1, LOC_QP_OP_ERR],
      [2, WR_FLUSH_ERR],
    ]);
    assert.equal(drain(pair.b.receiveCq).length, 1);
    assert.equal(qpA.state, QpState.SQE);
    assert.equal(asked, 2, 'once for each message, not for each packet');
  });

  it('refuse a status that is no failure, and an n-th that does not count from 1', () => {
    const node = new MockNode(new Fabric(), { addresses: [A] });
    const fail = (status: WcStatus, nth: number) => () =>
      node.sendFaults.add({ match: { nth }, action: { type: 'fail', status } });
    assert.throws(fail(SUCCESS, 1), /^RangeError: action: status is 0; .* that is no success$/);
    assert.throws(fail(LOC_LEN_ERR, 0), /^RangeError: match: nth is 0; .* from 1 on$/);
    assert.throws(fail(LOC_LEN_ERR, 1.5), /^RangeError: match: nth is 1\.5;/);
  });

  it('on QP1: the MAD that failed comes back so, those behind it are sent', async () => {
    const { fabric, agent, to, log, arrived } = await agents();
    fabric.node(A)?.sendFaults.add({
      match: { qpn: GSI_QPN, nth: 2 },
      action: { type: 'fail', status: LOC_QP_OP_ERR },
    });
    for (const name of ['one', 'two', 'three', 'four']) agent.send(to(name));
    await fabric.run({ untilIdle: true });
    assert.deepEqual(log.slice().sort(), [
      'LOC_QP_OP_ERR two',
      'SUCCESS four',
      'SUCCESS one',
      'SUCCESS three',
    ]);
    assert.equal(arrived.count, 3);
    // The port lives on, and fails again when it is told to.
    fabric
      .node(A)
      ?.sendFaults.add({ match: { qpn: GSI_QPN }, action: { type: 'fail', status: LOC_LEN_ERR } });
    agent.send(to('five'));
    agent.send(to('six'));
    await fabric.run({ untilIdle: true });
    assert.deepEqual(log.slice(4).sort(), ['LOC_LEN_ERR five', 'SUCCESS six']);
    assert.equal(arrived.count, 4);
  });

  it('on QP1, one after the other: each comes back once, unregistering waits', async () => {
    const { fabric, agent, to, log, arrived } = await agents();
    for (const nth of [1, 2, 3, 4]) {
      fabric.node(A)?.sendFaults.add({
        match: { qpn: GSI_QPN, nth },
        action: { type: 'fail', status: LOC_QP_OP_ERR },
      });
    }
    const names = Array.from({ length: 12 }, (_, i) => `mad${i}`);
    for (const name of names) agent.send(to(name));
    await fabric.run({ forUs: 1 });
    const gone = agent.unregister();
    await fabric.run({ untilIdle: true });
    await gone;
    assert.deepEqual(log.map((line) => line.split(' ')[1]).sort(), names.slice().sort());
    const sent = log.filter((line) => line.startsWith('SUCCESS')).length;
    assert.equal(arrived.count, sent);
    assert.ok(log.some((line) => line.startsWith('LOC_QP_OP_ERR')));
  });

  it('on QP1: a connection is made although a CM message could not be sent', async () => {
    for (let nth = 1; nth <= 2; nth++) {
      const fabric = new Fabric({ seed: 3, autoRun: true });
      const active = await openIa(mock({ fabric, address: A }));
      const passive = await openIa(mock({ fabric, address: B }));
      fabric.node(nth === 1 ? A : B)?.sendFaults.add({
        match: { qpn: GSI_QPN },
        action: { type: 'fail', status: LOC_QP_OP_ERR },
      });
      const close = async (): Promise<void> => {
        await Promise.all([active.close(), passive.close()]);
      };
      const peers = await connected({ active, passive, passiveAddress: B, close });
      peers.passive.ep.postRecv(peers.passive.lmr.segment(0, 64), 1);
      peers.active.ep.postSend(peers.active.lmr.segment(0, 64), 2);
      const [event] = await peers.passive.expect('dto 1 SUCCESS');
      assert.ok(event?.type === 'dto' && event.status === DatDtoStatus.SUCCESS);
      await close();
    }
  });
});

interface Agents {
  readonly fabric: Fabric;
  readonly agent: MadAgent;
  readonly to: (name: string) => MadSend;
  /** `<status> <name>` for each send that was returned. */
  readonly log: string[];
  readonly arrived: { count: number };
}

/** An agent on `A`, and one on `B` that takes what it sends and answers nothing. */
async function agents(): Promise<Agents> {
  const fabric = new Fabric();
  const a = await openMock({ fabric, address: A });
  const b = await openMock({ fabric, address: B });
  const log: string[] = [];
  const arrived = { count: 0 };
  const common = { managementClass: VENDOR_CLASS, classVersion: 1 };
  b.resolve(MAD).registerAgent({
    ...common,
    methods: [1],
    onReceive: () => void arrived.count++,
    onSend: () => undefined,
  });
  const agent = a.resolve(MAD).registerAgent({
    ...common,
    methods: [],
    onReceive: () => undefined,
    onSend: ({ handle, status }) =>
      void log.push(`${nameOf(WcStatus, status)} ${String(handle.context)}`),
  });
  const gid = b.resolve(DEVICE).gids[0];
  assert.ok(gid);
  const destination: MadAddress = { gid, localGidIndex: 0, qpn: GSI_QPN, qkey: GSI_QKEY };
  let transaction = 0;
  const to = (context: string): MadSend => ({
    destination,
    data: madOf({ transactionIdHi: agent.hiTid, transactionIdLo: ++transaction }),
    timeoutUs: 0,
    retries: 0,
    context,
  });
  return { fabric, agent, to, log, arrived };
}
