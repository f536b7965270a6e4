/** A process of the benchmark as its parent sees it: calls and answers. */
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Answer, Call } from './end.js';
import { pin } from './pinned.js';

const WORKER = fileURLToPath(new URL('worker.js', import.meta.url));
/** Longer than any cell may take beyond its own time. */
const PATIENCE_MS = 30_000;

/** Where a process runs: a core of its own, or all of them; a network namespace, or this one. */
export interface Seat {
  readonly core?: number | undefined;
  readonly namespace?: string | undefined;
}

/** @typeParam C what it can be asked for */
export class WorkerProcess<C extends { readonly call: string } = Call> {
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
    private readonly seat: Seat,
    worker = WORKER,
  ) {
    this.where = `${kind} on ${local}`;
    const { core, namespace } = seat;
    // A stranger to the network namespace alone: all else of the machine is as it is for others.
    const inside = namespace !== undefined && {
      execPath: 'nsenter',
      execArgv: [`--net=/run/netns/${namespace}`, process.execPath],
    };
    this.child = fork(worker, [kind, local, remote], { serialization: 'advanced', ...inside });
    if (core !== undefined) pin(this.child.pid, core);
  }

  get core(): number {
    return this.seat.core ?? 0;
  }

  get pid(): number {
    return this.child.pid!;
  }

  /** On its own core, or on all. */
  place(isPinned: boolean): void {
    if (isPinned === this.isPinned) return;
    this.isPinned = isPinned;
    pin(this.child.pid, isPinned ? this.core : undefined);
  }

  /** @param patienceMs longer than it may take */
  ask(call: C, patienceMs = PATIENCE_MS): Promise<Answer> {
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
