/** What changes an EVD: states, length, policy; and what refuses to change. */
import assert from 'node:assert/strict';
import {
  Cno,
  Evd,
  EvdFlags,
  type EvdOptions,
  EvdState,
  UPCALL_SAME,
  UpcallPolicy,
  type Upcall,
} from '../../../core/evd/index.js';
import type { DatError } from '../../../core/errors/index.js';
import { type Logger, silentLogger, SpiError, WcFlags, WcStatus } from '../../../core/spi/index.js';
import { watch } from './cno-scene.js';
import { FakeHost, label, settle } from './fake-host.js';
import { ALL, dat, drain, setUp } from './set-up.js';

const ignore = (): void => undefined;
/** A handler that goes on until it is told to end. */
function lasting() {
  const ends: (() => void)[] = [];
  const upcalls: Upcall[] = [];
  const handler = (_event: unknown, upcall: Upcall): Promise<void> => {
    upcalls.push(upcall);
    return new Promise((resolve) => ends.push(resolve));
  };
  return { ends, upcalls, handler };
}

describe('evd: what cannot be made', () => {
  const refusals: readonly [object, string, string | undefined, unknown][] = [
    [{ qlen: 0 }, 'DAT_INVALID_PARAMETER', 'DAT_INVALID_ARG2', 0],
    [{ qlen: 1.5 }, 'DAT_INVALID_PARAMETER', 'DAT_INVALID_ARG2', 1.5],
    [{ qlen: 5000.5 }, 'DAT_INVALID_PARAMETER', 'DAT_INVALID_ARG2', 5000.5],
    [{ qlen: 4097 }, 'DAT_INSUFFICIENT_RESOURCES', 'DAT_RESOURCE_TEVD', 4097],
    [{ streams: 0 }, 'DAT_INVALID_PARAMETER', 'DAT_INVALID_ARG4', 0],
    [{ streams: -1 }, 'DAT_INVALID_PARAMETER', 'DAT_INVALID_ARG4', -1],
    [{ streams: 0x200 }, 'DAT_INVALID_PARAMETER', 'DAT_INVALID_ARG4', 0x200],
    [{ streams: 0x1f2 }, 'DAT_INVALID_PARAMETER', 'DAT_INVALID_ARG4', 0x1f2],
    [{ streams: 2 ** 32 + 1 }, 'DAT_INVALID_PARAMETER', 'DAT_INVALID_ARG4', 2 ** 32 + 1],
    [{ streams: 0.5 }, 'DAT_INVALID_PARAMETER', 'DAT_INVALID_ARG4', 0.5],
    [{ streams: '1' }, 'DAT_INVALID_PARAMETER', 'DAT_INVALID_ARG4', '1'],
    [{ policy: 'ANY' }, 'DAT_INVALID_PARAMETER', 'DAT_INVALID_ARG2', 'ANY'],
    [{ policy: 'toString' }, 'DAT_INVALID_PARAMETER', 'DAT_INVALID_ARG2', 'toString'],
    [{ policy: 7 }, 'DAT_INVALID_PARAMETER', 'DAT_INVALID_ARG2', 7],
    [{ policy: ['ONE'] }, 'DAT_INVALID_PARAMETER', 'DAT_INVALID_ARG2', ['ONE']],
    [{ policy: 'ONE' }, 'DAT_INVALID_PARAMETER', 'DAT_INVALID_ARG3', undefined],
    [{ handler: 7 }, 'DAT_INVALID_PARAMETER', 'DAT_INVALID_ARG3', 7],
    [{ limit: 3 }, 'DAT_INVALID_PARAMETER', 'DAT_INVALID_ARG4', 3],
    [{ policy: 'ONE', handler: ignore, limit: 3 }, 'DAT_INVALID_PARAMETER', 'DAT_INVALID_ARG4', 3],
    [{ limit: 0 }, 'DAT_INVALID_PARAMETER', 'DAT_INVALID_ARG4', 0],
    [{ limit: 65537 }, 'DAT_INVALID_PARAMETER', 'DAT_INVALID_ARG4', 65537],
    [{ limit: 1.5 }, 'DAT_INVALID_PARAMETER', 'DAT_INVALID_ARG4', 1.5],
    [{ polling: 'busy' }, 'DAT_INVALID_PARAMETER', 'DAT_INVALID_ARG2', 'busy'],
    [{ stream: 1 }, 'DAT_INVALID_PARAMETER', 'DAT_INVALID_ARG2', 'stream'],
  ];
  for (const [options, code, subtype, value] of refusals) {
    const text = Object.entries(options).map(([key, of]) => `${key} ${String(of)}`);
    it(`${text.join()}: ${code}, with the value, and no queue is made`, () => {
      const host = new FakeHost();
      assert.throws(
        () => new Evd(host, { id: 1, qlen: 8, ...options }),
        (error: { readonly value: unknown }) => {
          assert.deepEqual(error.value, value);
          return dat(code, subtype)(error);
        },
      );
      assert.equal(host.cqs.length, 0);
    });
  }

  it('the edges themselves are taken', () => {
    const host = new FakeHost();
    const { NOTIFY: policy } = UpcallPolicy;
    const all: readonly Partial<EvdOptions>[] = [
      { qlen: 1 },
      { qlen: 4096 },
      { streams: EvdFlags.SOFTWARE },
      { streams: EvdFlags.DEFAULT | EvdFlags.SOFTWARE },
      { policy, handler: ignore },
      { policy: 'MANY', handler: ignore, limit: 1 },
      { policy: 'MANY', handler: ignore, limit: 65536 },
      { policy: 'DISABLE', handler: ignore },
    ];
    for (const [id, options] of all.entries()) {
      const evd = new Evd(host, { qlen: 8, id, ...options } as EvdOptions);
      assert.equal(evd.query().streams, options.streams ?? EvdFlags.DEFAULT);
    }
    assert.equal(host.cqs.length, all.length - 1);
  });
});

