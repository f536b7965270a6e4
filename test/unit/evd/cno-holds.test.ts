/** What a CNO remembers, what it keeps alive and for how long, and what its end leaves behind. */
import assert from 'node:assert/strict';
import type { CnoAgent } from '../../../core/index.js';
import { Cno, DatEventNumber, Evd } from '../../../core/evd/index.js';
import { scene, SOFTWARE, watch } from './cno-scene.js';
import { FakeHost, settle } from './fake-host.js';
import { dat, drain } from './set-up.js';

const ignore = (): void => undefined;

/** A CNO with one EVD. */
function alone() {
  const host = new FakeHost();
  const cno = new Cno(host, { id: 1 });
  const evd = new Evd(host, { id: 2, qlen: 8, streams: SOFTWARE, cno });
  const fire = (): void => {
    evd.postSe(1);
    host.run();
  };
  return { host, cno, evd, fire };
}

describe('cno: query', () => {
  it('tells number, state, agent, EVDs and waiters', () => {
    const { host, cno, evd, fire } = alone();
    const agent = ignore;
    cno.modifyAgent(agent);
    const waiting = [watch(cno.wait()), watch(cno.wait())];
    const param = { id: 1, state: 'UNTRIGGERED', agent, evds: [evd], waiters: 2 };
    assert.deepEqual(cno.query(), param);
    fire();
    assert.deepEqual(cno.query(), { ...param, agent: null, waiters: 1 });
    fire();
    fire();
    assert.deepEqual(cno.query(), { ...param, agent: null, waiters: 0, state: 'TRIGGERED' });
    assert.equal(waiting.length, 2);
    assert.deepEqual([host.kept, new Cno(host, { id: 5 }).id], [0, 5]);
    assert.deepEqual([cno.isFreed, cno.consumerContext, cno.handleType], [false, undefined, 'CNO']);
  });
});

describe('cno: EVDs come and go', () => {
  it('naming the same one again changes nothing: waiters still wait', async () => {
    const { host, cno, evd } = alone();
    const waiting = watch(cno.wait());
    evd.modifyCno(cno);
    assert.equal(await waiting.now(), 'pending');
    evd.postSe(1);
    host.run();
    assert.deepEqual(await waiting.now(), { value: evd });
    evd.modifyCno(cno);
    host.run();
    assert.equal(cno.query().state, 'UNTRIGGERED', 'what has been told is not told again');
  });

  it('one that another has fired for leaves the hint as it is', async () => {
    const { host, cno, a, b } = scene();
    a.postSe(1);
    host.run();
    await b.free();
    assert.equal(await cno.wait(), a);
    assert.deepEqual(
      cno.query().evds.map(({ id }) => id),
      [2, 4],
    );
  });

  it('the last one leaves a trigger that is there, without a hint', async () => {
    const { cno, evd, fire } = alone();
    fire();
    await evd.free();
    assert.equal(cno.query().state, 'TRIGGERED');
    assert.equal(await cno.wait(), undefined);
    assert.equal(cno.query().state, 'UNTRIGGERED');
    assert.deepEqual(cno.query().evds, []);
  });

  it('a hint is told once: the next trigger by hand has none', async () => {
    const { host, cno, evd, fire } = alone();
    fire();
    assert.equal(await cno.wait(), evd);
    assert.equal(cno.trigger(), undefined);
    host.run();
    assert.equal(await cno.wait(), undefined);
  });

  it('one that has moved to another CNO tells that one only', async () => {
    const { host, cno, evd, fire } = alone();
    const other = new Cno(host, { id: 9 });
    evd.modifyCno(other);
    fire();
    assert.equal(cno.query().state, 'UNTRIGGERED');
    assert.equal(await other.wait(), evd);
    assert.deepEqual([cno.query().evds, other.query().evds], [[], [evd]]);
    cno.free();
  });

  it('one that is given a CNO as events wait tells it; one that is disabled does not', () => {
    const { host, cno } = alone();
    for (const isDisabled of [false, true]) {
      const late = new Evd(host, { id: 3, qlen: 8, streams: SOFTWARE });
      const own = new Cno(host, { id: 9 });
      late.postSe(1);
      if (isDisabled) late.disable();
      late.modifyCno(own);
      host.run();
      assert.equal(own.query().state, isDisabled ? 'UNTRIGGERED' : 'TRIGGERED');
      if (isDisabled) late.enable();
      host.run();
      assert.equal(own.query().state, 'TRIGGERED');
    }
    assert.equal(cno.query().state, 'UNTRIGGERED');
  });

  it('one whose events are gone before the pump runs tells nothing', () => {
    const { host, cno, evd } = alone();
    evd.postSe(1);
    drain(evd);
    host.run();
    assert.equal(cno.query().state, 'UNTRIGGERED');
  });

  it('a CNO that is named at creation must be one of the adapter', () => {
    const { host } = alone();
    const wrong = dat('DAT_INVALID_HANDLE', 'DAT_INVALID_HANDLE_CNO');
    for (const cno of [alone().cno, {} as Cno]) {
      assert.throws(() => new Evd(host, { id: 3, qlen: 8, cno }), wrong);
    }
    assert.equal(host.cqs.length, 0, 'and nothing has been made');
  });
});

