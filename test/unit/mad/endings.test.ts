/** Every way in which a send ends: what it held is given back, and unregistering ends with it. */
import assert from 'node:assert/strict';
import { AsyncEventType, type MadAgent, type MadSend, WcStatus } from '../../../core/spi/index.js';
import { MadPair, VENDOR_CLASS, answerTo, headerOf, madOf } from '../../support/mad-pair.js';

/** What a way of ending works with. */
interface Scene {
  readonly pair: MadPair;
  readonly agent: MadAgent;
  /** Sends a question, held on QP1 until `releaseCompletions`. */
  readonly ask: (context: string, overrides?: Partial<MadSend>) => void;
  readonly cancel: (context: string) => void;
  /** The response to a question arrives. */
  readonly respond: (context: string) => void;
}

function scene(sendDepth = 4): Scene {
  const pair = new MadPair({ a: { sendDepth, maxIdleAddresses: 0 } });
  pair.network.fate = () => [];
  const agent = pair.asker();
  pair.a.qp1.holdCompletions = true;
  const sent = new Map<string, { data: Uint8Array; handle: ReturnType<MadAgent['send']> }>();
  return {
    pair,
    agent,
    ask: (context, overrides = {}) => {
      const request = pair.ask(agent, context, overrides);
      sent.set(context, { data: request.data, handle: agent.send(request) });
    },
    cancel: (context) => {
      const one = sent.get(context);
      if (one) agent.cancel(one.handle);
    },
    respond: (context) => {
      const answer = answerTo(sent.get(context)?.data ?? new Uint8Array(256));
      pair.a.device.receive(answer, pair.b.address.gid, pair.a.address.gid);
    },
  };
}

interface Way {
  readonly sendDepth?: number;
  readonly run: (scene: Scene) => void | Promise<void>;
  readonly log: readonly string[];
}

const WAYS: Readonly<Record<string, Way>> = {
  'it is answered': {
    run: async ({ pair, ask, respond }) => {
      ask('one');
      pair.a.qp1.releaseCompletions();
      await pair.world.runFor(10);
      respond('one');
    },
    log: ['response one', 'SUCCESS one'],
  },
  'the response overtakes the completion of its request': {
    run: async ({ pair, ask, respond }) => {
      ask('one');
      respond('one');
      await pair.world.runFor(10);
      pair.a.qp1.releaseCompletions();
    },
    log: ['response one', 'SUCCESS one'],
  },
  'the response overtakes a completion that is then flushed': {
    run: async ({ pair, ask, respond }) => {
      ask('one');
      respond('one');
      await pair.world.runFor(10);
      pair.a.qp1.raise(AsyncEventType.DEVICE_FATAL);
    },
    log: ['response one', 'SUCCESS one'],
  },
  'nobody answers': {
    run: ({ pair, ask }) => {
      ask('one', { retries: 2 });
      pair.a.qp1.releaseCompletions();
    },
    log: ['RESP_TIMEOUT_ERR one'],
  },
  'it fails in transmission, and one is flushed behind it and goes again': {
    run: ({ pair, ask }) => {
      pair.a.qp1.sendStatuses.push(WcStatus.LOC_PROT_ERR);
      ask('one', { timeoutUs: 0 });
      ask('two', { timeoutUs: 0 });
      pair.a.qp1.releaseCompletions();
    },
    log: ['LOC_PROT_ERR one', 'SUCCESS two'],
  },
  'it is cancelled on QP1': {
    run: ({ pair, ask, cancel }) => {
      ask('one');
      cancel('one');
      pair.a.qp1.releaseCompletions();
    },
    log: ['WR_FLUSH_ERR one'],
  },
  'it is cancelled while it waits for room': {
    sendDepth: 1,
    run: ({ pair, ask, cancel }) => {
      ask('one', { timeoutUs: 0 });
      ask('two');
      cancel('two');
      pair.a.qp1.releaseCompletions();
    },
    log: ['SUCCESS one', 'WR_FLUSH_ERR two'],
  },
  'it is cancelled while it waits for its response': {
    run: async ({ pair, ask, cancel }) => {
      ask('one', { timeoutUs: 1e6 });
      pair.a.qp1.releaseCompletions();
      await pair.world.runFor(10);
      cancel('one');
    },
    log: ['WR_FLUSH_ERR one'],
  },
  'its agent unregisters, on QP1, waiting for room and for a response': {
    sendDepth: 2,
    run: async ({ pair, agent, ask }) => {
      pair.a.qp1.holdCompletions = false;
      ask('waits for its response', { timeoutUs: 1e6 });
      await pair.world.runFor(10);
      pair.a.qp1.holdCompletions = true;
      for (const context of ['one', 'two', 'three']) ask(context);
      void agent.unregister();
      pair.a.qp1.releaseCompletions();
    },
    log: [
      'WR_FLUSH_ERR one',
      'WR_FLUSH_ERR three',
      'WR_FLUSH_ERR two',
      'WR_FLUSH_ERR waits for its response',
    ],
  },
  'its device is gone': {
    sendDepth: 1,
    run: ({ pair, ask }) => {
      ask('one');
      ask('two', { timeoutUs: 0 });
      pair.a.qp1.raise(AsyncEventType.DEVICE_FATAL);
    },
    log: ['WR_FLUSH_ERR one', 'WR_FLUSH_ERR two'],
  },
};

