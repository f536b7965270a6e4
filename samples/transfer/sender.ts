/** The sending side: connects, agrees where to start, and writes the file into the peer's slots. */
import type { Hash } from 'node:crypto';
import { type FileHandle, open, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { type Ia, type LmrSegment, RemoteSegment } from 'dapl';
import { connect, type Connection } from 'dapl/flow';
import { CONNECTION, type Control, expect, failureAt, leave, say } from './control.js';
import { failureOf, TransferFailure } from './failure.js';
import type { Message } from './messages.js';
import { hashOfPrefix } from './partial-file.js';
import { type SocketKind, withIa } from './session.js';
import type { ProviderName } from '../command-options.js';
import { partText, rateText, sizeText } from './units.js';
import { Presets, SingleBar } from 'cli-progress';

const CONNECT_TIMEOUT_MS = 2000;
/** Memory limit for the window that a receiver grants. */
const MAX_WINDOW_BYTES = 2 ** 28;

export interface SendOptions {
  readonly path: string;
  /** Local address to send from. */
  readonly from: string;
  /** Address and port of the receiver. */
  readonly to: string;
  readonly port: number;
  readonly socket: SocketKind;
  readonly provider: ProviderName;
  /** Aborted to interrupt, with a TransferFailure as its reason. */
  readonly signal: AbortSignal;
  readonly out: NodeJS.WriteStream;
}

/** @throws TransferFailure, or an error of the file system */
export async function sendFile(options: SendOptions): Promise<void> {
  const file = await openFile(options.path);
  try {
    const { size } = await file.stat();
    await withIa(options.from, options, (ia) => new Sender(ia, file, size, options).run());
  } finally {
    await file.close();
  }
}

/**
 * Opens a file to send. @throws TransferFailure unless it is a regular file, or an error of the
 * file system
 */
export async function openFile(path: string): Promise<FileHandle> {
  // Checked first: opening a pipe would wait for another program to write into it.
  if (!(await stat(path)).isFile()) {
    throw new TransferFailure(`${JSON.stringify(path)} is not a regular file`);
  }
  return open(path, 'r');
}

class Sender {
  /** Bytes written, and the number of them that the receiver has stored. */
  private offsetBytes = 0;
  private storedBytes = 0;
  private startedAtBytes = 0;
  private startedMs = 0;
  private progress: Progress | undefined;

  constructor(
    private readonly ia: Ia,
    private readonly file: FileHandle,
    private readonly sizeBytes: number,
    private readonly options: SendOptions,
  ) {}

  async run(): Promise<void> {
    const { signal, to, port } = this.options;
    const peer = `${to} port ${port}`;
    let control: Control | undefined;
    try {
      signal.throwIfAborted();
      control = { conn: await this.connect(peer), peer, signal };
      await this.transfer(control);
      await control.conn.close();
    } catch (error) {
      const failure = failureOf(signal.aborted ? signal.reason : error);
      if (control !== undefined) say(control, { type: 'stop', reason: failure.what });
      throw failure.after(this.figures(), 'the same command resumes it');
    } finally {
      this.progress?.stop();
      if (control !== undefined) await leave(control);
    }
  }

  private async connect(peer: string): Promise<Connection> {
    const { to: address, port, signal } = this.options;
    const to = { address, port, signal, timeoutMs: CONNECT_TIMEOUT_MS };
    try {
      return await connect(this.ia, { ...to, ...CONNECTION });
    } catch (error) {
      throw failureAt(peer, error);
    }
  }

  private async transfer(control: Control): Promise<void> {
    const { options, sizeBytes } = this;
    say(control, { type: 'offer', sizeBytes, name: basename(options.path) });
    const grant = await expect(control, 'grant');
    if (grant.slots * grant.slotBytes > MAX_WINDOW_BYTES || grant.slots * grant.slotBytes === 0) {
      throw protocolFailure();
    }
    const hash = await this.agreeOnStart(control, grant);
    const { pz } = control.conn.ep;
    const memory = this.ia.allocate(grant.slots * grant.slotBytes, { pz });
    const slots = Array.from({ length: grant.slots }, (_, i) =>
      memory.segment(i * grant.slotBytes, grant.slotBytes),
    );
    this.progress = startProgress(sizeBytes, this.offsetBytes, options.out);
    await this.pump(control, grant, slots, hash);
    say(control, { type: 'done', digest: hash.digest() });
    const result = await expect(control, 'result');
    this.progress.update(sizeBytes);
    this.progress.stop();
    this.progress = undefined;
    this.report(result);
  }

  /** Continues where the receiver stopped, if its part is a prefix of this file. */
  private async agreeOnStart(
    control: Control,
    grant: Extract<Message, { type: 'grant' }>,
  ): Promise<Hash> {
    const { signal } = this.options;
    let hash = await hashOfPrefix(this.file, 0, signal);
    if (grant.offsetBytes > 0 && grant.offsetBytes <= this.sizeBytes) {
      const prefix = await hashOfPrefix(this.file, grant.offsetBytes, signal);
      if (prefix.copy().digest().equals(grant.prefixDigest)) {
        hash = prefix;
        this.offsetBytes = grant.offsetBytes;
        this.options.out.write(`Resuming after ${partText(this.offsetBytes, this.sizeBytes)}.\n`);
      }
    }
    this.startedAtBytes = this.storedBytes = this.offsetBytes;
    this.startedMs = performance.now();
    say(control, { type: 'start', offsetBytes: this.offsetBytes });
    return hash;
  }

  /** Fills every free slot; a credit frees one. */
  private async pump(
    control: Control,
    grant: Extract<Message, { type: 'grant' }>,
    slots: readonly LmrSegment[],
    hash: Hash,
  ): Promise<void> {
    const { conn } = control;
    const remote = new RemoteSegment(grant);
    const free = slots.map((_, i) => i);
    while (this.offsetBytes < this.sizeBytes || free.length < slots.length) {
      const slot = this.offsetBytes < this.sizeBytes ? free.shift() : undefined;
      if (slot === undefined) {
        const credit = await expect(control, 'credit');
        if (credit.slot >= slots.length || free.includes(credit.slot)) throw protocolFailure();
        free.push(credit.slot);
        this.storedBytes = Math.min(this.storedBytes + grant.slotBytes, this.sizeBytes);
        this.progress?.update(this.storedBytes);
        continue;
      }
      const segment = slots[slot]!;
      const lengthBytes = Math.min(grant.slotBytes, this.sizeBytes - this.offsetBytes);
      segment.set(slot * grant.slotBytes, lengthBytes);
      await this.read(segment.bytes);
      hash.update(segment.bytes);
      // It is sent before any later message. If it fails, waiting for the next credit shows that.
      conn.write(segment, remote.seek(slot * grant.slotBytes)).catch(() => undefined);
      say(control, { type: 'chunk', slot, lengthBytes });
      this.offsetBytes += lengthBytes;
    }
  }

  private async read(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length;) {
      const position = this.offsetBytes + at;
      const { bytesRead } = await this.file.read(bytes, at, bytes.length - at, position);
      if (bytesRead === 0) {
        throw new TransferFailure(`"${this.options.path}" became shorter while it was sent`);
      }
      at += bytesRead;
    }
  }

  private report(result: Extract<Message, { type: 'result' }>): void {
    const digest = Buffer.from(result.digest).toString('hex');
    if (!result.verified) {
      throw new TransferFailure(`The receiver got other bytes: its SHA-256 is ${digest}`);
    }
    const seconds = (performance.now() - this.startedMs) / 1000;
    const moved = this.sizeBytes - this.startedAtBytes;
    this.options.out.write(
      `Sent ${sizeText(moved)} in ${seconds.toFixed(2)} s: ` +
        `${rateText(moved, seconds)}.\nSHA-256 ${digest} verified by the receiver.\n`,
    );
  }

  private figures(): string | undefined {
    if (this.startedMs === 0) return undefined;
    const seconds = (performance.now() - this.startedMs) / 1000;
    const rate = rateText(this.storedBytes - this.startedAtBytes, seconds);
    return `after ${partText(this.storedBytes, this.sizeBytes)} at ${rate}`;
  }
}

