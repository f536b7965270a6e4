/** One side of the transfer as a process of its own, seen from the command that runs both. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { TransferFailure } from './failure.js';
import type { Report } from './supervision.js';

const MAIN = fileURLToPath(new URL('main.js', import.meta.url));

export class Side {
  /** The first failure of this side; known when `ended` resolves. */
  failure: TransferFailure | undefined;
  /** Resolves when the process has ended. */
  readonly ended: Promise<void>;
  /** Resolves when a receiver takes connections. */
  readonly listening: Promise<void>;
  private readonly process: ChildProcess;
  /** Whether it was told to end, so that its failure is none of its own. */
  told = false;
  private text = '';

  /** @param holdsOutput what the side prints is kept until `printed` is asked for */
  constructor(
    private readonly name: 'receiver' | 'sender',
    options: readonly string[],
    holdsOutput: boolean,
  ) {
    const stdout = holdsOutput ? 'pipe' : 'inherit';
    this.process = spawn(process.execPath, [MAIN, ...options], {
      stdio: ['ignore', stdout, 'inherit', 'ipc'],
    });
    this.process.stdout?.setEncoding('utf8').on('data', (text: string) => (this.text += text));
    this.listening = new Promise((resolve) => {
      this.process.on('message', (message: Report) => {
        if (message.type === 'listening') resolve();
        else this.failure ??= new TransferFailure(message.what, message);
      });
    });
    this.ended = once(this.process, 'close').then(() => this.onEnd());
  }

  get pid(): number {
    return this.process.pid ?? 0;
  }

  get isRunning(): boolean {
    return this.process.exitCode === null && this.process.signalCode === null;
  }

  /** What the side has printed, if it was held. */
  get printed(): string {
    return this.text;
  }

  interrupt(): void {
    if (!this.isRunning) return;
    this.told = true;
    this.process.kill('SIGINT');
  }

  /** For a side that does not end when it is interrupted: it may have been stopped. */
  kill(): void {
    this.process.kill('SIGKILL');
  }

  private onEnd(): void {
    const { exitCode, signalCode } = this.process;
    if (exitCode === 0) return;
    const how = signalCode === null ? `ended with exit code ${exitCode}` : `died of ${signalCode}`;
    this.failure ??= new TransferFailure(`The ${this.name} ${how}`);
  }
}
