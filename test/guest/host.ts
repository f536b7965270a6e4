import { spawn } from 'node:child_process';

import { type Machine, RunningCommand, type RunOptions, type RunResult } from './command.js';
import { slowdownVariable } from './machine-time.js';

/** The host's side of the lab: in the sandbox, every process is in the lab's namespace. */
export class Host implements Machine {
  readonly name = 'host';
  private readonly running = new Set<RunningCommand>();

  constructor(
    readonly ipv4: string,
    readonly ipv6: string,
  ) {}

  spawn(command: string, options: RunOptions = {}): RunningCommand {
    // Its own process group, so that a kill reaches what the shell has started.
    const child = spawn('/bin/sh', ['-c', command], {
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      cwd: options.cwd,
      env: { ...process.env, ...slowdownVariable(), ...options.env },
    });
    const running = new RunningCommand(`host: ${command}`, (signal) => {
      if (child.pid !== undefined) killGroup(child.pid, signal);
    });
    child.stdout.setEncoding('utf8').on('data', (text: string) => running.feed('stdout', text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => running.feed('stderr', text));
    child.on('error', (error) => {
      running.feed('stderr', error.message);
      running.ended(127, null);
    });
    child.on('close', (code, signal) => running.ended(code, signal));
    this.running.add(running);
    void running.exited.then(() => this.running.delete(running));
    return running;
  }

  /** Kills every command that has not ended. */
  killAll(): void {
    for (const command of this.running) command.kill('SIGKILL');
  }

  run(command: string, options: RunOptions = {}): Promise<RunResult> {
    return this.spawn(command, options).finish(options.timeoutMs);
  }
}

/** Signals a process group; one that is gone already is no error. */
function killGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
