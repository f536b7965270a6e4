/** The other end of the messages to a process of the benchmark of many endpoints. */
import { type ChildProcess, fork, spawnSync } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import type { Answer, Call } from './protocol.js';

const WORKER = fileURLToPath(new URL('worker.js', import.meta.url));
/** Longer than any step of 10,000 endpoints takes. */
const PATIENCE_MS = 60_000;

export class Peer {
  /** @throws Error when the address or its UDP port cannot be had */
  static async open(
    local: string,
    remote: string,
    most: number,
    role: 'active' | 'passive',
  ): Promise<Peer> {
    const peer = new Peer(local, [local, remote, String(most), role], role === 'active' ? 0 : 1);
    try {
      await peer.answer();
    } catch (error) {
      peer.kill();
      throw error;
    }
    return peer;
  }

  private readonly child: ChildProcess;

  private constructor(
    private readonly where: string,
    args: readonly string[],
    core: number,
  ) {
    const execArgv = ['--expose-gc'];
    this.child = fork(WORKER, args, { serialization: 'advanced', execArgv });
    pin(this.child, core);
  }

  ask(call: Call): Promise<Answer> {
    this.child.send(call);
    return this.answer();
  }

  private answer(): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const settle = (answer: Answer | undefined, why?: string): void => {
        clearTimeout(timer);
        this.child.off('message', onMessage).off('exit', onExit);
        if (answer) resolve(answer);
        else reject(new Error(`the process on ${this.where}: ${why}`));
      };
      const onMessage = (answer: Answer): void => {
        if (answer.error === undefined) settle(answer);
        else settle(undefined, answer.error);
      };
      const onExit = (): void => settle(undefined, 'has ended');
      const timer = setTimeout(() => settle(undefined, 'no answer in time'), PATIENCE_MS);
      this.child.on('message', onMessage).on('exit', onExit);
    });
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
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

/** A core for each side, where that can be had. */
function pin(child: ChildProcess, core: number): void {
  if (availableParallelism() < 2 || child.pid === undefined) return;
  spawnSync('taskset', ['--all-tasks', '--cpu-list', '--pid', String(core), String(child.pid)]);
}
