/** Which upcalls a teardown, a drain and a close wait for; and when an upcall is over. */
import assert from 'node:assert/strict';
import { type Evd, type Upcall, currentUpcall } from '../../../core/evd/index.js';
import { type FakeHost, settle } from './fake-host.js';
import { drain, setUp } from './set-up.js';

/** Upcalls in progress, each of which ends when it is told to. */
class Upcalls {
  readonly host: FakeHost;
  readonly evd: Evd;
  /** Names of what has resolved, in order. */
  readonly log: string[] = [];
  private readonly list: { readonly upcall: Upcall; readonly end: () => void }[] = [];

  constructor(count: number) {
    const { host, evd } = setUp({ qlen: 16 });
    this.host = host;
    this.evd = evd;
    this.start(count);
  }

  /** So many more. */
  start(count: number): void {
    const begun = this.list.length + count;
    const handler = async (_: unknown, upcall: Upcall): Promise<void> =>
      new Promise((end) => this.list.push({ upcall, end }));
    this.evd.modifyUpcall('MANY', handler);
    for (let i = 0; i < count; i++) this.evd.postSe(i);
    this.host.run();
    assert.equal(this.list.length, begun);
  }

  upcall(i: number): Upcall {
    return this.list[i]!.upcall;
  }

  /** Logs when it resolves. */
  note(name: string, promise: Promise<void>): void {
    void promise.then(() => this.log.push(name));
  }

  async end(i: number): Promise<void> {
    this.list[i]!.end();
    await settle();
  }

  async resolved(...names: string[]): Promise<void> {
    await settle();
    assert.deepEqual(this.log, names);
  }
}

describe('evd: which upcalls are waited for', () => {
  it('a drain: those in progress when it is asked for, in whatever order they end', async () => {
    for (const order of [
      [0, 1, 2],
      [1, 2, 0],
      [2, 0, 1],
    ]) {
      const all = new Upcalls(3);
      all.note('drain', all.evd.drainUpcalls());
      all.start(1);
      for (const i of order) {
        await all.resolved();
        await all.end(i);
      }
      await all.resolved('drain');
      assert.equal(all.evd.query().upcallsInProgress, 1);
      all.note('later', all.evd.drainUpcalls());
      await all.resolved('drain');
      await all.end(3);
      await all.resolved('drain', 'later');
    }
  });

  it('none: it resolves at once', async () => {
    const all = new Upcalls(1);
    await all.end(0);
    all.note('drain', all.evd.drainUpcalls());
    all.note('teardown', all.evd.modifyUpcall('TEARDOWN'));
    await all.resolved('drain', 'teardown');
  });

  it('an upcall that has waited, and does not any more, is waited for again', async () => {
    const all = new Upcalls(2);
    all.note('a', all.upcall(0).teardown());
    await all.end(1);
    await all.resolved('a');
    all.start(1);
    all.note('c', all.upcall(2).teardown());
    await all.resolved('a');
    await all.end(0);
    await all.resolved('a', 'c');
  });

  it('one that waits twice is left out until both are over', async () => {
    const all = new Upcalls(3);
    all.note('a', all.upcall(0).teardown());
    all.start(1);
    all.note('a again', all.evd.drainUpcalls(all.upcall(0)));
    await all.end(1);
    await all.end(2);
    await all.resolved('a');
    all.note('d', all.upcall(3).teardown());
    await all.resolved('a', 'd');
    await all.end(3);
    await all.resolved('a', 'd', 'a again');
  });

  it('one whose former wait is over is left out of later ones as before', async () => {
    const all = new Upcalls(2);
    all.note('a', all.upcall(0).teardown());
    await all.end(1);
    await all.resolved('a');
    all.start(2);
    await all.end(2);
    all.note('a again', all.upcall(0).teardown());
    all.note('d', all.upcall(3).teardown());
    await all.resolved('a', 'd');
    await all.end(3);
    await all.resolved('a', 'd', 'a again');
  });

  it('several drains of one EVD end each with its own upcalls', async () => {
    const all = new Upcalls(1);
    all.note('first', all.evd.drainUpcalls());
    all.start(1);
    all.note('second', all.evd.drainUpcalls());
    all.note('third', all.evd.drainUpcalls());
    await all.end(0);
    await all.resolved('first');
    await all.end(1);
    await all.resolved('first', 'second', 'third');
  });

  it('of two EVDs, each for the other’s: the second finds the first waiting', async () => {
    const all = new Upcalls(1);
    const other = new Upcalls(1);
    all.note('drain', all.evd.drainUpcalls(other.upcall(0)));
    await all.resolved();
    all.note('other', other.evd.drainUpcalls(all.upcall(0)));
    await all.resolved('other');
    await all.end(0);
    await all.resolved('other', 'drain');
  });
});

