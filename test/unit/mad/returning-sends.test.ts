/**
 * "ib_mad: Scenarios for returning posted send MADs" (openib-general, 4 October 2004): each of them
 * by name, and that everything posted comes back once, before `unregister` resolves, never after.
 */
import assert from 'node:assert/strict';
import { AsyncEventType, type MadAgent, QpState, WcStatus } from '../../../core/spi/index.js';
import { MadPair, madOf } from '../../support/mad-pair.js';

/** Unregisters and logs the end among the handlers' entries. */
function unregister(pair: MadPair, agent: MadAgent): Promise<void> {
  return agent.unregister().then(() => void pair.log.push('unregistered'));
}

function tell(pair: MadPair, agent: MadAgent, context: string): void {
  const data = madOf({ method: 3 });
  agent.send({ destination: pair.b.address, data, timeoutUs: 0, retries: 0, context });
}

describe('MAD, scenario 1: the client unregisters', () => {
  it('with a send on the wire: it comes back flushed when it completes', async () => {
    const pair = new MadPair();
    const agent = pair.asker();
    pair.a.qp1.holdCompletions = true;
    tell(pair, agent, 'one');
    const ended = unregister(pair, agent);
    await pair.world.run();
    assert.deepEqual(pair.log, []);
    pair.a.qp1.releaseCompletions();
    await pair.world.run();
    await ended;
    assert.deepEqual(pair.log, ['WR_FLUSH_ERR one', 'unregistered']);
  });

  it('with a response outstanding: it comes back flushed, a late response is dropped', async () => {
    const pair = new MadPair();
    pair.network.latencyUs = 500;
    pair.answerer();
    const agent = pair.asker();
    agent.send(pair.ask(agent, 'one', { timeoutUs: 1e6 }));
    await pair.world.runFor(100);
    const ended = unregister(pair, agent);
    assert.deepEqual(pair.log, []);
    await pair.world.run();
    await ended;
    assert.deepEqual(pair.log, ['WR_FLUSH_ERR one', 'unregistered']);
    assert.equal(pair.a.mad.counters.unmatchedResponses, 1);
    assert.equal(pair.world.activeTimers, 0);
  });

  it('with a response that came before the completion: the send still succeeds', async () => {
    const pair = new MadPair();
    pair.answerer();
    const agent = pair.asker();
    pair.a.qp1.holdCompletions = true;
    agent.send(pair.ask(agent, 'one'));
    await pair.world.run();
    const ended = unregister(pair, agent);
    pair.a.qp1.releaseCompletions();
    await pair.world.run();
    await ended;
    assert.deepEqual(pair.log, ['response one', 'SUCCESS one', 'unregistered']);
  });

  it('with sends on the overflow list: they never reach QP1', async () => {
    const pair = new MadPair({ a: { sendDepth: 2 } });
    const agent = pair.asker();
    pair.a.qp1.holdCompletions = true;
    for (const context of ['1', '2', '3', '4']) tell(pair, agent, context);
    const ended = unregister(pair, agent);
    await pair.world.run();
    assert.deepEqual(pair.log, ['WR_FLUSH_ERR 3', 'WR_FLUSH_ERR 4']);
    pair.a.qp1.releaseCompletions();
    await pair.world.run();
    await ended;
    assert.deepEqual(pair.log.slice(2), ['WR_FLUSH_ERR 1', 'WR_FLUSH_ERR 2', 'unregistered']);
    assert.equal(pair.network.carried.length, 2);
  });

  it('from its own receive handler: the request is still reported, nothing follows', async () => {
    const pair = new MadPair();
    pair.answerer();
    const ended: Promise<void>[] = [];
    const agent: MadAgent = pair.asker({
      onReceive: () => {
        pair.log.push('response');
        ended.push(unregister(pair, agent));
      },
    });
    agent.send(pair.ask(agent, 'one'));
    agent.send(pair.ask(agent, 'two', { timeoutUs: 1e6 }));
    await pair.world.run();
    await Promise.all(ended);
    assert.deepEqual(pair.log, ['response', 'SUCCESS one', 'WR_FLUSH_ERR two', 'unregistered']);
  });

  it('from its own send handler, and twice: both promises resolve', async () => {
    const pair = new MadPair();
    const ended: Promise<void>[] = [];
    const agent: MadAgent = pair.asker({
      onSend: ({ handle }) => {
        pair.log.push(`report ${String(handle.context)}`);
        ended.push(unregister(pair, agent));
      },
    });
    tell(pair, agent, 'one');
    tell(pair, agent, 'two');
    await pair.world.run();
    await Promise.all(ended);
    assert.deepEqual(pair.log, ['report one', 'report two', 'unregistered', 'unregistered']);
    assert.throws(() => tell(pair, agent, 'three'), /unregistered/);
  });
});

