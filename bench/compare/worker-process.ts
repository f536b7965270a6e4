/** A process of the benchmark as its parent sees it: calls and answers. */
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Answer, Call } from './end.js';
import { pin } from './pinned.js';

const WORKER = fileURLToPath(new URL('worker.js', import.meta.url));
/** Longer than any cell may take beyond its own time. */
const PATIENCE_MS = 30_000;

export class WorkerProcess {
  /** As of the last answer. */
  cpuSeconds = 0;
  private readonly child: ChildProcess;
  private readonly where: string;
  private isPinned = true;

  /**
   * @param kind that the worker knows
   * @param worker of another build, when two are compared
   */
  constructor(
    kind: string,
    local: string,
    remote: string,
    readonly core: number,
    worker = WORKER,
  ) {
    this.where = `${kind} on ${local}`;
    this.child = fork(worker, [kind, local, remote], { serialization: 'advanced' });
    pin(this.child.pid, core);
  }

  /** On its own core, or on all. */
  place(isPinned: boolean): void {
    if (isPinned === this.isPinned) return;
    this.isPinned = isPinned;
    pin(this.child.pid, isPinned ? this.core : undefined);
  }

  /** @param patienceMs longer than it may take */
  ask(call: Call, patienceMs = PATIENCE_MS): Promise<Answer> {
    this.child.send(call);
    return this.answer(patienceMs);
  }

  answer(patienceMs = PATIENCE_MS): Promise<Answer> {
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
      const timer = setTimeout(() => settle(undefined, 'no answer in time'), patienceMs);
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