describe('MAD: the end of a send', () => {
  for (const [way, { sendDepth, run, log }] of Object.entries(WAYS)) {
    it(`gives back what it held when ${way}`, async () => {
      const world = scene(sendDepth);
      const { pair, agent } = world;
      await run(world);
      await pair.world.run();
      assert.deepEqual([...pair.log].sort(), [...log].sort());
      assert.equal(pair.a.device.addressHandles.size, 0, 'address handles');
      assert.equal(pair.world.activeTimers, 0, 'timers');
      let ended = false;
      void agent.unregister().then(() => (ended = true));
      await pair.world.run();
      assert.ok(ended, 'references to the agent are left');
    });
  }

  it('gives back the address of an answer that nobody takes, sent or flushed', async () => {
    for (const flushed of [false, true]) {
      const pair = new MadPair({ b: { maxIdleAddresses: 0 } });
      pair.b.qp1.holdCompletions = true;
      pair.b.device.receive(madOf({}), pair.a.address.gid, pair.b.address.gid);
      await pair.world.runFor(10);
      assert.equal(pair.b.device.addressHandles.size, 1);
      if (flushed) pair.b.qp1.raise(AsyncEventType.DEVICE_FATAL);
      else pair.b.qp1.releaseCompletions();
      await pair.world.run();
      assert.equal(pair.b.device.addressHandles.size, 0, `flushed: ${flushed}`);
    }
  });

  it('gives back what a send held that was refused', async () => {
    const { pair, agent } = scene();
    const request = pair.ask(agent, 'one');
    agent.send(request);
    assert.throws(() => agent.send(request), /outstanding/);
    assert.throws(() => agent.send({ ...pair.ask(agent, 'two'), timeoutUs: -1 }), /timeout/);
    pair.a.qp1.releaseCompletions();
    await pair.world.run();
    assert.equal(pair.a.device.addressHandles.size, 0);
  });
});

describe('MAD: a failed send', () => {
  it('has its followers posted again in front of what waits for room, in their order', async () => {
    const pair = new MadPair({ a: { sendDepth: 3 } });
    const agent = pair.asker();
    pair.a.qp1.sendStatuses.push(WcStatus.LOC_PROT_ERR);
    for (const number of [0, 1, 2, 3, 4]) {
      const data = madOf({ method: 3, transactionIdHi: agent.hiTid, transactionIdLo: number });
      const { destination } = pair.ask(agent, '');
      agent.send({ destination, data, timeoutUs: 0, retries: 0, context: String(number) });
    }
    await pair.world.run();
    assert.deepEqual(
      pair.network.carried.map(({ data }) => headerOf(data).transactionIdLo),
      [1, 2, 3, 4],
    );
    assert.deepEqual(pair.log, ['LOC_PROT_ERR 0', ...[1, 2, 3, 4].map((n) => `SUCCESS ${n}`)]);
  });
});

describe('MAD: an agent that unregisters', () => {
  it('is over when its last send has been reported, and not before', async () => {
    for (const count of [0, 1, 3]) {
      const pair = new MadPair();
      const agent = pair.asker();
      pair.a.qp1.holdCompletions = true;
      for (let i = 0; i < count; i++) agent.send(pair.ask(agent, String(i)));
      void agent.unregister().then(() => pair.log.push('over'));
      await pair.world.runFor(1_000);
      assert.deepEqual(pair.log, count === 0 ? ['over'] : []);
      pair.a.qp1.releaseCompletions();
      await pair.world.run();
      const reports = Array.from({ length: count }, (_, i) => `WR_FLUSH_ERR ${i}`);
      assert.deepEqual(pair.log, [...reports, 'over']);
    }
  });

  it('is over after the report of a send that returns without QP1, too', async () => {
    const pair = new MadPair();
    pair.network.fate = () => [];
    const agent = pair.asker();
    agent.send(pair.ask(agent, 'waits for its response', { timeoutUs: 1e6 }));
    await pair.world.runFor(10);
    void agent.unregister().then(() => pair.log.push('over'));
    await pair.world.run();
    assert.deepEqual(pair.log, ['WR_FLUSH_ERR waits for its response', 'over']);
  });

  it('gets no requests and no responses any more, though sends of it are on QP1', async () => {
    const pair = new MadPair();
    const { a, b } = pair;
    pair.network.fate = () => [];
    const agent = pair.asker({ methods: [1, 3] });
    a.qp1.holdCompletions = true;
    const question = pair.ask(agent, 'one', { timeoutUs: 1e6 });
    agent.send(question);
    void agent.unregister();
    for (const data of [madOf({ method: 1 }), madOf({ method: 3 }), answerTo(question.data)]) {
      a.device.receive(data, b.address.gid, a.address.gid);
    }
    await pair.world.runFor(10);
    assert.deepEqual(pair.log, []);
    const { unmatchedRequests, unmatchedResponses, answeredUnsupported } = a.mad.counters;
    assert.deepEqual([unmatchedRequests, unmatchedResponses, answeredUnsupported], [2, 1, 1]);
    // Its methods are free for another agent, which gets the next one.
    pair.asker({
      managementClass: VENDOR_CLASS,
      methods: [1, 3],
      onReceive: () => void pair.log.push('successor'),
    });
    a.device.receive(madOf({ method: 3 }), b.address.gid, a.address.gid);
    await pair.world.runFor(10);
    assert.deepEqual(pair.log, ['successor']);
  });
});