describe('cno: what keeps the process alive', () => {
  it('a waiter, until it is served, its time is up, it is stopped or the CNO ends', async () => {
    const { host, cno, fire } = alone();
    const stop = new AbortController();
    const waits = [cno.wait(), cno.wait({ timeoutMs: 5 }), cno.wait({ signal: stop.signal })];
    const watched = [...waits, cno.wait()].map(watch);
    const held = (): number[] => [host.kept, cno.query().waiters];
    assert.deepEqual(held(), [1, 4]);
    fire();
    assert.deepEqual(held(), [1, 3]);
    host.advance(5);
    assert.deepEqual(held(), [1, 2]);
    stop.abort();
    assert.deepEqual(held(), [1, 1]);
    cno.close();
    assert.equal(host.kept, 0);
    host.advance(1000);
    const outcomes = await Promise.all(watched.map(({ now }) => now()));
    const codes = ['DAT_QUEUE_EMPTY', 'DAT_INTERRUPTED_CALL', 'DAT_INVALID_STATE'];
    assert.deepEqual(outcomes.slice(1), codes);
    assert.equal(host.kept, 0);
  });

  it('a wait that is over is not ended again by its timeout or signal', async () => {
    const { host, cno, fire } = alone();
    const stop = new AbortController();
    const first = cno.wait({ timeoutMs: 5, signal: stop.signal });
    const second = watch(cno.wait());
    fire();
    await first;
    assert.equal(host.active.size, 0);
    stop.abort();
    host.advance(5);
    assert.equal(await second.now(), 'pending');
    assert.deepEqual([host.kept, cno.query().waiters], [1, 1]);
  });

  it('the time that is up is said, and 0 ms only looks', async () => {
    const { host, cno } = alone();
    const timeout = (timeoutMs: number) => (error: { readonly value: unknown }) => {
      assert.deepEqual(error.value, { timeoutMs });
      return dat('DAT_QUEUE_EMPTY')(error);
    };
    await assert.rejects(cno.wait({ timeoutMs: 0 }), timeout(0));
    assert.deepEqual([host.kept, host.active.size, cno.query().waiters], [0, 0, 0]);
    const waiting = assert.rejects(cno.wait({ timeoutMs: 7 }), timeout(7));
    host.advance(7);
    await waiting;
  });

  it('an agent, once, however often it is changed', () => {
    const { host, cno, fire } = alone();
    const agents: readonly (CnoAgent | null)[] = [
      null,
      ignore,
      () => undefined,
      null,
      null,
      ignore,
    ];
    const kept = agents.map((agent) => {
      cno.modifyAgent(agent);
      return host.kept;
    });
    assert.deepEqual(kept, [0, 1, 1, 0, 0, 1]);
    fire();
    assert.equal(host.kept, 0);
    cno.modifyAgent(ignore);
    cno.close();
    assert.equal(host.kept, 0);
  });

  it('an agent that is none is refused, at creation and later', () => {
    const { host, cno } = alone();
    const refused = dat('DAT_INVALID_PARAMETER', 'DAT_INVALID_ARG2');
    for (const agent of [7, {}, 'agent'] as unknown as CnoAgent[]) {
      assert.throws(() => cno.modifyAgent(agent), refused);
      assert.throws(() => new Cno(host, { id: 3, agent }), refused);
    }
    assert.equal(host.kept, 0);
  });

  it('a subscriber, until it leaves; then another may come', () => {
    const { host, cno, evd, fire } = alone();
    const seen: unknown[] = [];
    const first = cno.notifications$.subscribe((by) => seen.push(by));
    assert.equal(host.kept, 1);
    first.unsubscribe();
    first.unsubscribe();
    assert.equal(host.kept, 0);
    host.run();
    fire();
    assert.deepEqual([seen, cno.query().state], [[], 'TRIGGERED']);
    cno.notifications$.subscribe((by) => seen.push(by));
    host.run();
    assert.deepEqual([seen, cno.query().state, host.kept], [[evd], 'UNTRIGGERED', 1]);
  });

  it('listeners of the handle’s readable, of which the last one counts', () => {
    const { host, cno } = alone();
    const { handle } = cno;
    assert.equal(cno.handle, handle);
    handle.on('close', ignore);
    assert.equal(host.kept, 0, 'of another event');
    const others = [(): void => undefined, (): void => undefined] as const;
    for (const listener of others) handle.on('readable', listener);
    assert.equal(host.kept, 1);
    handle.off('readable', others[0]);
    assert.equal(host.kept, 1);
    handle.unref().unref();
    assert.deepEqual([host.kept, handle.hasRef()], [0, false]);
    handle.off('readable', others[1]);
    handle.ref();
    assert.equal(host.kept, 0, 'none is left');
    handle.on('readable', ignore);
    assert.equal(host.kept, 1);
  });

  it('a loop of for await while it waits', async () => {
    const { host, cno, evd, fire } = alone();
    fire();
    const seen: unknown[] = [];
    const loop = (async () => {
      for await (const by of cno) if (seen.push(by) === 2) break;
    })();
    await settle();
    assert.deepEqual([seen, host.kept], [[evd], 1], 'it takes the trigger that is there');
    fire();
    await loop;
    assert.deepEqual([seen, host.kept, cno.query().waiters], [[evd, evd], 0, 0]);
  });
});

