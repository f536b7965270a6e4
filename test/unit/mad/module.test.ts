/** The module: ids of its agents, what it answers by itself, windows of transfers, its end. */
import assert from 'node:assert/strict';
import {
  type MadAgentOptions,
  QpState,
  silentLogger,
  SpiError,
  WcStatus,
} from '../../../core/spi/index.js';
import { Mad, type MadOptions } from '../../../plugins/mad/index.js';
import { SeededRandom } from '../../../providers/mock/index.js';
import { MadPair, VENDOR_CLASS, answerTo, headerOf, madOf } from '../../support/mad-pair.js';
import {
  RMPP_CLASS,
  RMPP_DATA,
  RmppPair,
  controlOf,
  replyTo,
  transferOf,
} from '../../support/rmpp-pair.js';
import { RMPP_TYPE } from '../../../plugins/mad/wire/rmpp-header.js';
import { FakeDevice } from '../../support/fake-gsi-device.js';

const CLOSE_STEP_US = 500_000;
const SILENT: MadAgentOptions = {
  managementClass: VENDOR_CLASS,
  classVersion: 1,
  methods: [],
  onReceive: () => undefined,
  onSend: () => undefined,
};

/** A module on a device of its own in the world of a pair, whose first random number is given. */
function moduleOf(pair: MadPair, firstRandom: number, options: MadOptions = {}): Mad {
  const { world, network } = pair;
  const random = Object.assign(new SeededRandom(1), { u32: () => firstRandom });
  const device = new FakeDevice(network, pair.a.device.gids, {});
  const services = { timers: world, clock: world, scheduler: world, logger: silentLogger };
  return new Mad({ device, random, ...services }, options);
}

describe('MAD: the ids of agents', () => {
  it('follow each other in 24 bits, and none is 0', () => {
    const mad = moduleOf(new MadPair(), 0xab_fffffd);
    const ids = [1, 2, 3, 4].map(() => mad.registerAgent(SILENT).hiTid);
    assert.deepEqual(ids, [0xfffffe, 0xffffff, 1, 2]);
  });

  it('are not given again at once: a late response is not taken', async () => {
    const pair = new MadPair();
    pair.network.fate = () => [];
    const agent = pair.asker();
    const request = pair.ask(agent, 'one');
    agent.send(request);
    await pair.world.run();
    await agent.unregister();
    const next = pair.asker();
    assert.notEqual(next.hiTid, agent.hiTid);
    pair.a.device.receive(answerTo(request.data), pair.b.address.gid, pair.a.address.gid);
    await pair.world.run();
    assert.deepEqual(pair.log, ['RESP_TIMEOUT_ERR one']);
    assert.equal(pair.a.mad.counters.unmatchedResponses, 1);
  });
});

describe('MAD: an agent that has left', () => {
  it('is forgotten, and what belongs to a transfer of it is told nothing', async () => {
    const rmpp = new RmppPair();
    const { mad } = rmpp.pair.a;
    const request = transferOf(rmpp.asker.agent, RMPP_DATA);
    await rmpp.asker.agent.unregister();
    await rmpp.pair.world.run();
    assert.equal(mad['agents'].size, 0);
    rmpp.inject(
      controlOf(replyTo(request, RMPP_DATA), { type: RMPP_TYPE.ACK, status: 1 }),
      'asker',
    );
    await rmpp.pair.world.run();
    assert.equal(mad.counters.unmatchedResponses, 1);
    assert.deepEqual(rmpp.carried, []);
  });
});

