/** The pump of an EVD: how much it hands over in a turn, what it says, and that it wakes again. */
import assert from 'node:assert/strict';
import {
  type AsyncErrorEvent,
  DatEventNumber,
  Evd,
  UPCALL_SAME,
  type Upcall,
} from '../../../core/evd/index.js';
import { type FakeHost, label, settle } from './fake-host.js';
import { ALL, dat, drain, setUp } from './set-up.js';

/** Packets are served between turns: a busy EVD must not keep them waiting for longer. */
const MOST_A_TURN = 256;
const EVENTS = 600;

/** What takes events, and gives each to `take`. */
const TAKERS: Readonly<Record<string, (evd: Evd, take: (event: unknown) => void) => void>> = {
  'upcalls, ONE': (evd, take) => evd.modifyUpcall('ONE', (event) => take(label(event))),
  'upcalls, MANY': (evd, take) => evd.modifyUpcall('MANY', (event) => take(label(event))),
  'a subscriber': (evd, take) => void evd.events$.subscribe((event) => take(label(event))),
};

/** Turns of the driver, at most: what each took. */
function turns(host: FakeHost, most: number, took: () => number): number[] {
  const turns: number[] = [];
  for (let i = 0; i < most && (host.tasks.length > 0 || host.cq.notification); i++) {
    const before = took();
    if (!host.cq.deliver()) host.tasks.shift()?.();
    turns.push(took() - before);
  }
  return turns;
}

describe('evd: fairness of the pump', () => {
  for (const [who, begin] of Object.entries(TAKERS)) {
    for (const what of ['software events', 'completions'] as const) {
      it(`hands ${what} to ${who} in turns of a bounded length, all of them`, () => {
        const { host, evd } = setUp({ qlen: 1024 });
        const { context } = host.endpoint();
        const got: unknown[] = [];
        begin(evd, (event) => got.push(event));
        for (let i = 0; i < EVENTS; i++) {
          if (what === 'completions') host.cq.add({ context, cookie: i });
          else evd.postSe(i);
        }
        const lengths = turns(host, 100, () => got.length);
        assert.ok(Math.max(...lengths) <= MOST_A_TURN, lengths.join());
        assert.deepEqual(
          got,
          Array.from({ length: EVENTS }, (_, i) => i),
        );
      });
    }

    it(`returns from ${who} although each event is answered by another one`, () => {
      const { host, evd } = setUp();
      let count = 0;
      begin(evd, () => {
        if (++count < 100 * MOST_A_TURN) evd.postSe(count);
      });
      evd.postSe(0);
      const lengths = turns(host, 10, () => count);
      assert.equal(lengths.length, 10);
      assert.ok(Math.max(...lengths) <= MOST_A_TURN, lengths.join());
    });
  }
});

describe('evd: a turn is bounded by time', () => {
  /** Handlers that may start in a turn of 4 ms, where each takes one. */
  const MOST_OF_A_MS = 4;

  /** A host whose handlers take a millisecond each; each task is a turn. */
  function slow(options = {}): { host: FakeHost; evd: Evd; work: () => void } {
    const { host, evd } = setUp(options);
    let since = 0;
    host.late = () => host.nowUs - since >= 4000;
    const shift = host.tasks.shift.bind(host.tasks);
    host.tasks.shift = () => {
      since = host.nowUs;
      return shift();
    };
    return { host, evd, work: () => void (host.nowUs += 1000) };
  }

  for (const [who, begin] of Object.entries(TAKERS)) {
    it(`for ${who}: all events come, few in each`, () => {
      const { host, evd, work } = slow({ qlen: 1024 });
      const got: unknown[] = [];
      begin(evd, (event) => {
        got.push(event);
        work();
      });
      for (let i = 0; i < 50; i++) evd.postSe(i);
      const lengths = turns(host, 100, () => got.length);
      assert.ok(Math.max(...lengths) <= MOST_OF_A_MS, lengths.join());
      assert.deepEqual(
        got,
        Array.from({ length: 50 }, (_, i) => i),
      );
    });

    it(`for ${who}, each of whose events is answered by another one`, () => {
      const { host, evd, work } = slow();
      let count = 0;
      begin(evd, () => {
        work();
        evd.postSe(++count);
      });
      evd.postSe(0);
      const lengths = turns(host, 10, () => count);
      assert.equal(lengths.length, 10);
      assert.ok(Math.max(...lengths) <= MOST_OF_A_MS, lengths.join());
      assert.ok(Math.min(...lengths) > 0, lengths.join());
    });
  }

  it('for upcalls under NOTIFY', () => {
    const { host, evd, work } = slow();
    let count = 0;
    evd.modifyUpcall('NOTIFY', () => {
      drain(evd);
      work();
      evd.postSe(++count);
    });
    evd.postSe(0);
    const lengths = turns(host, 10, () => count);
    assert.ok(Math.max(...lengths) <= MOST_OF_A_MS && count > 10, lengths.join());
  });

  it('for three dispatchers, which take turns', () => {
    const { host, work } = slow();
    const counts = [0, 0, 0];
    for (const id of counts.keys()) {
      const evd = new Evd(host, { id, qlen: 8, streams: ALL });
      evd.modifyUpcall('ONE', () => {
        counts[id]! += 1;
        work();
        evd.postSe(0);
      });
      evd.postSe(0);
    }
    turns(host, 12, () => 0);
    assert.ok(Math.min(...counts) >= 3 * MOST_OF_A_MS, counts.join());
  });
});

