// No leftovers, by construction: everything that a run starts or makes lives in network, process
// and mount namespaces of its own. They have no names (two runs cannot collide) and the kernel ends
// them with their first process, however that process ends.
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

import { cacheDir } from './paths.js';

const MARK = 'DAPL_GUEST_SANDBOX';
const STOP = 'stop';
const FORCE_AFTER_MS = 3000;

/** A tmpfs of the sandbox: sockets, shares, captures and consoles of this run. */
export const runDir: string = join(cacheDir, 'run');

export function inSandbox(): boolean {
  return process.env[MARK] !== undefined;
}

/** Runs this program again, as the first process of fresh namespaces. Resolves to its exit code. */
export function runInSandbox(): Promise<number> {
  mkdirSync(runDir, { recursive: true });
  const namespaces = ['--net', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc'];
  const child = spawn('unshare', [...namespaces, process.execPath, ...process.argv.slice(1)], {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, [MARK]: '1' },
  });
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  const stop = (): void => {
    if (child.connected) child.send(STOP);
    setTimeout(() => child.kill('SIGKILL'), FORCE_AFTER_MS).unref();
  };
  for (const signal of signals) process.on(signal, stop);
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('exit', (code) => {
      for (const signal of signals) process.off(signal, stop);
      resolve(code ?? 1);
    });
  });
}

/** First thing inside: the private tmpfs, and an end when the outer process asks or is gone. */
export function enterSandbox(onStop: () => void): void {
  execFileSync('mount', ['-t', 'tmpfs', 'dapl-guest', runDir]);
  process.on('message', (message) => {
    if (message === STOP) onStop();
  });
  process.on('disconnect', onStop);
  process.channel?.unref();
}
