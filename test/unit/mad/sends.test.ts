/** The life of a send: responses, timeouts, retries, cancelling, overflow, failures. */
import assert from 'node:assert/strict';
import { type MadSend, SpiError, WcStatus } from '../../../core/spi/index.js';
import { MadPair, answerTo, madOf } from '../../support/mad-pair.js';

describe('MAD: sends', () => {
  it('calls the receive handler of a response, then the send handler', async () => {
    const pair = new MadPair();
    pair.answerer();
    const agent = pair.asker();
    agent.send(pair.ask(agent, 'one'));
    assert.deepEqual(pair.log, []);
    await pair.world.run();
    assert.deepEqual(pair.log, ['response one', 'SUCCESS one']);
    assert.equal(pair.world.activeTimers, 0);
  });

  it('has the same order for a response that overtakes the completion of its request', async () => {
    const pair = new MadPair();
    pair.answerer();
    const agent = pair.asker();
    pair.a.qp1.holdCompletions = true;
    agent.send(pair.ask(agent, 'one'));
    await pair.world.run();
    assert.deepEqual(pair.log, ['response one']);
    pair.a.qp1.releaseCompletions();
    await pair.world.run();
    assert.deepEqual(pair.log, ['response one', 'SUCCESS one']);
  });

  it('begins to wait when the send completes, not when it is posted', async () => {
    const pair = new MadPair();
    pair.network.fate = () => [];
    const agent = pair.asker();
    pair.a.qp1.holdCompletions = true;
    agent.send(pair.ask(agent, 'one', { timeoutUs: 1_000 }));
    await pair.world.runFor(5_000);
    pair.a.qp1.releaseCompletions();
    await pair.world.runFor(999);
    assert.deepEqual(pair.log, []);
    await pair.world.runFor(2);
    assert.deepEqual(pair.log, ['RESP_TIMEOUT_ERR one']);
  });

  it('sends again as often as it is told, then times out', async () => {
    const pair = new MadPair();
    pair.network.fate = () => [];
    const agent = pair.asker();
    const begin = pair.world.now();
    agent.send(pair.ask(agent, 'one', { timeoutUs: 1_000, retries: 3 }));
    await pair.world.run();
    assert.equal(pair.network.carried.length, 4);
    assert.equal(pair.world.now() - begin, 4_000);
    assert.deepEqual(pair.log, ['RESP_TIMEOUT_ERR one']);
    const [first, ...repeats] = pair.network.carried.map(({ data }) => data);
    for (const repeat of repeats) assert.deepEqual(repeat, first);
  });

  it('is content with the response to any of the retries', async () => {
    const pair = new MadPair();
    pair.answerer();
    const agent = pair.asker();
    let sent = 0;
    pair.network.fate = () => (++sent <= 2 ? [] : [10]);
    agent.send(pair.ask(agent, 'one', { retries: 5 }));
    await pair.world.run();
    assert.deepEqual(pair.log, ['response one', 'SUCCESS one']);
    assert.equal(sent, 4);
  });

  it('restarts the wait by modify', async () => {
    const pair = new MadPair();
    pair.network.fate = () => [];
    const agent = pair.asker();
    const handle = agent.send(pair.ask(agent, 'one', { timeoutUs: 1_000 }));
    await pair.world.runFor(900);
    agent.modify(handle, 10_000);
    await pair.world.runFor(9_900);
    assert.deepEqual(pair.log, []);
    await pair.world.runFor(200);
    assert.deepEqual(pair.log, ['RESP_TIMEOUT_ERR one']);
    agent.modify(handle, 1_000);
    assert.throws(() => agent.modify({ context: 1 }, 5), SpiError);
    assert.throws(() => agent.modify(handle, 0), SpiError);
    await pair.world.run();
    assert.equal(pair.log.length, 1);
  });

  it('returns a cancelled send flushed, not inside the call, and drops its response', async () => {
    const pair = new MadPair();
    pair.network.fate = () => [];
    const agent = pair.asker();
    const request = pair.ask(agent, 'one', { timeoutUs: 1e6 });
    const handle = agent.send(request);
    await pair.world.runFor(100);
    agent.cancel(handle);
    agent.cancel(handle);
    assert.deepEqual(pair.log, []);
    pair.a.device.receive(answerTo(request.data), pair.b.address.gid, pair.a.address.gid);
    await pair.world.run();
    assert.deepEqual(pair.log, ['WR_FLUSH_ERR one']);
    assert.equal(pair.a.mad.counters.unmatchedResponses, 1);
  });

  it('returns a send cancelled on QP1 when its work request completes', async () => {
    const pair = new MadPair();
    const agent = pair.asker();
    pair.a.qp1.holdCompletions = true;
    agent.cancel(agent.send(pair.ask(agent, 'one')));
    await pair.world.runFor(1_000);
    assert.deepEqual(pair.log, []);
    pair.a.qp1.releaseCompletions();
    await pair.world.run();
    assert.deepEqual(pair.log, ['WR_FLUSH_ERR one']);
  });

  it('sends a cancelled one no more that was flushed behind a failed one', async () => {
    const pair = new MadPair();
    const agent = pair.asker();
    pair.a.qp1.holdCompletions = true;
    pair.a.qp1.sendStatuses.push(WcStatus.LOC_PROT_ERR);
    agent.send(pair.ask(agent, 'failed'));
    agent.cancel(agent.send(pair.ask(agent, 'behind')));
    pair.a.qp1.releaseCompletions();
    await pair.world.run();
    assert.deepEqual(pair.log, ['LOC_PROT_ERR failed', 'WR_FLUSH_ERR behind']);
    assert.equal(pair.network.carried.length, 0);
  });

  it('is over with its response, though a retry of it waits for room', async () => {
    const pair = new MadPair({ a: { sendDepth: 1 } });
    pair.network.fate = () => [];
    const agent = pair.asker();
    const question = pair.ask(agent, 'one', { retries: 1 });
    agent.send(question);
    await pair.world.runFor(500);
    pair.a.qp1.holdCompletions = true;
    agent.send({ ...pair.ask(agent, 'in front'), timeoutUs: 0 });
    await pair.world.runFor(600);
    pair.a.device.receive(answerTo(question.data), pair.b.address.gid, pair.a.address.gid);
    await pair.world.runFor(10);
    assert.deepEqual(pair.log, ['response one', 'SUCCESS one']);
    pair.a.qp1.releaseCompletions();
    await pair.world.run();
    assert.equal(pair.network.carried.length, 2);
  });

  it('leaves no timer behind it, answered or cancelled, and begins none on QP1', async () => {
    const pair = new MadPair();
    pair.answerer();
    const agent = pair.asker();
    agent.send(pair.ask(agent, 'answered', { timeoutUs: 1e6 }));
    await pair.world.runFor(100);
    assert.equal(pair.world.activeTimers, 0);
    pair.network.fate = () => [];
    const handle = agent.send(pair.ask(agent, 'cancelled', { timeoutUs: 1e6 }));
    await pair.world.runFor(100);
    agent.cancel(handle);
    await pair.world.runFor(100);
    assert.equal(pair.world.activeTimers, 0);
    pair.a.qp1.holdCompletions = true;
    agent.modify(agent.send(pair.ask(agent, 'on QP1')), 5_000);
    assert.equal(pair.world.activeTimers, 0);
    assert.deepEqual(pair.log, ['response answered', 'SUCCESS answered', 'WR_FLUSH_ERR cancelled']);
  });

  it('keeps more than QP1 holds on the overflow list, in order', async () => {
    const pair = new MadPair({ a: { sendDepth: 8 } });
    pair.answerer();
    const agent = pair.asker();
    pair.a.qp1.holdCompletions = true;
    for (let i = 0; i < 50; i++) {
      agent.send({ ...pair.ask(agent, String(i)), timeoutUs: 0, data: madOf({ method: 3 }) });
    }
    await pair.world.run();
    assert.equal(pair.network.carried.length, 8);
    pair.a.qp1.releaseCompletions();
    await pair.world.run();
    assert.equal(pair.network.carried.length, 50);
    assert.deepEqual(
      pair.log,
      Array.from({ length: 50 }, (_, i) => `SUCCESS ${i}`),
    );
  });

  it('takes a cancelled send off the overflow list', async () => {
    const pair = new MadPair({ a: { sendDepth: 1 } });
    pair.network.fate = () => [];
    const agent = pair.asker();
    pair.a.qp1.holdCompletions = true;
    agent.send(pair.ask(agent, 'posted'));
    agent.cancel(agent.send(pair.ask(agent, 'waiting')));
    await pair.world.runFor(10);
    assert.deepEqual(pair.log, ['WR_FLUSH_ERR waiting']);
    assert.equal(pair.network.carried.length, 1);
  });

  it('refuses a wrong length, timeout, transaction id or a handle of another agent', () => {
    const pair = new MadPair();
    const agent = pair.asker();
    const other = pair.asker();
    const request = pair.ask(agent, 'one');
    const wrong: [Partial<MadSend>, RegExp][] = [
      [{ data: new Uint8Array(255) }, /255 bytes/],
      [{ timeoutUs: -1 }, /timeoutUs is -1;/],
      [{ timeoutUs: Infinity }, /timeoutUs is Infinity;/],
      [{ retries: 0.5 }, /retries is 0.5;/],
      [{ data: madOf({ transactionIdHi: other.hiTid }) }, /transaction id/],
    ];
    for (const [override, message] of wrong) {
      assert.throws(() => agent.send({ ...request, ...override }), message);
    }
    const handle = agent.send(request);
    assert.throws(() => agent.send(request), /outstanding/);
    assert.throws(() => other.cancel(handle), /not of this agent/);
  });

  it('refuses an address that the device cannot reach, and holds nothing for it', async () => {
    const pair = new MadPair();
    const agent = pair.asker();
    const gid = new Uint8Array(16).fill(0xfd);
    const destination = { ...pair.b.address, gid };
    assert.throws(
      () => agent.send({ ...pair.ask(agent, 'one'), destination }),
      (error: unknown) => error instanceof SpiError && error.code === 'ENETUNREACH',
    );
    await agent.unregister();
  });

  it('bounds the address handles it keeps', async () => {
    const pair = new MadPair({ a: { maxIdleAddresses: 4 } });
    const agent = pair.asker();
    for (let host = 1; host <= 40; host++) {
      const gid = pair.b.address.gid.slice();
      gid[15] = host;
      const destination = { ...pair.b.address, gid };
      agent.send({ destination, data: madOf({ method: 3 }), timeoutUs: 0, retries: 0 });
    }
    assert.equal(pair.a.device.addressHandles.size, 40);
    await pair.world.run();
    assert.equal(pair.a.device.addressHandles.size, 4);
  });

  it('survives handlers that throw', async () => {
    const pair = new MadPair();
    pair.answerer();
    const agent = pair.asker({
      onReceive: () => {
        throw new Error('receive');
      },
      onSend: () => {
        pair.log.push('reported');
        throw new Error('send');
      },
    });
    agent.send(pair.ask(agent, 'one'));
    agent.send(pair.ask(agent, 'two'));
    await pair.world.run();
    assert.deepEqual(pair.log, ['reported', 'reported']);
    await pair.a.mad.close();
    assert.equal(pair.a.device.liveObjects, 0);
  });

  it('reports a failed send with its status', async () => {
    const pair = new MadPair();
    const agent = pair.asker();
    pair.a.qp1.sendStatuses.push(WcStatus.LOC_PROT_ERR);
    agent.send(pair.ask(agent, 'one'));
    await pair.world.run();
    assert.deepEqual(pair.log, ['LOC_PROT_ERR one']);
  });
});

