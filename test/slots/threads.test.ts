/** Threads of one process, each with a slot of one address, and ended at any moment. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { type Listener, listen } from '../../core/flow/index.js';
import { type Ia, openIa } from '../../core/index.js';
import { softroce } from '../../providers/softroce/index.js';
import { pattern } from '../compliance/port/harness.js';
import { loopback } from '../support/loopback.js';
import { patience, paused } from '../support/patience.js';
import type { ThreadNews, ThreadPlan } from './thread.js';

const PROGRAM = join(import.meta.dirname, 'thread.js');
const PORT = 2000;
/** Each of them ends a thread somewhere between its start and its talk. */
const SEEDS = Number(process.env['DAPL_TEST_SEEDS'] ?? 10);
/** From the opening of a thread's device until it talks, on an idle machine, and some more. */
const LIFE_MS = 60;
let hosts = 1;

const newAddress = (): string => loopback(84, hosts++);

/**
 * Sockets and shared tables: Node.js itself loses files of programs that a thread was just reading,
 * and memory that peers can map stays until it is collected.
 */
function openDescriptors(): number {
  return readdirSync('/proc/self/fd').filter((each) => {
    try {
      return /^(socket:|\/memfd:dapl-shared)/.test(readlinkSync(`/proc/self/fd/${each}`));
    } catch {
      return false;
    }
  }).length;
}

class Step {
  taken: () => void = () => undefined;
  readonly done = new Promise<void>((resolve) => (this.taken = resolve));
}

class Thread {
  readonly worker: Worker;
  echoed = 0;
  private readonly steps = { loaded: new Step(), open: new Step() };
  private onNews = (): void => undefined;
  private error: Error | undefined;

  constructor(plan: ThreadPlan) {
    this.worker = new Worker(PROGRAM, { workerData: plan });
    this.worker.on('message', (news: ThreadNews) => {
      if ('is' in news) this.steps[news.is].taken();
      else this.echoed = news.echoed;
      this.onNews();
    });
    this.worker.on('error', (error: Error) => (this.error = error));
  }

  static async open(plan: ThreadPlan): Promise<Thread> {
    const thread = new Thread(plan);
    await thread.is('open');
    return thread;
  }

  async is(step: 'loaded' | 'open'): Promise<void> {
    await Promise.race([this.steps[step].done, once(this.worker, 'exit')]);
    assert.equal(this.error, undefined);
  }

  /** Until so many more of its messages have come back. */
  async talks(more = 40): Promise<void> {
    const until = this.echoed + more;
    const endMs = performance.now() + patience(30_000);
    while (this.echoed < until) {
      assert.equal(this.error, undefined);
      assert.ok(performance.now() < endMs, 'it has nothing to say any more');
      await new Promise<void>((resolve) => {
        this.onNews = resolve;
        setTimeout(resolve, 100);
      });
    }
  }

  async end(): Promise<void> {
    await this.worker.terminate();
  }
}

/** The main thread's part: echoes on PORT. */
async function openMain(address: string, shared: boolean, shm: boolean): Promise<Ia> {
  const ia = await openIa(softroce({ addresses: [address], shared, shm }));
  const listener: Listener = await listen(ia, { port: PORT, keepAliveMs: 0 });
  void (async (): Promise<void> => {
    for await (const connection of listener) {
      void (async (): Promise<void> => {
        for await (const message of connection) await connection.send(message.bytes);
      })().catch(() => undefined);
    }
  })().catch(() => undefined);
  return ia;
}

for (const shm of [false, true]) {
  const way = shm ? 'through shared memory' : 'over UDP';
  describe(`threads of one process with slots of one address, ${way}`, function () {
    this.timeout(120_000);

    it('talk with one another, and with a device elsewhere', async () => {
      const [address, elsewhere] = [newAddress(), newAddress()];
      const main = await openMain(address, true, shm);
      const outside = await openMain(elsewhere, false, shm);
      const peers = [
        { address, port: PORT },
        { address, port: PORT + 1 },
        { address: elsewhere, port: PORT },
      ];
      const listening = await Thread.open({ address, shm, port: PORT + 1 });
      const talking = await Promise.all(peers.map((peer) => Thread.open({ address, shm, peer })));
      await Promise.all(talking.map((thread) => thread.talks()));
      const strays = main.deviceCounters()['strays'] ?? 0;
      assert.ok(strays < 100, `${strays} packets came to the wrong thread`);
      await Promise.all([...talking, listening].map((thread) => thread.end()));
      await main.close();
      await outside.close();
    });

    it(`may be ended at any moment, ${SEEDS} times: the others talk on`, async () => {
      const address = newAddress();
      const dice = new Uint8Array(pattern(4 * SEEDS, shm ? 7 : 8).buffer);
      const before = openDescriptors();
      const main = await openMain(address, true, shm);
      const peer = { address, port: PORT };
      const steady = await Thread.open({ address, shm, port: PORT + 1, peer });
      await steady.talks();
      for (let seed = 0; seed < SEEDS; seed++) {
        const victim = new Thread({
          address,
          shm,
          port: PORT + 2 + seed,
          peer: { address, port: PORT + (dice[4 * seed]! % 2) },
        });
        await victim.is('loaded');
        await paused((LIFE_MS * dice[4 * seed + 1]!) / 256);
        await victim.end();
        await steady.talks();
      }
      const last = await Thread.open({ address, shm, port: PORT + 2, peer });
      await last.talks();
      await Promise.all([steady.end(), last.end()]);
      await main.close();
      await settled(() => openDescriptors() <= before, 'descriptors are closed');
    });

    it('go on when the one that was first is ended', async () => {
      const address = newAddress();
      const before = openDescriptors();
      const first = await Thread.open({ address, shm, port: PORT + 1 });
      const main = await openMain(address, true, shm);
      const peer = { address, port: PORT };
      const steady = await Thread.open({ address, shm, peer });
      await steady.talks();
      await first.end();
      await steady.talks();
      const next = await Thread.open({ address, shm, port: PORT + 1, peer });
      await next.talks();
      await steady.talks();
      await Promise.all([steady.end(), next.end()]);
      await main.close();
      await settled(() => openDescriptors() <= before, 'descriptors are closed');
    });
  });
}

async function settled(condition: () => boolean, what: string): Promise<void> {
  for (const endMs = performance.now() + patience(10_000); !condition(); await paused(5)) {
    assert.ok(performance.now() < endMs, what);
  }
}
