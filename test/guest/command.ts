// One shape for "a command that runs somewhere", whether on the host (inside the lab's network
// namespace) or in a guest, so that a case can swap the two ends of a connection.
import { machineTime } from './machine-time.js';

export interface RunOptions {
  /**
   * Milliseconds of an idle machine (machine-time.ts) until the command is killed and the call
   * rejects. Default 30000.
   */
  readonly timeoutMs?: number;
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

export interface RunResult {
  /** Exit code; null if a signal ended the command. */
  readonly code: number | null;
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A place where commands run: the host side of the lab, or a guest. */
export interface Machine {
  readonly name: string;
  readonly ipv4: string;
  readonly ipv6: string;
  /** Starts `command` with /bin/sh; the caller kills it or waits for its end. */
  spawn(command: string, options?: RunOptions): RunningCommand;
  /** Runs `command` with /bin/sh to its end. Rejects on timeout only: read `code`. */
  run(command: string, options?: RunOptions): Promise<RunResult>;
}

const DEFAULT_TIMEOUT_MS = 30_000;

export class RunningCommand {
  readonly exited: Promise<RunResult>;
  private out = '';
  private err = '';
  private hasEnded = false;
  private resolve!: (result: RunResult) => void;
  private readonly watchers = new Set<() => void>();

  constructor(
    readonly label: string,
    private readonly sendSignal: (signal: NodeJS.Signals) => void,
  ) {
    this.exited = new Promise((resolve) => {
      this.resolve = resolve;
    });
  }

  get stdout(): string {
    return this.out;
  }

  get stderr(): string {
    return this.err;
  }

  /** Signals the command's whole process group; a command that has ended is left alone. */
  kill(signal: NodeJS.Signals = 'SIGKILL'): void {
    if (!this.hasEnded) this.sendSignal(signal);
  }

  /** Kills and waits for the end. */
  async stop(signal: NodeJS.Signals = 'SIGKILL'): Promise<RunResult> {
    this.kill(signal);
    return this.exited;
  }

  /** Resolves when stdout and stderr together match; rejects at the command's end or on timeout. */
  waitForOutput(pattern: RegExp, timeoutMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const finish = (error?: Error): void => {
        cancel();
        this.watchers.delete(check);
        if (error === undefined) resolve();
        else reject(error);
      };
      const check = (): void => {
        if (pattern.test(this.out) || pattern.test(this.err)) finish();
        else if (this.hasEnded) finish(new Error(`${this.label} ended: ${this.transcript()}`));
      };
      const cancel = machineTime.after(timeoutMs, () => {
        finish(
          new Error(
            `${this.label}: no ${String(pattern)} in ${timeoutMs} ms: ${this.transcript()}`,
          ),
        );
      });
      this.watchers.add(check);
      check();
    });
  }

  /** Resolves at the end; on timeout kills the command and rejects with what it had printed. */
  async finish(timeoutMs: number = DEFAULT_TIMEOUT_MS): Promise<RunResult> {
    let cancel = (): void => undefined;
    const late = new Promise<'late'>((resolve) => {
      cancel = machineTime.after(timeoutMs, () => resolve('late'));
    });
    const first = await Promise.race([this.exited, late]);
    cancel();
    if (first !== 'late') return first;
    this.kill('SIGKILL');
    throw new Error(`${this.label}: not done in ${timeoutMs} ms: ${this.transcript()}`);
  }

  /** For the machine that runs the command. */
  feed(stream: 'stdout' | 'stderr', text: string): void {
    if (stream === 'stdout') this.out += text;
    else this.err += text;
    this.notify();
  }

  /** For the machine that runs the command. */
  ended(code: number | null, signal: string | null): void {
    if (this.hasEnded) return;
    this.hasEnded = true;
    this.notify();
    this.resolve({ code, signal, stdout: this.out, stderr: this.err });
  }

  private notify(): void {
    for (const check of [...this.watchers]) check();
  }

  private transcript(): string {
    const tail = `${this.out}${this.err}`.trim().slice(-800);
    return tail === '' ? '(no output)' : tail;
  }
}