describe('evd: states', () => {
  it('enable and disable are idempotent, and concern neither waiter nor subscriber', async () => {
    const { host, evd } = setUp();
    const enabled = (): boolean => (evd.query().state & EvdState.ENABLED) !== 0;
    evd.enable();
    assert.equal(enabled(), true);
    evd.disable();
    evd.disable();
    assert.equal(enabled(), false);
    const waiting = evd.wait();
    evd.postSe(1);
    host.run();
    assert.equal(label((await waiting).event), 1);
    const got: unknown[] = [];
    evd.events$.subscribe((event) => got.push(label(event)));
    evd.postSe(2);
    host.run();
    assert.deepEqual(got, [2]);
    evd.enable();
    assert.equal(enabled(), true);
  });

  it('upcalls of a disabled EVD are armed and told of what has come by enable', () => {
    const { host, evd } = setUp();
    const { context } = host.endpoint();
    const got: unknown[] = [];
    evd.disable();
    evd.modifyUpcall('ONE', (event) => void got.push(label(event)));
    assert.equal(host.cq.armed, 'none');
    host.cq.add({ context, cookie: 1 });
    host.run();
    assert.deepEqual(got, []);
    evd.enable();
    assert.equal(host.cq.armed, 'next');
    host.run();
    assert.deepEqual(got, [1]);
  });

  it('unwaitable ends an iteration under way and refuses the next, and nothing else', async () => {
    const { host, evd } = setUp();
    const unwaitable = dat('DAT_INVALID_STATE', 'DAT_INVALID_STATE_EVD_UNWAITABLE');
    const iterator = evd[Symbol.asyncIterator]();
    const next = iterator.next();
    evd.setUnwaitable();
    await assert.rejects(next, unwaitable);
    assert.deepEqual([evd.query().taker, host.kept], ['none', 0]);
    await assert.rejects(evd[Symbol.asyncIterator]().next(), unwaitable);
    evd.postSe(1);
    assert.deepEqual(drain(evd), [1]);
    const got: unknown[] = [];
    evd.events$.subscribe((event) => got.push(label(event)));
    evd.postSe(2);
    host.run();
    assert.deepEqual(got, [2]);
  });

  it('unwaitable ends a loop at its next batch', async () => {
    const { evd } = setUp();
    evd.postSe(1);
    const loop = (async () => {
      for await (const batch of evd) {
        assert.equal(batch.length, 1);
        evd.setUnwaitable();
        evd.postSe(2);
      }
    })();
    await assert.rejects(loop, dat('DAT_INVALID_STATE', 'DAT_INVALID_STATE_EVD_UNWAITABLE'));
    assert.deepEqual(drain(evd), [2]);
  });

  it('a second iteration, and a wait beside one, are refused; the first goes on', async () => {
    const { host, evd } = setUp();
    const next = evd[Symbol.asyncIterator]().next();
    const taken = dat('DAT_INVALID_STATE', 'DAT_INVALID_STATE_EVD_WAITER');
    await assert.rejects(evd[Symbol.asyncIterator]().next(), taken);
    await assert.rejects(evd.wait(), taken);
    evd.postSe(1);
    host.run();
    assert.deepEqual((await next).value?.map(label), [1]);
  });

  it('one iterator asked twice at once waits once', async () => {
    const { host, evd } = setUp();
    const iterator = evd[Symbol.asyncIterator]();
    const first = watch(iterator.next());
    await assert.rejects(iterator.next(), dat('DAT_INVALID_STATE'));
    evd.postSe(1);
    host.run();
    assert.notEqual(await first.now(), 'pending');
    assert.equal(host.kept, 0);
  });
});