describe('evd: the close of an adapter, and its upcalls', () => {
  it('waits for upcalls that do not wait for it themselves', async () => {
    const all = new Upcalls(3);
    all.note('close', all.evd.end(new Set([all.upcall(0)])));
    assert.equal(all.evd.isFreed, true);
    await all.end(1);
    await all.resolved();
    await all.end(2);
    await all.resolved('close');
  });

  it('does not wait for those that join, each of them, later', async () => {
    const all = new Upcalls(3);
    all.note('close', all.evd.end(new Set()));
    all.evd.joinEnd(all.upcall(0));
    await all.end(1);
    await all.resolved();
    all.evd.joinEnd(all.upcall(2));
    await all.resolved('close');
    all.evd.joinEnd(all.upcall(2));
    await all.resolved('close');
  });

  it('keeps a caller from being waited for by others, as long as it lasts', async () => {
    const all = new Upcalls(3);
    const isCaller = new Set([all.upcall(0)]);
    all.note('b', all.upcall(1).teardown());
    all.note('close', all.evd.end(isCaller));
    all.note('c', all.upcall(2).free());
    await all.resolved('c');
    await all.end(2);
    await all.resolved('c');
    all.evd.joinEnd(all.upcall(1));
    await all.resolved('c', 'close');
    await all.end(0);
    await all.resolved('c', 'close', 'b');
  });

  it('excuses nothing but the close: one outside still waits for who has joined', async () => {
    const all = new Upcalls(1);
    all.note('outside', all.evd.modifyUpcall('TEARDOWN'));
    all.note('close', all.evd.end(new Set()));
    all.evd.joinEnd(all.upcall(0));
    await all.resolved('close');
    await all.end(0);
    await all.resolved('close', 'outside');
  });
});

describe('evd: an upcall deep in calls', () => {
  it('is known as the one that awaits its end, however short stack traces are', async () => {
    const { host, evd } = setUp();
    const { stackTraceLimit } = Error;
    const shown: number[] = [];
    const deep = (calls: number): Promise<void> =>
      calls === 0 ? evd.drainUpcalls() : deep(calls - 1);
    evd.modifyUpcall('ONE', async () => {
      await settle();
      for (const limit of [0, 10]) {
        Error.stackTraceLimit = limit;
        const ends = deep(50);
        shown.push(Error.stackTraceLimit);
        Error.stackTraceLimit = stackTraceLimit;
        await ends;
      }
    });
    evd.postSe(1);
    host.run();
    for (let i = 0; i < 5; i++) await settle();
    assert.deepEqual([shown, evd.query().upcallsInProgress], [[0, 10], 0]);
  });
});

describe('evd: when an upcall is over', () => {
  /** What a handler may return that is no promise. */
  const RETURNS: Readonly<Record<string, unknown>> = {
    nothing: undefined,
    null: null,
    'a number': 0,
    'a text': 'then',
    'an object': {},
    'an object with something else by the name of then': { then: 1 },
    'a function with a method then': Object.assign(() => undefined, { then: () => undefined }),
  };
  for (const [what, value] of Object.entries(RETURNS)) {
    it(`with its call, when the handler returns ${what}`, () => {
      const { host, evd } = setUp();
      let calls = 0;
      evd.modifyUpcall('ONE', () => {
        calls++;
        return value as undefined;
      });
      for (const payload of [1, 2]) evd.postSe(payload);
      host.run();
      assert.deepEqual([calls, evd.query().upcallsInProgress, host.async.length], [2, 0, 0]);
    });
  }

  type Settle = (value?: unknown) => void;
  const THENABLES: Readonly<
    Record<string, readonly [then: (ok: Settle, no: Settle) => void, reports: number]>
  > = {
    'fulfils twice': [(ok) => [ok(), ok()], 0],
    'fulfils, then rejects': [(ok, no) => [ok(), no(new Error('late'))], 0],
    'rejects, then fulfils': [(ok, no) => [no(new Error('first')), ok()], 1],
    'rejects twice': [(_, no) => [no(new Error('first')), no(new Error('late'))], 1],
    throws: [
      () => {
        throw new Error('no promise');
      },
      1,
    ],
    'fulfils, then throws': [
      (ok) => {
        ok();
        throw new Error('too late');
      },
      1,
    ],
  };
  for (const [name, [then, reports]] of Object.entries(THENABLES)) {
    it(`once, when the handler returns a thenable that ${name}`, async () => {
      const { host, evd } = setUp();
      const released: (() => void)[] = [];
      let calls = 0;
      const bad = { then } as unknown as PromiseLike<void>;
      const held = (): Promise<void> => new Promise((resolve) => released.push(resolve));
      evd.modifyUpcall('MANY', () => (calls++ === 1 ? bad : held()), { limit: 3 });
      for (const payload of [1, 2, 3]) evd.postSe(payload);
      host.run();
      await settle();
      assert.deepEqual([calls, evd.query().upcallsInProgress], [3, 2], 'the others go on');
      assert.equal(host.async.length, reports);
      for (const release of released) release();
      await settle();
      assert.equal(evd.query().upcallsInProgress, 0);
    });
  }

  it('its EVD goes on by itself when a thenable ends it, during the call or later', async () => {
    for (const isLater of [false, true]) {
      const { host, evd } = setUp();
      let calls = 0;
      const then = (ok: () => void): void => {
        if (isLater) queueMicrotask(ok);
        else ok();
      };
      evd.modifyUpcall('ONE', () => {
        calls++;
        return { then } as unknown as PromiseLike<void>;
      });
      for (const payload of [1, 2]) evd.postSe(payload);
      host.run();
      await settle();
      host.run();
      assert.equal(calls, 2);
    }
  });

  it('is not current outside its call, whether that returns or throws', () => {
    const { host, evd } = setUp();
    const during: unknown[] = [];
    let calls = 0;
    evd.modifyUpcall('ONE', (_, upcall) => {
      during.push(currentUpcall() === upcall);
      if (++calls === 1) throw new Error('it throws');
    });
    assert.equal(currentUpcall(), undefined);
    for (const payload of [1, 2]) {
      evd.postSe(payload);
      host.run();
      assert.equal(currentUpcall(), undefined);
    }
    assert.deepEqual(during, [true, true]);
    assert.deepEqual(drain(evd), []);
  });
});
