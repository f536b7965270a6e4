import assert from 'node:assert/strict';
import { Evd, type Upcall } from '../../../core/evd/index.js';
import { FakeHost, settle } from './fake-host.js';
import { ALL, setUp } from './set-up.js';

type Call = (evd: Evd, upcall: Upcall) => Promise<void>;
/** Calls that wait for the upcalls in progress to end, without naming the one that awaits them. */
const UNNAMED: Readonly<Record<string, Call>> = {
  "modifyUpcall('TEARDOWN')": (evd) => evd.modifyUpcall('TEARDOWN'),
  'free()': (evd) => evd.free(),
  'drainUpcalls()': (evd) => evd.drainUpcalls(),
};
const NAMED: Readonly<Record<string, Call>> = {
  'upcall.teardown()': (_, upcall) => upcall.teardown(),
  'upcall.free()': (_, upcall) => upcall.free(),
  'modifyUpcall with the token': (evd, upcall) =>
    evd.modifyUpcall('TEARDOWN', undefined, { upcall }),
};

const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const after = async (call: () => Promise<void>): Promise<void> => {
  await tick();
  await call();
};

/** How the asynchronous part of a handler comes to await the call. */
const WAYS: Readonly<Record<string, (call: () => Promise<void>) => Promise<void>>> = {
  await: async (call) => {
    await tick();
    await call();
  },
  'in another function': async (call) => {
    await tick();
    await after(call);
  },
  then: (call) => tick().then(call),
  'then and finally': (call) =>
    tick()
      .then(() => undefined)
      .finally(call),
  'Promise.all': async (call) => {
    await Promise.all([tick(), tick().then(call)]);
  },
  'a promise that is made around it': async (call) => {
    await tick();
    await new Promise<void>((resolve, reject) => void call().then(resolve, reject));
  },
  'a loop': async (call) => {
    for (const step of [tick, call]) await step();
  },
};

/** Which upcall that is cannot be seen where the call is made. */
const byCallback = (call: () => Promise<void>): Promise<void> =>
  new Promise((resolve, reject) => {
    setImmediate(() => void call().then(resolve, reject));
  });

async function turns(host: FakeHost): Promise<void> {
  for (let turn = 0; turn < 10; turn++) {
    host.run();
    await tick();
  }
}

/** One event, one upcall; what its handler has come to. */
async function upcallThat(
  handler: (evd: Evd, upcall: Upcall) => Promise<void>,
): Promise<{ readonly evd: Evd; readonly end: string; readonly error: unknown; host: FakeHost }> {
  const { host, evd } = setUp();
  let end = 'hangs';
  let error: unknown;
  evd.modifyUpcall('MANY', (_, upcall) =>
    handler(evd, upcall).then(
      () => void (end = 'ended'),
      (cause: unknown) => {
        end = 'failed';
        error = cause;
      },
    ),
  );
  evd.postSe(1);
  await turns(host);
  return { evd, end, error, host };
}

describe('evd: an upcall that awaits its own end', () => {
  for (const [name, call] of Object.entries(UNNAMED)) {
    for (const [way, waits] of Object.entries(WAYS)) {
      it(`${name} by ${way}: is found, and does not wait for itself`, async () => {
        const run = upcallThat((evd, upcall) => waits(() => call(evd, upcall)));
        const { evd, end, error, host } = await run;
        assert.equal(end, 'ended', String(error));
        assert.deepEqual([evd.isFreed, host.async.length], [name === 'free()', 0]);
      });
    }
  }

  for (const [name, call] of Object.entries(UNNAMED)) {
    it(`${name} behind an await, not awaited: no error, and it resolves`, async () => {
      const unhandled: unknown[] = [];
      const note = (error: unknown): void => void unhandled.push(error);
      process.on('unhandledRejection', note);
      let isOver = false;
      const { end, error } = await upcallThat(async (evd, upcall) => {
        await tick();
        void call(evd, upcall).then(() => (isOver = true));
      });
      process.off('unhandledRejection', note);
      assert.deepEqual([end, error, isOver, unhandled], ['ended', undefined, true, []]);
    });

    for (const [way, waits] of Object.entries(WAYS)) {
      it(`${name} of each other, by ${way}: upcalls of three EVDs all end`, async () => {
        const host = new FakeHost();
        const evds = [1, 2, 3].map((id) => new Evd(host, { id, qlen: 8, streams: ALL }));
        const over: number[] = [];
        for (const [i, evd] of evds.entries()) {
          evd.modifyUpcall('ONE', async (_, upcall) => {
            await waits(() => call(evds[(i + 1) % evds.length]!, upcall));
            over.push(i);
          });
          evd.postSe(i);
        }
        await turns(host);
        assert.deepEqual([over.sort(), host.async], [[0, 1, 2], []]);
      });
    }
  }

  for (const [name, call] of Object.entries(NAMED)) {
    for (const [way, waits] of Object.entries({ ...WAYS, 'a callback': byCallback })) {
      it(`${name} by ${way}: does not wait for itself`, async () => {
        const { end, error } = await upcallThat((evd, upcall) => waits(() => call(evd, upcall)));
        assert.equal(end, 'ended', String(error));
      });
    }
  }

  it('finds the one of several, again and again', async () => {
    const { host, evd } = setUp();
    let calls = 0;
    let drained = 0;
    evd.modifyUpcall('MANY', async () => {
      const own = ++calls % 4;
      await tick();
      if (own !== 3) return tick();
      await evd.drainUpcalls();
      drained++;
    });
    for (let round = 0; round < 3; round++) {
      for (let i = 0; i < 4; i++) evd.postSe(i);
      await turns(host);
    }
    assert.equal(drained, 3);
    assert.equal(evd.query().upcallsInProgress, 0);
  });

  it('what does not wait for itself resolves when the upcalls have ended', async () => {
    const { host, evd } = setUp();
    const other = setUp().evd;
    const log: string[] = [];
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    evd.modifyUpcall('ONE', async () => {
      await tick();
      // Of another EVD; and not awaited by this handler, which goes on without it.
      await other.modifyUpcall('TEARDOWN').then(() => log.push('other'));
      void after(() => evd.drainUpcalls()).then(() => log.push('drained'));
      await held;
      log.push('handler');
    });
    evd.postSe(1);
    await turns(host);
    const outside = evd.modifyUpcall('TEARDOWN').then(() => void log.push('outside'));
    await turns(host);
    assert.deepEqual(log, ['other']);
    release();
    await outside;
    await settle();
    assert.deepEqual([...log].sort(), ['drained', 'handler', 'other', 'outside']);
    assert.equal(log[1], 'handler');
  });

  it('leaves the stack traces of the program as they were', async () => {
    const settings = (): unknown[] => {
      const v8: { prepareStackTrace?: unknown; stackTraceLimit: number } = Error;
      return [v8.prepareStackTrace, v8.stackTraceLimit];
    };
    const before = settings();
    await upcallThat((evd) => after(() => evd.drainUpcalls()));
    assert.deepEqual(settings(), before);
  });
});
