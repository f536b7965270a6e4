/** Runs both sides on this machine, each in its own process with its own loopback address. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomFillSync } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ProviderName } from '../command-options.js';
import { failureOf, TransferFailure } from './failure.js';
import { openFile } from './sender.js';
import type { SocketKind } from './session.js';
import type { Report } from './supervision.js';

/** One side of the transfer in a process of its own, as the parent sees it. */
const MAIN = fileURLToPath(new URL('main.js', import.meta.url));

class Side {
  /** The first failure of this side; known when `ended` resolves. */
  failure: TransferFailure | undefined;
  /** Resolves when the process has ended. */
  readonly ended: Promise<void>;
  /** Resolves when a receiver accepts connections. */
  readonly listening: Promise<void>;
  private readonly process: ChildProcess;
  /** True if this side was told to exit: its failure is then not the cause. */
  told = false;
  private text = '';

  /** @param holdsOutput true to keep the side's output until `printed` is read */
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

  /** Output of the side, if it was held back. */
  get printed(): string {
    return this.text;
  }

  interrupt(): void {
    if (!this.isRunning) return;
    this.told = true;
    this.process.kill('SIGINT');
  }

  /** Kills a side that does not exit when interrupted: its process may have been stopped. */
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

const DEFAULT_BYTES = 256 * 2 ** 20;
/** Default directory of the received file. */
const DEFAULT_DIRECTORY = 'received';
/**
 * Delays before a side is interrupted, then killed. It normally learns of a failure over the
 * fabric.
 */
const INTERRUPT_AFTER_MS = 500;
const KILL_AFTER_MS = 1000;

export interface DemoOptions {
  /** The user's file; without one, 256 MiB of random bytes. */
  readonly path: string | undefined;
  /** Directory of the received file. */
  readonly directory: string | undefined;
  /** True to replace a file of that name. */
  readonly force: boolean;
  /** Addresses of the sender and of the receiver. */
  readonly from: string;
  readonly to: string;
  readonly port: number;
  readonly socket: SocketKind;
  readonly provider: ProviderName;
  /** Aborted to interrupt. */
  readonly signal: AbortSignal;
  readonly out: NodeJS.WriteStream;
}

/** @throws TransferFailure of the side that failed first, or an error of the file system */
export async function demo(options: DemoOptions): Promise<void> {
  const { path, directory = DEFAULT_DIRECTORY } = options;
  options.signal.throwIfAborted();
  if (path !== undefined) {
    await (await openFile(path)).close();
    await runBoth(path, directory, options, 'the same command resumes it');
    return;
  }
  const scratch = await mkdtemp(join(tmpdir(), 'dapl-transfer-'));
  try {
    const made = await makeFile(scratch, options);
    await runBoth(made, options.directory ?? join(scratch, 'received'), options, '');
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

async function makeFile(directory: string, options: DemoOptions): Promise<string> {
  options.out.write('Making a file of 256 MiB of random bytes.\n');
  const path = join(directory, 'random-256MiB');
  const file = await open(path, 'w');
  try {
    const piece = new Uint8Array(2 ** 22);
    for (let at = 0; at < DEFAULT_BYTES; at += piece.length) {
      options.signal.throwIfAborted();
      await file.writeFile(randomFillSync(piece));
    }
  } finally {
    await file.close();
  }
  return path;
}

async function runBoth(
  path: string,
  directory: string,
  options: DemoOptions,
  hint: string,
): Promise<void> {
  const { from, to, signal, out } = options;
  const { port, socket, provider } = options;
  const network = ['--socket', socket, '--provider', provider];
  const common = ['--supervised', '--port', String(port), ...network];
  const sides: Side[] = [];
  const interrupt = (): void => endSoon(sides, 0);
  signal.addEventListener('abort', interrupt);
  try {
    signal.throwIfAborted();
    const receive = ['receive', '--listen', to, '--out', directory, ...common];
    if (options.force) receive.push('--force');
    const receiver = new Side('receiver', receive, true);
    sides.push(receiver);
    await Promise.race([receiver.listening, receiver.ended]);
    if (receiver.isRunning && !signal.aborted) {
      const send = ['send', '--from', from, '--to', to, ...common, '--', path];
      const sender = new Side('sender', send, false);
      sides.push(sender);
      out.write(`Process ${sender.pid} on ${from} sends to process ${receiver.pid} on ${to}.\n`);
    }
    await Promise.race(sides.map((side) => side.ended));
    endSoon(sides, INTERRUPT_AFTER_MS);
    await Promise.all(sides.map((side) => side.ended));
    out.write(receiver.printed);
  } finally {
    signal.removeEventListener('abort', interrupt);
  }
  const failure = signal.aborted ? failureOf(signal.reason) : firstCause(sides);
  if (failure) throw failure.after(figuresOf(sides), hint);
}

/** Interrupts sides that still run after a while, and kills them after another. */
function endSoon(sides: readonly Side[], afterMs: number): void {
  const kill = (): void => sides.filter((side) => side.isRunning).forEach((side) => side.kill());
  const interrupt = (): void => {
    sides.forEach((side) => side.interrupt());
    setTimeout(kill, KILL_AFTER_MS).unref();
  };
  if (afterMs === 0) interrupt();
  else setTimeout(interrupt, afterMs).unref();
}

/** The failure of the side that failed by itself, not because of the other side or of us. */
function firstCause(sides: readonly Side[]): TransferFailure | undefined {
  const failed = sides.filter((side) => side.failure !== undefined);
  const own = failed.filter((side) => !side.told);
  return (own.find((side) => !side.failure?.byPeer) ?? own[0] ?? failed[0])?.failure;
}

/** The sender's figures, or the receiver's if it sent none. */
function figuresOf(sides: readonly Side[]): string | undefined {
  return sides.map((side) => side.failure?.figures).findLast((figures) => figures !== undefined);
}
