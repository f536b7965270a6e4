/** A process that has work for a whole core, beside a cell; ends with the benchmark. */
import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { pin } from './pinned.js';

/** Looks now and then whether its parent is still there: no message reaches one that is busy. */
const WORK = `
  const parent = process.ppid;
  while (process.ppid === parent) for (const end = Date.now() + 100; Date.now() < end; );
`;
/** Until it is at work. */
const START_MS = 200;

export class Neighbour {
  static async on(core: number): Promise<Neighbour> {
    const child = spawn(process.execPath, ['--eval', WORK], { stdio: 'ignore' });
    pin(child.pid, core);
    await sleep(START_MS);
    return new Neighbour(child);
  }

  private constructor(private readonly child: ChildProcess) {}

  leave(): void {
    this.child.kill('SIGKILL');
  }
}
