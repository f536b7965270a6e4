/** MADs over umad devices: agents, sends and what comes back, over a fake kernel. */
import assert from 'node:assert/strict';
import { ipFromGid, type MadAgent, type MadSend, SpiError } from '../../../core/spi/index.js';
import { GET, UmadNode, fakeUmad, madOf, until } from '../../fake-umad/fake.js';

const [ONE, TWO] = ['fd00::1', 'fd00::2'] as const;
const TRAP = 5;

const refused = (code: string, message: RegExp) => (error: unknown) =>
  error instanceof SpiError && error.code === code && message.test(error.message);

function pair(): { a: UmadNode; b: UmadNode } {
  return { a: new UmadNode([ONE]), b: new UmadNode([TWO]) };
}

function ask(agent: MadAgent, to: UmadNode, context: string, more: Partial<MadSend> = {}): MadSend {
  const data = madOf({ transactionIdHi: agent.hiTid });
  return { destination: to.address(), data, timeoutUs: 5000, retries: 0, context, ...more };
}

describe('verbs MAD: requests', () => {
  afterEach(() => fakeUmad.reset());

  it('gives the response first, then the report, with the numbers of the consumer', async () => {
    const { a, b } = pair();
    b.answerer();
    const agent = a.agent();
    const request = ask(agent, b, 'one');
    agent.send(request);
    await until('reported', () => a.log.length === 2);
    assert.deepEqual(a.log, ['response one', 'SUCCESS one']);
    const [{ mad, data }] = a.received as [(typeof a.received)[0]];
    assert.deepEqual(data.subarray(4), request.data.subarray(4));
    assert.equal(ipFromGid(mad.source.gid), TWO);
    assert.deepEqual([mad.source.localGidIndex, mad.source.qpn], [0, 1]);
  });

  it('hands requests over with their bytes and where they came from', async () => {
    const { a, b } = pair();
    b.agent({ methods: [TRAP] });
    const agent = a.agent();
    const data = madOf({ method: TRAP }).fill(7, 24);
    agent.send(ask(agent, b, 'told', { data, timeoutUs: 0 }));
    await until('received', () => b.received.length === 1 && a.log.length === 1);
    assert.deepEqual(a.log, ['SUCCESS told']);
    assert.deepEqual(b.log, [`receive ${ONE}`]);
    assert.equal(b.received[0]?.mad.request, undefined);
    assert.deepEqual(b.received[0]?.data.subarray(24), data.subarray(24));
  });

  it('has the kernel repeat, and reports when its wait is over', async () => {
    const { a, b } = pair();
    b.answerer();
    const agent = a.agent();
    fakeUmad.lose(1);
    agent.send(ask(agent, b, 'again', { retries: 1 }));
    agent.send(
      ask(agent, a, 'nobody', { data: madOf({ method: TRAP, transactionIdHi: agent.hiTid }) }),
    );
    await until('written', () => a.world.activeTimers === 2);
    fakeUmad.advance(5);
    await until('answered', () => a.log.length === 3);
    assert.deepEqual(a.log.sort(), ['RESP_TIMEOUT_ERR nobody', 'SUCCESS again', 'response again']);
    assert.equal(a.world.activeTimers, 0);
  });

  it('takes the kernel for an answer where nobody is registered', async () => {
    const { a, b } = pair();
    const agent = a.agent();
    agent.send(ask(agent, b, 'one'));
    await until('reported', () => a.log.length === 2);
    assert.equal(a.received[0]?.data[5], 0x0c);
  });

  it('cancels: reported as flushed, never inside the call; later words are dropped', async () => {
    const { a, b } = pair();
    const agent = a.agent();
    b.agent({ methods: [GET] });
    const handle = agent.send(ask(agent, b, 'one'));
    await until('received', () => b.received.length === 1);
    agent.cancel(handle);
    assert.deepEqual(a.log, []);
    await until('reported', () => a.log.length === 1);
    assert.deepEqual(a.log, ['WR_FLUSH_ERR one']);
    fakeUmad.advance(5);
    agent.cancel(handle);
    await until('come back', () => a.mad.counters.lateTimeouts === 1);
    assert.deepEqual(a.log, ['WR_FLUSH_ERR one']);
  });

  it('ends by itself what the kernel drops without a word', async () => {
    const { a, b } = pair();
    b.answerer();
    const agent = a.agent();
    fakeUmad.swallow(1);
    agent.send(ask(agent, b, 'lost'));
    await until('written', () => a.world.activeTimers === 1);
    fakeUmad.advance(100);
    await a.world.run();
    assert.deepEqual(a.log, ['GENERAL_ERR lost']);
    assert.match(a.results[0]?.error?.message ?? '', /without a word/);
    assert.equal(a.mad.counters.silences, 1);
  });

  it('looks once more before it gives a request up', async () => {
    const { a, b } = pair();
    b.agent({ methods: [GET] });
    const agent = a.agent();
    agent.send(ask(agent, b, 'late'));
    await until('written', () => a.world.activeTimers === 1);
    // The process was busy: the kernel has spoken, and all timers are due.
    fakeUmad.advance(5);
    await a.world.run();
    assert.deepEqual(a.log, ['RESP_TIMEOUT_ERR late']);
  });

  it('refuses what the kernel cannot do, and says so', async () => {
    const { a, b } = pair();
    const agent = a.agent();
    const request = ask(agent, b, 'one');
    agent.send(request);
    assert.throws(() => agent.send(request), refused('EINVAL', /transaction id is outstanding/));
    const destination = { ...b.address(), qkey: 5 };
    assert.throws(
      () => agent.send(ask(agent, b, 'x', { destination })),
      refused('EOPNOTSUPP', /Q_Key 0x5/),
    );
    const handle = agent.send(ask(agent, b, 'y'));
    assert.throws(() => agent.modify(handle, 1000), refused('EOPNOTSUPP', /no way to change/));
    const foreign = madOf({ transactionIdHi: agent.hiTid + 1 });
    assert.throws(
      () => agent.send(ask(agent, b, 'z', { data: foreign })),
      refused('EINVAL', /upper/),
    );
    assert.throws(() => agent.cancel({ context: 1 }), refused('EINVAL', /not of this agent/));
    await until('reported', () => a.log.length === 4);
  });

  it('refuses a request over IPv4, where the kernel drops every response', async () => {
    const [a, b] = [new UmadNode(['10.0.0.1']), new UmadNode(['10.0.0.2'])];
    b.agent({ methods: [TRAP] });
    const agent = a.agent();
    assert.throws(() => agent.send(ask(agent, b, 'one')), refused('EOPNOTSUPP', /10\.0\.0\.2/));
    const data = madOf({ method: TRAP });
    agent.send(ask(agent, b, 'told', { data, timeoutUs: 0 }));
    await until('received', () => b.received.length === 1);
  });

  it('reports what the kernel refuses, with the reason', async () => {
    const { a, b } = pair();
    const agent = a.agent();
    const nowhere = new UmadNode(['fd00::99']);
    const destination = { ...nowhere.address(), gid: nowhere.gids[0]!.map((byte) => byte ^ 1) };
    fakeUmad.inject('write', 2, 12);
    agent.send(ask(agent, b, 'nowhere', { destination }));
    agent.send(ask(agent, b, 'memory'));
    await until('reported', () => a.log.length === 2);
    assert.deepEqual(a.log, ['GENERAL_ERR nowhere', 'GENERAL_ERR memory']);
    assert.deepEqual(
      a.results.map(({ error }) => error?.code),
      ['EHOSTUNREACH', 'ENOMEM'],
    );
  });

  it('does not block while a write does, and reads when it is over', async () => {
    const { a, b } = pair();
    b.answerer();
    const agent = a.agent();
    fakeUmad.delayWrites(60);
    let turns = 0;
    const turning = setInterval(() => turns++, 2);
    agent.send(ask(agent, b, 'slow'));
    await until('reported', () => a.log.length === 2);
    clearInterval(turning);
    assert.ok(turns > 5, `${turns} turns`);
    assert.deepEqual(a.log, ['response slow', 'SUCCESS slow']);
  });

  it('keeps apart what many agents ask at once', async () => {
    const { a, b } = pair();
    b.answerer();
    const agents = Array.from({ length: 40 }, () => a.agent());
    for (const [i, agent] of agents.entries()) {
      for (const k of [0, 1, 2]) agent.send(ask(agent, b, `${i}.${k}`, { timeoutUs: 1e6 }));
    }
    await until('answered', () => a.log.length === 240);
    for (const [i, line] of a.log.entries()) {
      if (line.startsWith('SUCCESS')) {
        assert.ok(a.log.indexOf(line.replace('SUCCESS', 'response')) < i, line);
      }
    }
    const { length } = new Set(agents.map(({ hiTid }) => hiTid)).size === 40 ? agents : [];
    assert.equal(length, 40);
    await a.mad.close();
  });
});