describe('cno: the order of takers', () => {
  it('a waiter is served before the subscriber, which hears of the next', async () => {
    const { cno, evd, fire } = alone();
    const seen: unknown[] = [];
    cno.notifications$.subscribe((by) => seen.push(by));
    const waiting = watch(cno.wait());
    fire();
    assert.deepEqual([await waiting.now(), seen], [{ value: evd }, []]);
    fire();
    assert.deepEqual(seen, [evd]);
  });

  it('a handle is told when nothing has taken the trigger, and once', () => {
    const { host, cno, evd, fire } = alone();
    const told: unknown[] = [];
    cno.handle.on('readable', (by) => told.push(by));
    fire();
    fire();
    assert.deepEqual(told, [evd]);
    assert.equal(Atomics.load(cno.handle.word, 0), 2, 'each trigger is counted');
    assert.equal(cno.handle.take(), evd);
    cno.trigger();
    evd.postSe(1);
    host.run();
    assert.deepEqual(told, [evd, undefined], 'the first of the two is what fires it');
  });

  it('a handle is not told of a trigger that an agent has taken', () => {
    const { cno, evd, fire } = alone();
    let told = 0;
    cno.handle.on('readable', () => told++);
    const taken: unknown[] = [];
    cno.modifyAgent(() => void taken.push(cno.handle.take()));
    fire();
    assert.deepEqual([taken, told], [[evd], 0]);
  });
});

