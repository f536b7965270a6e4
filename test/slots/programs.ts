/** Programs of a test that share an address (program.ts), and their end. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { patience } from '../support/patience.js';

const COMMAND = [process.execPath, join(import.meta.dirname, 'program.js')];
const ANSWER_MS = 30_000;

const running = new Set<Program>();

export interface ProgramOptions {
  readonly user?: number;
  /** Another one that answers each line with a line. */
  readonly command?: readonly string[];
  /** A command that runs the rest of its line. */
  readonly within?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
}

export class Program {
  private readonly child: ChildProcess;
  private readonly lines: AsyncIterator<string>;
  /** Its process is gone. */
  readonly gone: Promise<unknown>;

  constructor({ user, command = COMMAND, within = [], env = process.env }: ProgramOptions = {}) {
    const options = user === undefined ? {} : { uid: user, gid: user, cwd: '/' };
    const [file = '', ...words] = [...within, ...command];
    this.child = spawn(file, words, {
      env,
      stdio: ['pipe', 'pipe', process.env['DAPL_TEST_LOG'] ? 'inherit' : 'ignore'],
      ...options,
    });
    this.gone = once(this.child, 'exit');
    // Of one that is killed, the next question says so.
    this.child.stdin!.on('error', () => undefined);
    this.lines = createInterface(this.child.stdout!)[Symbol.asyncIterator]();
    running.add(this);
  }

  get pid(): number {
    return this.child.pid ?? -1;
  }

  /** One at a time. */
  async ask(command: string, answerMs = ANSWER_MS): Promise<string> {
    this.child.stdin!.write(`${command}\n`);
    let timer: NodeJS.Timeout | undefined;
    const tooLate = new Promise<never>((_, reject) => {
      const late = (): void => reject(new Error(`no answer to '${command}' within ${answerMs} ms`));
      timer = setTimeout(late, patience(answerMs));
    });
    try {
      const next = await Promise.race([this.lines.next(), tooLate]);
      assert.ok(next.done !== true, `the program has ended instead of '${command}'`);
      return next.value;
    } finally {
      clearTimeout(timer);
    }
  }

  /** What it says without being asked, until its end. */
  async lastWords(): Promise<string> {
    let said = '';
    for (let next = await this.lines.next(); next.done !== true; next = await this.lines.next()) {
      said = next.value;
    }
    return said;
  }

  signal(name: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'): void {
    this.child.kill(name);
  }

  async kill(): Promise<void> {
    running.delete(this);
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    this.signal('SIGKILL');
    await this.gone;
  }
}

export async function opened(address: string, udpPort: number, options = ''): Promise<Program> {
  const program = new Program();
  assert.equal(await program.ask(`open ${address} ${udpPort} ${options}`), 'open');
  return program;
}

export async function killAll(): Promise<void> {
  await Promise.all([...running].map((each) => each.kill()));
}