describe('MAD: what is answered although no agent takes it', () => {
  const incoming = async (pair: MadPair, data: Uint8Array): Promise<void> => {
    pair.b.device.receive(data, pair.a.address.gid, pair.b.address.gid);
    await pair.world.runFor(100);
  };

  it('has the bytes of the request but for method and status', async () => {
    const pair = new MadPair();
    const request = madOf({ method: 2, transactionIdHi: 5, transactionIdLo: 6 }).fill(7, 24);
    await incoming(pair, request);
    const expected = madOf({
      method: 0x81,
      status: 0x000c,
      transactionIdHi: 5,
      transactionIdLo: 6,
    }).fill(7, 24);
    assert.deepEqual(pair.network.carried[0]?.data, expected);
    assert.equal(pair.b.mad.counters.answeredUnsupported, 1);
  });

  it('is a segment of a transfer, but no ACK, STOP or ABORT of one', async () => {
    const pair = new MadPair();
    const request = madOf({ managementClass: RMPP_CLASS });
    for (const type of Object.values(RMPP_TYPE)) {
      if (type !== RMPP_TYPE.NONE) await incoming(pair, controlOf(request, { type }));
    }
    assert.equal(pair.b.mad.counters.unmatchedRequests, 4);
    assert.equal(pair.b.mad.counters.answeredUnsupported, 1);
    // Where "active" is not set, or the class has no RMPP, those bytes mean something else.
    await incoming(pair, controlOf(request, { type: RMPP_TYPE.ACK, flags: 0 }));
    await incoming(pair, controlOf(madOf({}), { type: RMPP_TYPE.ACK }));
    assert.equal(pair.b.mad.counters.answeredUnsupported, 3);
  });

  it('is a question of ClassPortInfo to the CM, and no other', async () => {
    const pair = new MadPair();
    const cm = { managementClass: 0x07, classVersion: 2 };
    await incoming(pair, madOf({ ...cm, method: 1, attributeId: 1 }));
    await incoming(pair, madOf({ ...cm, method: 3, attributeId: 0x10 }));
    await incoming(pair, madOf({ ...cm, method: 1, attributeId: 0x10 }));
    const { refused, unmatchedRequests, answeredUnsupported } = pair.b.mad.counters;
    assert.deepEqual([refused, unmatchedRequests, answeredUnsupported], [1, 2, 1]);
  });

  it('takes no more than the room that is free on QP1', async () => {
    const pair = new MadPair({ b: { sendDepth: 2 } });
    pair.b.qp1.holdCompletions = true;
    for (let i = 0; i < 5; i++) await incoming(pair, madOf({ transactionIdLo: i }));
    assert.equal(pair.b.mad.counters.answeredUnsupported, 2);
    pair.b.qp1.releaseCompletions();
    await pair.world.run();
    assert.equal(pair.network.carried.length, 2);
  });

  it('is not answered where the address cannot be reached, and nothing else is amiss', async () => {
    const pair = new MadPair();
    const { b } = pair;
    b.device.createAddressHandle = () => {
      throw new SpiError('ENETUNREACH', 'the test');
    };
    await incoming(pair, madOf({}));
    assert.equal(b.mad.counters.answeredUnsupported, 0);
    assert.equal(b.mad.counters.unmatchedRequests, 1);
    assert.equal(b.qp1.receiveRing.length, 512);
  });

  it('is sent once: an answer behind a failed send is not sent again', async () => {
    const pair = new MadPair();
    pair.b.qp1.holdCompletions = true;
    pair.b.qp1.sendStatuses.push(WcStatus.LOC_PROT_ERR);
    for (let i = 0; i < 2; i++) await incoming(pair, madOf({ transactionIdLo: i }));
    pair.b.qp1.releaseCompletions();
    await pair.world.run();
    assert.equal(pair.network.carried.length, 0);
    assert.equal(pair.b.mad.portCounters.reposted, 0);
  });
});

describe('MAD: the depths of its queues', () => {
  it('are 128 sends and 512 receives unless they are given', () => {
    const { a, b } = new MadPair({ b: { sendDepth: 7, receiveDepth: 9 } });
    assert.equal(a.qp1.receiveRing.length, 512);
    assert.equal(b.qp1.receiveRing.length, 9);
    assert.deepEqual([a.qp1.sendRing.entries, b.qp1.sendRing.entries], [128, 8]);
  });

  it('bound the window of transfers: an eighth of the receives, one segment at least', async () => {
    for (const [receiveDepth, ack] of [
      [16, 'ACK 1 3'],
      [4, 'ACK 1 2'],
    ] as const) {
      const rmpp = new RmppPair({ b: { receiveDepth } });
      rmpp.ask(transferOf(rmpp.asker.agent, 20 * RMPP_DATA, { method: 3 }));
      await rmpp.pair.world.runFor(100_000);
      assert.equal(rmpp.carried[1], ack);
      assert.deepEqual(rmpp.asker.results, ['SUCCESS ask']);
    }
  });
});