describe('MAD: the transaction id of a send', () => {
  it('is free again in the handler of its response, and that send gets its own', async () => {
    const pair = new MadPair();
    pair.answerer();
    let again = 2;
    const agent = pair.asker({
      onReceive: ({ request }) => {
        pair.log.push(`response ${String(request?.context)}`);
        if (again-- > 0) agent.send({ ...question, context: `again ${again}` });
      },
    });
    const question = pair.ask(agent, 'one');
    agent.send(question);
    await pair.world.run();
    const names = ['one', 'again 1', 'again 0'];
    assert.deepEqual(
      pair.log,
      names.flatMap((name) => [`response ${name}`, `SUCCESS ${name}`]),
    );
  });

  it('is free again when no response has come', async () => {
    const pair = new MadPair();
    pair.network.fate = () => [];
    const agent = pair.asker();
    const question = pair.ask(agent, 'one');
    agent.send(question);
    await pair.world.run();
    agent.cancel(agent.send(question));
    await pair.world.run();
    agent.send(question);
    await pair.world.run();
    assert.deepEqual(pair.log, [
      'RESP_TIMEOUT_ERR one',
      'WR_FLUSH_ERR one',
      'RESP_TIMEOUT_ERR one',
    ]);
  });

  it('matches no response any more once it is cancelled, though it is on QP1', async () => {
    const pair = new MadPair();
    const agent = pair.asker();
    pair.a.qp1.holdCompletions = true;
    const question = pair.ask(agent, 'one');
    agent.cancel(agent.send(question));
    pair.a.device.receive(answerTo(question.data), pair.b.address.gid, pair.a.address.gid);
    await pair.world.runFor(10);
    assert.equal(pair.a.mad.counters.unmatchedResponses, 1);
    assert.deepEqual(pair.log, []);
  });
});

