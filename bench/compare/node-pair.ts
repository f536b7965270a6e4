/** The two Node processes of a contender, which stay for all its cells. */
import { type ChildProcess, fork } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Cell, Measurement } from './cells.js';
import type { Answer, Call, Count, Target } from './end.js';
import { measurementOf } from './measurement.js';
import { pin } from './pinned.js';

const WORKER = fileURLToPath(new URL('worker.js', import.meta.url));
/** Longer than any cell may take beyond its own time. */
const PATIENCE_MS = 30_000;
/** Idle processes are watched for so long at least. */
const IDLE_SECONDS = 1;

export class NodePair {
  /**
   * @param kind that the worker knows
   * @param worker of another build, when two are compared
   * @throws Error when an address or its UDP port cannot be had
   */
  static async open(
    kind: string,
    local: string,
    remote: string,
    worker = WORKER,
  ): Promise<NodePair> {
    const ends = [
      new Side(worker, kind, local, remote, 0),
      new Side(worker, kind, remote, local, 1),
    ] as const;
    try {
      await Promise.all(ends.map((end) => end.answer()));
    } catch (error) {
      for (const end of ends) end.kill();
      throw error;
    }
    return new NodePair(...ends);
  }

  private constructor(
    private readonly client: Side,
    private readonly server: Side,
  ) {}

  async measure(cell: Cell, seconds: number): Promise<Measurement> {
    const listening = await this.server.ask({ call: 'listen', cell });
    const target = listening.value as Target;
    const before = this.client.cpuSeconds + listening.cpuSeconds;
    const run = await this.client.ask({ call: 'run', cell, target, seconds });
    if (cell.workload === 'idle') return this.idle(Math.max(seconds, IDLE_SECONDS));
    const ended = await this.server.ask({ call: 'stop' });
    const cpuSeconds = run.cpuSeconds + ended.cpuSeconds - before;
    await this.client.ask({ call: 'stop' });
    return measurementOf(cell, run.value as Count, cpuSeconds);
  }

  async close(): Promise<void> {
    await Promise.all([this.client.close(), this.server.close()]);
  }

  kill(): void {
    this.client.kill();
    this.server.kill();
  }

  /** What both use while nothing happens, in percent of a core. */
  private async idle(seconds: number): Promise<Measurement> {
    const ends = [this.client, this.server];
    await Promise.all(ends.map((end) => end.ask({ call: 'look' })));
    const before = this.client.cpuSeconds + this.server.cpuSeconds;
    await sleep(seconds * 1000);
    await Promise.all(ends.map((end) => end.ask({ call: 'look' })));
    const cpuSeconds = this.client.cpuSeconds + this.server.cpuSeconds - before;
    await this.server.ask({ call: 'stop' });
    await this.client.ask({ call: 'stop' });
    return { value: (100 * cpuSeconds) / seconds, bytes: 0, cpuSeconds };
  }
}

class Side {
  /** As of the last answer. */
  cpuSeconds = 0;
  private readonly child: ChildProcess;
  private readonly where: string;

  constructor(worker: string, kind: string, local: string, remote: string, core: number) {
    this.where = `${kind} on ${local}`;
    this.child = fork(worker, [kind, local, remote], { serialization: 'advanced' });
    pin(this.child.pid, core);
  }

  ask(call: Call): Promise<Answer> {
    this.child.send(call);
    return this.answer();
  }

  answer(): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const settle = (answer: Answer | undefined, why?: string): void => {
        clearTimeout(timer);
        this.child.off('message', onMessage).off('exit', onExit);
        if (answer) resolve(answer);
        else reject(new Error(`${this.where}: ${why}`));
      };
      const onMessage = (answer: Answer): void => {
        this.cpuSeconds = answer.cpuSeconds;
        if (answer.error === undefined) settle(answer);
        else settle(undefined, answer.error);
      };
      const onExit = (): void => settle(undefined, 'the process has ended');
      const timer = setTimeout(() => settle(undefined, 'no answer in time'), PATIENCE_MS);
      this.child.on('message', onMessage).on('exit', onExit);
    });
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      if (this.child.exitCode !== null || !this.child.connected) {
        resolve();
        return;
      }
      const timer = setTimeout(() => this.kill(), PATIENCE_MS);
      this.child.once('exit', () => {
        clearTimeout(timer);
        resolve();
      });
      this.child.send({ call: 'close' } satisfies Call);
    });
  }

  kill(): void {
    this.child.kill('SIGKILL');
  }
}
