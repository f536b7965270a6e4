import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import Mocha from 'mocha';
import { knowSlowdown, MAX_SLOWDOWN, patience } from './patience.js';

interface Outcome {
  readonly error: Error | undefined;
  readonly tookMs: number;
}

/** Runs a test body as mocha does, with that bound. */
function run(boundMs: number, body: () => unknown): Promise<Outcome> {
  const test = new Mocha.Test('some test', body as Mocha.AsyncFunc);
  test.timeout(boundMs);
  const startMs = performance.now();
  return new Promise((resolve) => {
    (test as unknown as { run(done: (error?: Error) => void): void }).run((error) =>
      resolve({ error, tookMs: performance.now() - startMs }),
    );
  });
}

const hangs = (): Promise<void> => new Promise(() => undefined);

describe('bounds that only catch what hangs', () => {
  let times: number;
  let forget: () => void;
  beforeEach(() => {
    times = 1;
    forget = knowSlowdown(() => times);
  });
  afterEach(() => forget());

  it('are what they say on an idle machine, and end at last on any other', () => {
    const bounds = [0.1, 1, 1.5, 7, 1000, NaN].map((slowdown) => {
      times = slowdown;
      return patience(100);
    });
    assert.deepEqual(bounds, [100, 100, 150, 700, 100 * MAX_SLOWDOWN, 100]);
    assert.equal(patience(0), 0);
  });

  it('end a test that hangs', async () => {
    const { error, tookMs } = await run(5, hangs);
    assert.match(String(error), /Timeout of 5ms exceeded/);
    assert.ok(tookMs >= 4, `${tookMs} ms`);
  });

  it('end it later when others are busy, also when they have become so', async () => {
    const ending = run(10, hangs);
    times = 3;
    const { error, tookMs } = await ending;
    assert.match(String(error), /Timeout of 30ms exceeded/);
    assert.ok(tookMs >= 29, `${tookMs} ms`);
  });

  it('let a test pass that took longer for that', async () => {
    times = MAX_SLOWDOWN;
    assert.equal((await run(10, () => delay(20))).error, undefined);
    const busy = (): void => {
      for (const endMs = performance.now() + 20; performance.now() < endMs;);
    };
    assert.equal((await run(10, busy)).error, undefined);
    times = 1;
    assert.match(String((await run(10, busy)).error), /Timeout of 10ms exceeded/);
  });

  it('are none where a test has none', async () => {
    const test = new Mocha.Test('some test', hangs);
    test.timeout(0);
    let ended = false;
    (test as unknown as { run(done: () => void): void }).run(() => (ended = true));
    await delay(10);
    assert.equal(ended, false);
    test.clearTimeout();
  });
});