describe('verbs MAD: agents', () => {
  afterEach(() => fakeUmad.reset());

  it('says whose a method is: an agent of its own, the kernel, another process', () => {
    const { a } = pair();
    a.agent({ methods: [1, 2] });
    assert.throws(() => a.agent({ methods: [2] }), refused('EINVAL', /method 0x2 .* already/));
    const cm = { managementClass: 7, classVersion: 2, methods: [3] };
    assert.throws(() => a.agent(cm), refused('EINVAL', /kernel's own \(ib_cm\)/));
    fakeUmad.inject('register', 1, 22);
    assert.throws(() => a.agent({ classVersion: 2, methods: [1] }), refused('EINVAL', /process/));
    a.agent({ classVersion: 2, methods: [1] });
  });

  it('says what is missing when the device does not open', async () => {
    const { a } = pair();
    const wrong = [
      [13, 'EACCES', /permission denied.*GROUP="rdma"/],
      [2, 'ENODEV', /modprobe ib_umad/],
      [6, 'ENODEV', /being removed/],
      [24, 'ENOMEM', /ulimit -n/],
      [5, 'EIO', /EIO/],
    ] as const;
    for (const [errno, code, message] of wrong) {
      fakeUmad.inject('open', 1, errno);
      assert.throws(() => a.agent(), refused(code, message));
    }
    const late = [
      [12, 'ENOMEM', /ENOMEM/],
      [93, 'EOPNOTSUPP', /no QP1/],
      [32, 'ENODEV', /gone/],
      [13, 'EACCES', /security module/],
    ] as const;
    for (const [errno, code, message] of late) {
      fakeUmad.inject('register', 1, errno);
      assert.throws(() => a.agent({ methods: [1] }), refused(code, message));
    }
    const before = fakeUmad.openFiles();
    await until('closed again', () => fakeUmad.openFiles() <= before);
    a.agent({ methods: [1] });
  });

  it('unregisters: what waits comes back as flushed, then nobody is called', async () => {
    const { a, b } = pair();
    b.agent({ methods: [GET] });
    const agent = a.agent({ methods: [2] });
    const files = fakeUmad.openFiles();
    agent.send(ask(agent, b, 'waits'));
    await until('received', () => b.received.length === 1);
    agent.send(ask(agent, b, 'being written'));
    const ended = agent.unregister();
    assert.equal(agent.unregister(), ended);
    assert.throws(() => agent.send(ask(agent, b, 'late')), refused('EINVAL', /unregistered/));
    assert.deepEqual(a.log, []);
    await ended;
    assert.deepEqual(a.log.sort(), ['WR_FLUSH_ERR being written', 'WR_FLUSH_ERR waits']);
    // Those of other cases may go meanwhile, too.
    assert.ok(fakeUmad.openFiles() < files, `${fakeUmad.openFiles()} of ${files}`);
    a.agent({ methods: [2] });
    assert.equal(a.world.activeTimers, 0);
  });

  it('may be unregistered from its own handlers', async () => {
    const { a, b } = pair();
    b.answerer();
    const ends: Promise<void>[] = [];
    const log: string[] = [];
    const agent: MadAgent = a.agent({
      onReceive: () => {
        log.push('received');
        ends.push(agent.unregister());
      },
      onSend: ({ status }) => log.push(String(status)),
    });
    agent.send(ask(agent, b, 'one'));
    agent.send(ask(agent, b, 'two'));
    await until('unregistered', () => ends.length > 0);
    await ends[0];
    assert.deepEqual(log, ['received', '0', '5']);
  });

  it('a handler that throws stops nothing', async () => {
    const { a, b } = pair();
    b.answerer();
    let sent = 0;
    const agent = a.agent({
      onReceive: () => {
        throw new Error('receive');
      },
      onSend: () => {
        sent++;
        throw new Error('send');
      },
    });
    agent.send(ask(agent, b, 'one'));
    agent.send(ask(agent, b, 'two'));
    await until('reported', () => sent === 2);
  });

  it('returns every send when the device is removed', async () => {
    const { a, b } = pair();
    b.agent({ methods: [GET] });
    const agent = a.agent({ methods: [2] });
    agent.send(ask(agent, b, 'waits'));
    await until('received', () => b.received.length === 1);
    fakeUmad.removePort(a.path);
    agent.send(ask(agent, b, 'too late'));
    await until('returned', () => a.log.length === 2);
    assert.deepEqual(a.log.sort(), ['WR_FLUSH_ERR too late', 'WR_FLUSH_ERR waits']);
    assert.throws(() => agent.send(ask(agent, b, 'x')), refused('ENODEV', /gone/));
    assert.throws(() => a.agent(), refused('ENODEV', /removed/));
    await agent.unregister();
    await a.mad.close();
    assert.throws(() => a.agent(), refused('ENODEV', /closed/));
  });

  it('is told of the removal without having sent', async () => {
    const { a } = pair();
    const agent = a.agent({ methods: [2] });
    fakeUmad.removePort(a.path);
    await until('told', () => {
      try {
        agent.send(ask(agent, a, 'x', { timeoutUs: 0 }));
        return false;
      } catch {
        return true;
      }
    });
    await agent.unregister();
  });

  it('closes: everything comes back, and nothing is open', async () => {
    const { a, b } = pair();
    b.agent({ methods: [GET] });
    const files = fakeUmad.openFiles();
    for (let i = 0; i < 5; i++) {
      const agent = a.agent();
      agent.send(ask(agent, b, 'one'));
    }
    await Promise.all([a.mad.close(), a.mad.close()]);
    assert.equal(a.log.length, 5);
    assert.ok(fakeUmad.openFiles() <= files);
  });

  it('survives every error that reading can give', async () => {
    for (const errno of [11, 4]) {
      const { a, b } = pair();
      b.answerer();
      const agent = a.agent();
      fakeUmad.inject('read', 1, errno);
      agent.send(ask(agent, b, 'one'));
      await until('answered', () => a.log.length === 2);
      await a.mad.close();
      await b.mad.close();
    }
  });
});