describe('MAD: the end of the module', () => {
  it('waits half a second for sends on QP1, flushes it, and again, and does without', async () => {
    const pair = new MadPair();
    const { qp1, mad, device } = pair.a;
    const agent = pair.asker();
    qp1.holdCompletions = true;
    agent.send(pair.ask(agent, 'stuck'));
    // A device that goes to ERR, and says nothing of what was posted.
    qp1.modify = ({ state }) => void (qp1.state = state ?? qp1.state);
    let closed = false;
    void mad.close().then(() => (closed = true));
    await pair.world.runFor(CLOSE_STEP_US - 1);
    assert.equal(qp1.state, QpState.RTS);
    await pair.world.runFor(2);
    assert.equal(qp1.state, QpState.ERR);
    await pair.world.runFor(CLOSE_STEP_US - 2);
    assert.deepEqual([pair.log, closed], [[], false]);
    await pair.world.runFor(2);
    assert.deepEqual([pair.log, closed], [['WR_FLUSH_ERR stuck'], true]);
    assert.equal(device.liveObjects, 0);
    assert.equal(pair.world.activeTimers, 0);
  });

  it('leaves no timer where its sends complete in time, before or after the flush', async () => {
    for (const afterUs of [10, CLOSE_STEP_US + 10]) {
      const pair = new MadPair();
      const agent = pair.asker();
      pair.a.qp1.holdCompletions = true;
      agent.send(pair.ask(agent, 'late'));
      const closed = pair.a.mad.close();
      await pair.world.runFor(afterUs);
      pair.a.qp1.releaseCompletions();
      await pair.world.runFor(10);
      await closed;
      assert.deepEqual(pair.log, ['WR_FLUSH_ERR late']);
      assert.equal(pair.world.activeTimers, 0);
      assert.equal(pair.a.device.liveObjects, 0);
      assert.equal(pair.a.mad.portCounters.restarts, 0);
    }
  });

  it('awaits agents that have begun to unregister before', async () => {
    const pair = new MadPair();
    const agent = pair.asker();
    pair.a.qp1.holdCompletions = true;
    agent.send(pair.ask(agent, 'on QP1'));
    void agent.unregister();
    let closed = false;
    void pair.a.mad.close().then(() => (closed = true));
    await pair.world.runFor(10);
    assert.equal(closed, false);
    assert.ok(pair.a.device.liveObjects > 0);
    pair.a.qp1.releaseCompletions();
    await pair.world.runFor(10);
    assert.equal(closed, true);
    assert.deepEqual(pair.log, ['WR_FLUSH_ERR on QP1']);
  });

  it('takes no more agents', async () => {
    const { mad } = new MadPair().a;
    await mad.close();
    assert.throws(
      () => mad.registerAgent(SILENT),
      (error: unknown) => error instanceof SpiError && error.code === 'ENODEV',
    );
  });
});

describe('MAD: what is asked of it', () => {
  it('is found by the whole of a transaction id', async () => {
    const pair = new MadPair();
    pair.answerer();
    const agents = [pair.asker(), pair.asker()];
    for (const [at, agent] of agents.entries()) agent.send(pair.ask(agent, String(at)));
    await pair.world.run();
    assert.deepEqual(pair.log, ['response 0', 'SUCCESS 0', 'response 1', 'SUCCESS 1']);
    const ids = pair.network.carried.map(({ data }) => headerOf(data).transactionIdHi);
    assert.deepEqual(
      ids,
      [...agents, ...agents].map(({ hiTid }) => hiTid),
    );
  });
});
