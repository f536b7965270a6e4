/** Both sides on this machine, each a process of its own with an address of its own on loopback. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { randomFillSync } from 'node:crypto';
import { access, mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const RECEIVER = '127.0.0.1';
const SENDER = '127.0.0.2';
const DEFAULT_BYTES = 256 * 2 ** 20;

export interface DemoOptions {
  /** The user's file; without one, 256 MiB of random bytes. */
  readonly path: string | undefined;
  /** Where the received file goes; a temporary directory that goes away if there is none. */
  readonly directory: string | undefined;
  readonly port: number;
  readonly signal: AbortSignal;
  readonly out: NodeJS.WriteStream;
}

/** @returns the exit code: that of the side that failed first, or 0 */
export async function demo(options: DemoOptions): Promise<number> {
  if (options.path !== undefined) await access(options.path);
  const scratch = await mkdtemp(join(tmpdir(), 'dapl-transfer-'));
  try {
    const path = options.path ?? (await makeFile(scratch, options.out));
    const directory = options.directory ?? join(scratch, 'received');
    return await runBoth(path, directory, options);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

async function makeFile(directory: string, out: NodeJS.WriteStream): Promise<string> {
  out.write('Making a file of 256 MiB of random bytes.\n');
  const path = join(directory, 'random-256MiB');
  const file = await open(path, 'w');
  const piece = new Uint8Array(2 ** 22);
  for (let at = 0; at < DEFAULT_BYTES; at += piece.length) {
    await file.write(randomFillSync(piece));
  }
  await file.close();
  return path;
}

async function runBoth(path: string, directory: string, options: DemoOptions): Promise<number> {
  const port = String(options.port);
  const children: ChildProcess[] = [];
  const forward = (): void => {
    for (const child of children) child.kill('SIGINT');
  };
  options.signal.addEventListener('abort', forward, { once: true });
  const start = (args: readonly string[]): ChildProcess => {
    const child = spawn(
      process.execPath,
      [fileURLToPath(new URL('main.js', import.meta.url)), ...args],
      {
        stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      },
    );
    children.push(child);
    return child;
  };
  const receiver = start(['receive', '--listen', RECEIVER, '--port', port, '--out', directory]);
  const receiverEnd = exitOf(receiver);
  const ready = once(receiver, 'message').then(() => undefined);
  const early = await Promise.race([receiverEnd, ready]);
  if (early !== undefined) return early;
  const sender = start(['send', path, '--from', SENDER, '--to', RECEIVER, '--port', port]);
  const senderEnd = exitOf(sender);
  const first = await Promise.race([receiverEnd, senderEnd]);
  if (first !== 0) {
    // The other side learns of it over the fabric; it must not outlive this command for long.
    setTimeout(forward, 3000).unref();
  }
  const codes = await Promise.all([receiverEnd, senderEnd]);
  return first !== 0 ? first : (codes.find((code) => code !== 0) ?? 0);
}

/** The exit code of a process; 1 if a signal ended it. */
async function exitOf(child: ChildProcess): Promise<number> {
  const [code] = (await once(child, 'exit')) as [number | null];
  return code ?? 1;
}
