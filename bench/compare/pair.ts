/** The two processes of a transport. */
import { type ChildProcess, fork, spawnSync } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import type { Cell, Measurement, Transport } from './cells.js';
import type { Answer, Call, Count, Target } from './end.js';

const WORKER = fileURLToPath(new URL('worker.js', import.meta.url));
/** Longer than any cell may take beyond its own time. */
const PATIENCE_MS = 15_000;

/** Hosts of the sender and of the receiver. */
const HOSTS: Readonly<Record<Transport, readonly [number, number]>> = {
  softroce: [1, 2],
  dgram: [3, 4],
  tcp: [1, 2],
};

export class Pair {
  /**
   * @param network the first three numbers of the local addresses
   * @throws Error when an address or its UDP port cannot be had
   */
  static async open(transport: Transport, network: string): Promise<Pair> {
    const [left, right] = HOSTS[transport].map((host) => `${network}.${host}`) as [string, string];
    const ends = [
      new Peer(transport, left, right, 0),
      new Peer(transport, right, left, 1),
    ] as const;
    try {
      await Promise.all(ends.map((end) => end.answer()));
    } catch (error) {
      for (const end of ends) end.kill();
      throw error;
    }
    return new Pair(...ends);
  }

  private constructor(
    private readonly client: Peer,
    private readonly server: Peer,
  ) {}

  async measure(cell: Cell, seconds: number): Promise<Measurement> {
    const listening = await this.server.ask({ call: 'listen', cell });
    const target = listening.value as Target;
    const before = this.client.cpuSeconds + listening.cpuSeconds;
    const run = await this.client.ask({ call: 'run', cell, target, seconds });
    const ended = await this.server.ask({ call: 'stop' });
    const cpuSeconds = run.cpuSeconds + ended.cpuSeconds - before;
    await this.client.ask({ call: 'stop' });
    const count = run.value as Count;
    const bytes = count.messages * cell.bytes;
    if (count.p50 !== undefined) {
      return { value: count.p50, p99: count.p99 ?? 0, bytes, cpuSeconds };
    }
    const amount = cell.bytes < 4096 ? count.messages / 1e6 : bytes / 1e9;
    return { value: amount / count.seconds, bytes, cpuSeconds };
  }

  async close(): Promise<void> {
    await Promise.all([this.client.close(), this.server.close()]);
  }

  kill(): void {
    this.client.kill();
    this.server.kill();
  }
}

class Peer {
  /** As of the last answer. */
  cpuSeconds = 0;
  private readonly child: ChildProcess;
  private readonly where: string;

  constructor(transport: Transport, local: string, remote: string, core: number) {
    this.where = `${transport} on ${local}`;
    this.child = fork(WORKER, [transport, local, remote], { serialization: 'advanced' });
    pin(this.child, core);
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

/** A core for each side, where that can be had: two that spin must not share one. */
function pin(child: ChildProcess, core: number): void {
  if (availableParallelism() < 2 || child.pid === undefined) return;
  spawnSync('taskset', ['--all-tasks', '--cpu-list', '--pid', String(core), String(child.pid)]);
}