describe('evd: resize', () => {
  it('keeps to the limit of the device, and to what waits or is waited for', async () => {
    const { evd } = setUp({ qlen: 8 });
    const refused = (value: unknown, code: string, subtype?: string) => (error: unknown) => {
      assert.equal((error as DatError).value, value);
      return dat(code, subtype)(error);
    };
    for (const qlen of [4097, 0, -1, 1.5]) {
      const invalid = refused(qlen, 'DAT_INVALID_PARAMETER', 'DAT_INVALID_ARG2');
      assert.throws(() => evd.resize(qlen), invalid);
    }
    evd.resize(4096);
    const stop = new AbortController();
    const waiting = watch(evd.wait({ threshold: 5, signal: stop.signal }));
    assert.throws(() => evd.resize(4), refused(4, 'DAT_INVALID_STATE'));
    evd.resize(5);
    assert.equal(evd.qlen, 5);
    stop.abort();
    assert.equal(await waiting.now(), 'DAT_INTERRUPTED_CALL');
    for (const payload of [1, 2, 3]) evd.postSe(payload);
    assert.throws(() => evd.resize(2), refused(2, 'DAT_INVALID_STATE'));
    evd.resize(3);
    assert.throws(() => evd.postSe(4), dat('DAT_QUEUE_FULL'));
    assert.deepEqual(drain(evd), [1, 2, 3]);
  });

  it('counts completions that nothing has looked at yet', () => {
    const { host, evd } = setUp({ qlen: 8 });
    const { context } = host.endpoint();
    for (let cookie = 1; cookie <= 6; cookie++) host.cq.add({ context, cookie });
    assert.throws(() => evd.resize(5), dat('DAT_INVALID_STATE'));
    assert.equal(evd.query().qlen, 8);
  });

  it('that the device refuses changes nothing', () => {
    for (const [code, type] of [
      ['EINVAL', 'DAT_INVALID_STATE'],
      ['ENOMEM', 'DAT_INSUFFICIENT_RESOURCES'],
    ] as const) {
      const { host, evd } = setUp({ qlen: 8 });
      host.cq.resize = () => {
        throw new SpiError(code, 'no');
      };
      assert.throws(() => evd.resize(16), dat(type));
      assert.equal(evd.qlen, 8);
    }
  });
});