describe('MAD: an agent and its sends', () => {
  it('end before it does, though none was left at some time before', async () => {
    const pair = new MadPair();
    pair.network.fate = () => [];
    const agent = pair.asker();
    agent.send(pair.ask(agent, 'before'));
    await pair.world.run();
    pair.log.length = 0;
    pair.a.qp1.holdCompletions = true;
    agent.send(pair.ask(agent, 'now'));
    void agent.unregister().then(() => pair.log.push('over'));
    await pair.world.runFor(10);
    assert.deepEqual(pair.log, []);
    pair.a.qp1.releaseCompletions();
    await pair.world.run();
    assert.deepEqual(pair.log, ['WR_FLUSH_ERR now', 'over']);
  });

  it('have a timeout above 0 and finite when it is changed', async () => {
    const pair = new MadPair();
    pair.network.fate = () => [];
    const agent = pair.asker();
    const handle = agent.send(pair.ask(agent, 'one'));
    for (const timeoutUs of [0, -1, NaN, Infinity]) {
      assert.throws(() => agent.modify(handle, timeoutUs), /a finite number above 0/);
    }
    await pair.world.run();
    assert.deepEqual(pair.log, ['RESP_TIMEOUT_ERR one']);
  });

  it('are left alone by one that has unregistered, and unregisters once more', async () => {
    const pair = new MadPair();
    const leaving = pair.asker({ methods: [3] });
    const first = leaving.unregister();
    pair.asker({ methods: [3], onReceive: () => void pair.log.push('successor') });
    assert.equal(leaving.unregister(), first);
    pair.a.device.receive(madOf({ method: 3 }), pair.b.address.gid, pair.a.address.gid);
    await pair.world.run();
    assert.deepEqual(pair.log, ['successor']);
  });
});