function protocolFailure(): TransferFailure {
  return new TransferFailure('The receiver violates the protocol');
}

const LINE_EVERY_MS = 1000;

export interface Progress {
  /** @param doneBytes of the whole file, including those of an earlier run */
  update(doneBytes: number): void;
  stop(): void;
}

/**
 * @param startBytes bytes of an earlier run
 * @param out the stream to print to; a bar if it is a terminal
 */
export function startProgress(
  totalBytes: number,
  startBytes: number,
  out: NodeJS.WriteStream,
): Progress {
  const figures = figuresSince(performance.now(), totalBytes, startBytes);
  return out.isTTY ? bar(totalBytes, startBytes, out, figures) : lines(out, figures);
}

type Figures = (doneBytes: number) => { percent: string; text: string };

function figuresSince(startedMs: number, totalBytes: number, startBytes: number): Figures {
  return (doneBytes) => {
    const seconds = (performance.now() - startedMs) / 1000;
    const moved = doneBytes - startBytes;
    const etaSeconds = moved > 0 ? Math.ceil(((totalBytes - doneBytes) * seconds) / moved) : 0;
    const eta = moved > 0 || doneBytes === totalBytes ? `${etaSeconds} s` : '?';
    const done = partText(doneBytes, totalBytes);
    const percent = totalBytes === 0 ? 100 : Math.floor((100 * doneBytes) / totalBytes);
    return { percent: `${percent} %`, text: `${done} | ${rateText(moved, seconds)} | ETA ${eta}` };
  };
}

function bar(
  totalBytes: number,
  startBytes: number,
  out: NodeJS.WriteStream,
  figures: Figures,
): Progress {
  const single = new SingleBar(
    {
      stream: out,
      format: '{bar} {percent} | {text}',
      barsize: 24,
      hideCursor: true,
      // We handle signals: the bar stops when the transfer has stopped.
      gracefulExit: false,
    },
    Presets.shades_classic,
  );
  // A bar of 0 bytes would stay empty: each bar shows at least one byte.
  const shown = (doneBytes: number): number => (totalBytes === 0 ? 1 : doneBytes);
  single.start(Math.max(totalBytes, 1), shown(startBytes), figures(startBytes));
  return {
    update: (doneBytes) => single.update(shown(doneBytes), figures(doneBytes)),
    stop: () => single.stop(),
  };
}

function lines(out: NodeJS.WriteStream, figures: Figures): Progress {
  let saidMs = performance.now();
  return {
    update: (doneBytes) => {
      const nowMs = performance.now();
      if (nowMs - saidMs < LINE_EVERY_MS) return;
      saidMs = nowMs;
      const { percent, text } = figures(doneBytes);
      out.write(`${percent} | ${text}\n`);
    },
    stop: () => undefined,
  };
}
