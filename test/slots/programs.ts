/** Programs of a test that share an address (program.ts), and their end. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { patience } from '../support/patience.js';

const PROGRAM = join(import.meta.dirname, 'program.js');
const ANSWER_MS = 30_000;

const running = new Set<Program>();

export class Program {
  private readonly child: ChildProcess;
  private readonly lines: AsyncIterator<string>;

  /**
   * @param path default the program that echoes
   * @param environment besides that of this process
   */
  constructor(user?: number, path = PROGRAM, environment: Readonly<Record<string, string>> = {}) {
    const options = user === undefined ? {} : { uid: user, gid: user, cwd: '/' };
    this.child = spawn(process.execPath, [path], {
      stdio: ['pipe', 'pipe', process.env['DAPL_TEST_LOG'] ? 'inherit' : 'ignore'],
      env: { ...process.env, ...environment },
      ...options,
    });
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

  signal(name: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'): void {
    this.child.kill(name);
  }

  async kill(): Promise<void> {
    running.delete(this);
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const exit = once(this.child, 'exit');
    this.signal('SIGKILL');
    await exit;
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
