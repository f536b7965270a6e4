/** Threads of a test, each with a slot of one address (thread.ts), and the main thread's part. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { type Listener, listen } from '../../core/flow/index.js';
import { type Ia, openIa } from '../../core/index.js';
import { softroce } from '../../providers/softroce/index.js';
import { patience, paused } from '../support/patience.js';
import type { ThreadNews, ThreadPlan } from './thread.js';

const PROGRAM = join(import.meta.dirname, 'thread.js');
export const PORT = 2000;

/**
 * Sockets and shared tables: Node.js itself loses files of programs that a thread was just reading,
 * and memory that peers can map stays until it is collected.
 */
export function openDescriptors(): number {
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

export class Thread {
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
export async function openMain(address: string, shared: boolean, shm: boolean): Promise<Ia> {
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

export async function settled(condition: () => boolean, what: string): Promise<void> {
  for (const endMs = performance.now() + patience(10_000); !condition(); await paused(5)) {
    assert.ok(performance.now() < endMs, what);
  }
}
