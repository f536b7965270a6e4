/** A sample as a process of its own, and the events by which a test follows it. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

export interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const SAMPLES = new URL('../../samples/', import.meta.url);

export class Program {
  /** Resolves when the process has ended and its output is complete. */
  readonly ended: Promise<Outcome>;
  readonly process: ChildProcess;
  private stdout = '';
  private stderr = '';
  private readonly readers = new Set<() => void>();

  /** @param sample `transfer` or `rping` */
  constructor(sample: string, ...args: readonly string[]) {
    const main = fileURLToPath(new URL(`${sample}/main.js`, SAMPLES));
    this.process = spawn(process.execPath, [main, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
    this.process.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.stdout += text;
      for (const look of this.readers) look();
    });
    this.process.stderr?.setEncoding('utf8').on('data', (text: string) => (this.stderr += text));
    this.ended = once(this.process, 'close').then(() => {
      for (const look of this.readers) look();
      return { code: this.process.exitCode, stdout: this.stdout, stderr: this.stderr };
    });
  }

  /** Resolves when this has been printed. @throws Error when the process ends without */
  async printed(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const match = pattern.exec(this.stdout);
      if (match) return match;
      if (this.process.exitCode !== null || this.process.signalCode !== null) {
        throw new Error(`ended without ${String(pattern)}: ${this.stdout}${this.stderr}`);
      }
      await new Promise<void>((resolve) => {
        const look = (): void => {
          this.readers.delete(look);
          resolve();
        };
        this.readers.add(look);
      });
    }
  }

  kill(signal: NodeJS.Signals): void {
    this.process.kill(signal);
  }
}

/** Runs a sample to its end. */
export function runSample(sample: string, ...args: readonly string[]): Promise<Outcome> {
  return new Program(sample, ...args).ended;
}

/** Milliseconds until a promise resolves, and what it resolves to. */
export async function timed<T>(work: Promise<T>): Promise<{ ms: number; value: T }> {
  const startedMs = performance.now();
  const value = await work;
  return { ms: performance.now() - startedMs, value };
}

/** What a user is promised on a machine that is not short of time. */
const SOON_MS = 5000;

/** Within that, and ten times what it takes this machine to start a sample just now. */
export async function assertSoon(ms: number): Promise<void> {
  if (ms < SOON_MS) return;
  const start = await timed(runSample('transfer', '--help'));
  const mostMs = SOON_MS + 10 * start.ms;
  assert.ok(ms < mostMs, `took ${ms.toFixed(0)} of ${mostMs.toFixed(0)} ms`);
}

/** Whether a process of this id exists. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