describe('MAD, scenario 2: a work completion error', () => {
  it('returns the send that failed, posts its followers again, and the port lives on', async () => {
    const pair = new MadPair();
    const [one, two] = [pair.asker(), pair.asker()];
    const { qp1 } = pair.a;
    qp1.holdCompletions = true;
    qp1.sendStatuses.push(WcStatus.SUCCESS, WcStatus.LOC_QP_OP_ERR);
    for (const context of ['1', '2', '3', '4']) tell(pair, context === '3' ? two : one, context);
    assert.equal(qp1.state, QpState.SQE);
    qp1.releaseCompletions();
    await pair.world.run();
    assert.equal(qp1.state, QpState.RTS);
    assert.deepEqual(pair.log, ['SUCCESS 1', 'LOC_QP_OP_ERR 2', 'SUCCESS 3', 'SUCCESS 4']);
    assert.equal(pair.a.mad.portCounters.reposted, 2);
    assert.equal(pair.network.carried.length, 3);
  });

  it('lives on when the first send that failed ends as a flush', async () => {
    const pair = new MadPair();
    const agent = pair.asker();
    const { qp1 } = pair.a;
    qp1.holdCompletions = true;
    qp1.sendStatuses.push(WcStatus.WR_FLUSH_ERR);
    for (const context of ['1', '2']) tell(pair, agent, context);
    assert.equal(qp1.state, QpState.SQE);
    qp1.releaseCompletions();
    await pair.world.run();
    assert.equal(qp1.state, QpState.RTS);
    assert.deepEqual(pair.log, ['WR_FLUSH_ERR 1', 'SUCCESS 2']);
    tell(pair, agent, '3');
    await pair.world.run();
    assert.deepEqual(pair.log.slice(2), ['SUCCESS 3']);
  });

  it('returns followers of an agent that is unregistering instead', async () => {
    const pair = new MadPair();
    const [leaving, staying] = [pair.asker(), pair.asker()];
    const { qp1 } = pair.a;
    qp1.holdCompletions = true;
    qp1.sendStatuses.push(WcStatus.LOC_QP_OP_ERR);
    tell(pair, leaving, 'failed');
    tell(pair, leaving, 'follower of the leaving');
    tell(pair, staying, 'follower of the staying');
    const ended = unregister(pair, leaving);
    qp1.releaseCompletions();
    await pair.world.run();
    await ended;
    assert.deepEqual(pair.log, [
      'WR_FLUSH_ERR failed',
      'WR_FLUSH_ERR follower of the leaving',
      'unregistered',
      'SUCCESS follower of the staying',
    ]);
  });

  it('whatever the error is: the send has it, the follower arrives, QP1 is in RTS', async () => {
    for (const [name, status] of Object.entries(WcStatus)) {
      if (status === WcStatus.SUCCESS || status === WcStatus.WR_FLUSH_ERR) continue;
      const pair = new MadPair();
      const agent = pair.asker();
      pair.a.qp1.holdCompletions = true;
      pair.a.qp1.sendStatuses.push(status);
      for (const context of ['failed', 'behind']) tell(pair, agent, context);
      pair.a.qp1.releaseCompletions();
      await pair.world.run();
      assert.deepEqual(pair.log, [`${name} failed`, 'SUCCESS behind']);
      assert.equal(pair.a.qp1.state, QpState.RTS, name);
      tell(pair, agent, 'later');
      pair.a.qp1.releaseCompletions();
      await pair.world.run();
      assert.equal(pair.log.at(-1), 'SUCCESS later', name);
    }
  });

  it('flushes for good what nothing has failed in front of', async () => {
    const pair = new MadPair();
    const agent = pair.asker();
    pair.a.qp1.holdCompletions = true;
    pair.a.qp1.modify({ state: QpState.ERR });
    tell(pair, agent, 'one');
    pair.a.qp1.releaseCompletions();
    await pair.world.run();
    assert.deepEqual(pair.log, ['WR_FLUSH_ERR one']);
  });
});

describe('MAD, scenario 3: the module or the device goes away', () => {
  it('in order: close unregisters everybody, returns everything, leaves nothing', async () => {
    const pair = new MadPair();
    pair.network.fate = () => [];
    const agent = pair.asker();
    agent.send(pair.ask(agent, 'waiting', { timeoutUs: 1e6 }));
    await pair.world.runFor(100);
    tell(pair, agent, 'posted');
    const closed = pair.a.mad.close().then(() => void pair.log.push('closed'));
    assert.equal(pair.a.mad.close(), pair.a.mad.close());
    await pair.world.run();
    await closed;
    assert.deepEqual(pair.log, ['WR_FLUSH_ERR posted', 'WR_FLUSH_ERR waiting', 'closed']);
    assert.equal(pair.a.device.liveObjects, 0);
    assert.equal(pair.a.device.addressHandles.size, 0);
    assert.throws(() => pair.asker(), /closed/);
  });

  it('by force: every send comes back flushed, whatever it waits for', async () => {
    const pair = new MadPair({ a: { sendDepth: 2 } });
    pair.network.fate = () => [];
    const agent = pair.asker();
    agent.send(pair.ask(agent, 'waiting', { timeoutUs: 1e6 }));
    await pair.world.runFor(100);
    pair.a.qp1.holdCompletions = true;
    for (const context of ['posted 1', 'posted 2', 'overflow']) tell(pair, agent, context);
    pair.a.qp1.raise(AsyncEventType.DEVICE_FATAL);
    await pair.world.run();
    const all = ['overflow', 'posted 1', 'posted 2', 'waiting'];
    assert.deepEqual(
      [...pair.log].sort(),
      all.map((context) => `WR_FLUSH_ERR ${context}`),
    );
    assert.throws(() => tell(pair, agent, 'more'), /gone/);
    pair.a.qp1.releaseCompletions();
    await pair.a.mad.close();
    await pair.world.run();
    assert.equal(pair.log.length, 4);
    assert.equal(pair.world.activeTimers, 0);
  });

  it('with sends that never complete: close is bounded all the same', async () => {
    const pair = new MadPair();
    const agent = pair.asker();
    pair.a.qp1.holdCompletions = true;
    tell(pair, agent, 'stuck');
    const begin = pair.world.now();
    const closed = pair.a.mad.close();
    await pair.world.run();
    await closed;
    assert.deepEqual(pair.log, ['WR_FLUSH_ERR stuck']);
    assert.ok(pair.world.now() - begin <= 1_000_000);
  });
});