describe('cno: its end', () => {
  it('counts what keeps it from being freed', () => {
    const { host, cno, evd } = alone();
    void watch(cno.wait());
    assert.throws(
      () => cno.free(),
      (error: { readonly value: unknown }) => {
        assert.deepEqual(error.value, { evds: 1, waiters: 1 });
        return dat('DAT_INVALID_STATE', 'DAT_INVALID_STATE_CNO_IN_USE')(error);
      },
    );
    assert.deepEqual([cno.isFreed, host.freed.length], [false, 0]);
    evd.modifyCno(null);
    cno.free();
    assert.deepEqual([cno.isFreed, host.freed], [true, [cno]]);
  });

  it('completes the stream and closes the handle, soon and once, and lets the process go', () => {
    const { host, cno, evd } = alone();
    evd.modifyCno(null);
    const log: string[] = [];
    cno.notifications$.subscribe({ complete: () => log.push('complete') });
    cno.handle.on('readable', ignore);
    cno.handle.on('close', () => log.push('close'));
    assert.equal(host.kept, 2);
    cno.free();
    assert.deepEqual(log, [], 'not inside the call');
    host.run();
    assert.deepEqual([log, host.kept], [['complete', 'close'], 0]);
    cno.handle.close();
    assert.deepEqual(log, ['complete', 'close']);
    cno.handle.on('readable', ignore);
    cno.handle.ref();
    assert.deepEqual([host.kept, cno.handle.readable, cno.handle.take()], [0, false, undefined]);
  });

  it('leaves a handle that is asked for later closed', () => {
    const { host, cno } = alone();
    cno.close();
    cno.handle.on('readable', ignore);
    assert.deepEqual([host.kept, cno.handle.readable], [0, false]);
  });

  it('a trigger under way when it comes is lost, and harms nothing', () => {
    const { host, cno, evd } = alone();
    cno.modifyAgent(() => assert.fail('it has been taken away'));
    cno.trigger();
    evd.postSe(1);
    cno.close();
    host.run();
    assert.deepEqual([host.kept, host.async, cno.isFreed], [0, [], true]);
    assert.deepEqual(drain(evd), [1]);
  });

  it('`using` frees it, unless that has been done', () => {
    const host = new FakeHost();
    const cno = new Cno(host, { id: 1 });
    cno[Symbol.dispose]();
    assert.equal(cno.isFreed, true);
    cno[Symbol.dispose]();
    assert.deepEqual(host.freed, [cno]);
  });

  it('ends a loop that waits, and one that comes later at once', async () => {
    const { host, cno } = alone();
    const loop = async (): Promise<string> => {
      for await (const by of cno) assert.fail(`told of ${by?.id}`);
      return 'ended';
    };
    const first = loop();
    await settle();
    cno.close();
    assert.deepEqual([await first, await loop(), host.kept], ['ended', 'ended', 0]);
    const errors: unknown[] = [];
    cno.notifications$.subscribe({ error: (error: unknown) => errors.push(error) });
    assert.ok(dat('DAT_INVALID_HANDLE', 'DAT_INVALID_HANDLE_CNO')(errors[0]));
  });

  it('an agent’s failure names the CNO, as an error of the provider’s', () => {
    const { host, cno, fire } = alone();
    cno.modifyAgent(() => {
      throw new Error('agent');
    });
    fire();
    const [{ number, object, reason, message } = assert.fail()] = host.async;
    assert.deepEqual([number, reason], [DatEventNumber.ASYNC_PROVIDER_INTERNAL_ERROR, 0]);
    assert.deepEqual([object, message], [cno, 'cno 1: the agent has failed']);
    assert.equal(cno.query().state, 'TRIGGERED');
  });

  it('refuses signals that are none, times below 0, and one that has fired before', async () => {
    const { host, cno, fire } = alone();
    const refused = dat('DAT_INVALID_PARAMETER', 'DAT_INVALID_ARG2');
    await assert.rejects(cno.wait({ signal: {} as AbortSignal }), refused);
    await assert.rejects(cno.wait({ timeoutMs: -1 }), refused);
    fire();
    await assert.rejects(cno.wait({ signal: AbortSignal.abort() }), dat('DAT_INTERRUPTED_CALL'));
    assert.deepEqual([cno.query().state, host.kept], ['TRIGGERED', 0]);
  });
});