describe('evd: policy', () => {
  it('refuse arms before it counts, for what its streams notify of', () => {
    for (const [configuration, armed] of [
      ['SOLICITED', 'solicited'],
      ['THRESHOLD', 'next'],
    ] as const) {
      const { host, evd } = setUp();
      evd.feed.attach(configuration);
      evd.postSe(1);
      const refuse = (): void => evd.modifyUpcall('ONE', ignore, { pending: 'refuse' });
      assert.throws(refuse, (error: DatError) => {
        assert.equal(error.value, 1);
        return dat('DAT_INVALID_STATE')(error);
      });
      assert.equal(host.cq.armed, armed);
      assert.equal(evd.query().policy, 'DISABLE');
      assert.deepEqual(drain(evd), [1]);
      refuse();
      assert.equal(evd.query().policy, 'ONE');
    }
  });

  it('what a policy has no use for is refused, and says what to do', () => {
    const { evd } = setUp();
    const calls: readonly [() => void, RegExp][] = [
      [() => evd.modifyUpcall('ONE', ignore, { limit: 3 }), /limit 3: policy ONE .* say MANY/],
      [() => evd.modifyUpcall('NOTIFY', ignore, { limit: 1 }), /limit 1: policy NOTIFY/],
      [() => evd.modifyUpcall('DISABLE', null, { limit: 1 }), /limit 1: policy DISABLE/],
      [
        () => void evd.modifyUpcall('TEARDOWN', ignore, { pending: 'keep' }),
        /pending 'keep': policy TEARDOWN starts no upcalls/,
      ],
      [() => evd.modifyUpcall('DISABLE', null, { pending: 'deliver' }), /pending 'deliver': .*DIS/],
    ];
    for (const [call, message] of calls) {
      assert.throws(call, (error: Error) => {
        assert.match(error.message, message);
        return dat('DAT_INVALID_PARAMETER', 'DAT_INVALID_ARG4')(error);
      });
    }
    assert.equal(evd.query().policy, 'DISABLE');
  });

  it('pending and limit are checked, whatever the policy', () => {
    const { evd } = setUp();
    const refused = dat('DAT_INVALID_PARAMETER', 'DAT_INVALID_ARG4');
    for (const options of [{ pending: 'drop' as 'keep' }, { limit: 0 }, { upcall: {} as Upcall }]) {
      assert.throws(() => evd.modifyUpcall('DISABLE', null, options), refused);
    }
    const { DISABLE } = UpcallPolicy;
    assert.throws(() => evd.modifyUpcall(DISABLE, 7 as never), dat('DAT_INVALID_PARAMETER'));
    assert.deepEqual([evd.query().policy, evd.query().upcallLimit], ['DISABLE', 0]);
  });

  it('MANY is limited to 16 unless a limit is named, at creation and later', () => {
    const { evd } = setUp({ policy: 'MANY', handler: ignore });
    assert.equal(evd.query().upcallLimit, 16);
    evd.modifyUpcall('MANY', UPCALL_SAME, { limit: 2 });
    assert.equal(evd.query().upcallLimit, 2);
    evd.modifyUpcall('MANY');
    assert.equal(evd.query().upcallLimit, 16);
  });

  it('null takes the handler away', () => {
    const { evd } = setUp({ policy: 'ONE', handler: ignore });
    evd.modifyUpcall('DISABLE', null);
    const none = dat('DAT_INVALID_PARAMETER', 'DAT_INVALID_ARG3');
    assert.throws(() => evd.modifyUpcall('ONE', UPCALL_SAME), none);
    assert.equal(evd.query().policy, 'DISABLE');
  });

  it('only TEARDOWN answers with a promise, which waits for what is in progress', async () => {
    const { host, evd } = setUp();
    const { ends, handler } = lasting();
    assert.equal(evd.modifyUpcall('MANY', handler), undefined);
    for (const payload of [1, 2]) evd.postSe(payload);
    host.run();
    assert.equal(evd.modifyUpcall('DISABLE'), undefined);
    const torn = watch(evd.modifyUpcall('TEARDOWN'));
    const drained = watch(evd.drainUpcalls());
    ends[0]?.();
    assert.deepEqual([await torn.now(), await drained.now()], ['pending', 'pending']);
    ends[1]?.();
    assert.deepEqual(await torn.now(), { value: undefined });
    assert.deepEqual(await drained.now(), { value: undefined });
    assert.equal(host.kept, 0);
  });

  it('an upcall that is named is not waited for', async () => {
    const { host, evd } = setUp();
    const { ends, upcalls, handler } = lasting();
    evd.modifyUpcall('ONE', handler);
    evd.postSe(1);
    host.run();
    const [upcall = assert.fail()] = upcalls;
    await evd.drainUpcalls(upcall);
    await evd.modifyUpcall('TEARDOWN', UPCALL_SAME, { upcall });
    await evd.free({ upcall });
    assert.equal(ends.length, 1);
    const bad = dat('DAT_INVALID_PARAMETER', 'DAT_INVALID_ARG4');
    await assert.rejects(evd.drainUpcalls({} as Upcall), bad);
    await assert.rejects(evd.free({ upcall: 7 as unknown as Upcall }), bad);
  });

  it('the synchronous part of a handler is known: the wait is not for itself', async () => {
    const calls: Readonly<Record<string, (evd: Evd) => Promise<void>>> = {
      drainUpcalls: (evd) => evd.drainUpcalls(),
      TEARDOWN: (evd) => evd.modifyUpcall('TEARDOWN'),
      free: (evd) => evd.free(),
    };
    for (const [name, call] of Object.entries(calls)) {
      const { host, evd } = setUp();
      let isOver = false;
      evd.modifyUpcall('ONE', async () => {
        await call(evd);
        isOver = true;
      });
      evd.postSe(1);
      host.run();
      await settle();
      assert.equal(isOver, true, name);
    }
  });
});