describe('evd: what an upcall is told', () => {
  it('counts what has come since the completion queue was looked at', () => {
    const { host, evd } = setUp();
    const { context } = host.endpoint();
    const got: [unknown, boolean][] = [];
    evd.modifyUpcall('ONE', (event, upcall) => {
      got.push([label(event), upcall.moreEvents]);
      if (got.length === 1) host.cq.add({ context, cookie: 3 });
    });
    for (const payload of [1, 2]) evd.postSe(payload);
    host.run();
    assert.deepEqual(got, [
      [1, true],
      [2, true],
      [3, false],
    ]);
  });
});

describe('evd: a call of modifyUpcall that is refused', () => {
  const old = (log: unknown[]) => (event: unknown) => void log.push(['old', event]);
  const calls: Readonly<Record<string, (evd: Evd, other: () => void) => void>> = {
    'events wait': (evd, other) => evd.modifyUpcall('ONE', other, { pending: 'refuse' }),
    'a limit out of range': (evd, other) => evd.modifyUpcall('MANY', other, { limit: 0 }),
    'an unknown choice': (evd, other) => evd.modifyUpcall('ONE', other, { pending: 'x' as 'keep' }),
    'an unknown policy': (evd, other) => evd.modifyUpcall('X' as 'ONE', other),
    'no handler': (evd) => evd.modifyUpcall('ONE', null as never),
    'a caller that is none': (evd, other) =>
      evd.modifyUpcall('ONE', other, { upcall: {} as Upcall }),
  };
  for (const [why, call] of Object.entries(calls)) {
    it(`changes neither policy nor handler nor limit: ${why}`, () => {
      const log: unknown[] = [];
      const { host, evd } = setUp();
      evd.modifyUpcall('MANY', (event) => old(log)(label(event)), { limit: 3 });
      evd.disable();
      evd.postSe(1);
      assert.throws(() => call(evd, () => void log.push('new')));
      assert.deepEqual([evd.query().policy, evd.query().upcallLimit], ['MANY', 3]);
      evd.enable();
      host.run();
      evd.modifyUpcall('ONE', UPCALL_SAME);
      evd.postSe(2);
      host.run();
      assert.deepEqual(log, [
        ['old', 1],
        ['old', 2],
      ]);
    });
  }

  it('changes nothing while something else takes the events', () => {
    const log: unknown[] = [];
    const { host, evd } = setUp();
    evd.modifyUpcall('DISABLE', (event) => old(log)(label(event)));
    const subscription = evd.events$.subscribe();
    assert.throws(
      () => evd.modifyUpcall('ONE', () => void log.push('new')),
      dat('DAT_INVALID_STATE'),
    );
    subscription.unsubscribe();
    evd.modifyUpcall('ONE', UPCALL_SAME);
    evd.postSe(1);
    host.run();
    assert.deepEqual(log, [['old', 1]]);
  });
});