describe('evd: how its streams notify', () => {
  it('SOLICITED arms for solicited completions again after each, and for failed ones', async () => {
    const { host, evd } = setUp();
    const { context } = host.endpoint();
    evd.feed.attach('SOLICITED');
    const got: unknown[] = [];
    evd.events$.subscribe((event) => got.push(label(event)));
    host.cq.add({ context, cookie: 1 });
    host.run();
    assert.deepEqual([got, host.cq.armed], [[], 'solicited']);
    host.cq.add({ context, cookie: 2, flags: WcFlags.SOLICITED });
    host.run();
    assert.deepEqual([got, host.cq.armed], [[1, 2], 'solicited']);
    host.cq.add({ context, cookie: 3 });
    host.cq.add({ context, cookie: 4, status: WcStatus.LOC_PROT_ERR });
    host.run();
    assert.deepEqual([got, host.cq.armed], [[1, 2, 3, 4], 'solicited']);
  });

  it('a hold wants the next completion even so', () => {
    const { host, evd } = setUp();
    const ep = host.endpoint();
    evd.feed.attach('SOLICITED');
    const end = evd.feed.hold();
    assert.equal(host.cq.armed, 'next');
    host.cq.add({ context: ep.context, cookie: 1 });
    host.run();
    assert.deepEqual([ep.seen, host.cq.armed], [[1], 'next']);
    end();
  });
});

describe('evd: traces', () => {
  it('have one line a call, and none for what is left out', async () => {
    const lines: string[] = [];
    const debug = (line: string): void => void lines.push(line);
    const logger: Logger = { ...silentLogger, isDebugEnabled: () => true, debug };
    const host = new FakeHost();
    host.logger = logger;
    const cno = new Cno(host, { id: 3 });
    const evd = new Evd(host, { id: 7, qlen: 8, streams: ALL });
    function named(): void {
      lines.push('called');
    }
    evd.modifyUpcall('MANY', named, { limit: 3, pending: 'keep' });
    evd.modifyUpcall('DISABLE', null);
    evd.modifyCno(cno);
    evd.modifyCno(null);
    evd.postSe({ a: 1 });
    evd.setPolling('event');
    evd.enable();
    await evd.wait({ timeoutMs: 5 });
    cno.trigger();
    cno.modifyAgent(null);
    cno.free();
    assert.deepEqual(lines, [
      'evd.modifyUpcall(evd=7, policy=MANY, handler=named, limit=3, pending=keep)',
      'evd.modifyUpcall(evd=7, policy=DISABLE, handler=null)',
      'evd.modifyCno(evd=7, cno=3)',
      'evd.modifyCno(evd=7, cno=null)',
      'evd.postSe(evd=7, payload=an object)',
      'evd.setPolling(evd=7, mode=event)',
      'evd.enable(evd=7)',
      'evd.wait(evd=7, timeoutMs=5, threshold=1)',
      'event(evd=7, number=SOFTWARE, payload=an object)',
      'cno.trigger(cno=3)',
      'cno.modifyAgent(cno=3, agent=null)',
      'cno.free(cno=3)',
    ]);
  });

  it('cost nothing while no debug line is wanted', () => {
    const { host, evd } = setUp();
    const cno = new Cno(host, { id: 3 });
    host.logger = { ...silentLogger, debug: (line) => assert.fail(line) };
    evd.disable();
    cno.free();
  });
});