describe('evd: arming', () => {
  const isOfArming = ({ number, message }: AsyncErrorEvent): boolean =>
    number === DatEventNumber.ASYNC_PROVIDER_INTERNAL_ERROR && /cannot be armed/.test(message);

  it('that fails is reported once, until it succeeds; then the next failure is news', () => {
    const { host, evd } = setUp();
    host.cq.failArms = 3;
    const reports = (): number => host.async.filter(isOfArming).length;
    evd.modifyUpcall('ONE', () => undefined);
    for (let i = 0; i < 2; i++) {
      evd.postSe(i);
      host.run();
    }
    assert.equal(host.cq.failArms, 0);
    assert.equal(reports(), 1);
    evd.postSe('armed by now');
    host.run();
    assert.equal(host.cq.armed, 'next');
    host.cq.failArms = 1;
    host.cq.add({ context: host.endpoint().context, cookie: 1 });
    host.run();
    assert.equal(reports(), 2);
  });

  for (const how of ['throws', 'rejects'] as const) {
    for (const policy of ['ONE', 'MANY', 'NOTIFY'] as const) {
      it(`goes on under ${policy} when the handler ${how}: completions are told of`, async () => {
        const { host, evd } = setUp();
        const { context } = host.endpoint();
        const got: unknown[] = [];
        const fail = (event: unknown): void | Promise<void> => {
          got.push(event ?? drain(evd)[0]);
          if (how === 'rejects') return Promise.reject(new Error('it rejects'));
          throw new Error('it throws');
        };
        if (policy === 'NOTIFY') evd.modifyUpcall(policy, () => fail(undefined));
        else evd.modifyUpcall(policy, (event) => fail(label(event)));
        for (const cookie of [1, 2, 3]) {
          host.cq.add({ context, cookie });
          host.run();
          await settle();
          host.run();
          assert.equal(host.cq.armed, 'next', `after completion ${cookie}`);
        }
        assert.deepEqual(got, [1, 2, 3]);
        assert.equal(host.async.length, 3);
      });
    }
  }
});

describe('evd: another limit while upcalls are in progress', () => {
  /** Every order in which three upcalls can end. */
  const ORDERS = [
    [0, 1, 2],
    [0, 2, 1],
    [1, 0, 2],
    [1, 2, 0],
    [2, 0, 1],
    [2, 1, 0],
  ];

  for (const what of ['software events', 'completions'] as const) {
    for (const order of ORDERS) {
      it(`MANY to ONE wakes for ${what} when upcalls end as ${order.join()}`, async () => {
        const { host, evd } = setUp();
        const { context } = host.endpoint();
        const ends: (() => void)[] = [];
        const got: unknown[] = [];
        const goOn = (event: unknown): Promise<void> => {
          got.push(event);
          return new Promise((resolve) => ends.push(resolve));
        };
        evd.modifyUpcall('MANY', (event) => goOn(label(event)), { limit: 3 });
        for (const payload of [1, 2, 3]) evd.postSe(payload);
        host.run();
        evd.modifyUpcall('ONE', UPCALL_SAME);
        for (const cookie of [4, 5]) {
          if (what === 'completions') host.cq.add({ context, cookie });
          else evd.postSe(cookie);
        }
        for (const which of order) {
          host.run();
          assert.deepEqual(got, [1, 2, 3], 'three are still in progress, or two, or one');
          ends[which]?.();
          await settle();
        }
        host.run();
        assert.deepEqual(got, [1, 2, 3, 4]);
        ends[3]?.();
        await settle();
        host.run();
        assert.deepEqual(got, [1, 2, 3, 4, 5]);
      });
    }
  }

  it('ONE to MANY starts what waits at once', () => {
    const { host, evd } = setUp();
    const got: unknown[] = [];
    evd.modifyUpcall('ONE', (event) => {
      got.push(label(event));
      return new Promise(() => undefined);
    });
    for (const payload of [1, 2, 3]) evd.postSe(payload);
    host.run();
    assert.deepEqual(got, [1]);
    evd.modifyUpcall('MANY', UPCALL_SAME, { limit: 3 });
    host.run();
    assert.deepEqual(got, [1, 2, 3]);
  });
});
