/** The receiving side: listens, grants slots of registered memory, stores and verifies the file. */
import type { Ia } from 'dapl';
import { type Connection, listen, type Listener, type ListenRequest } from 'dapl/flow';
import { leaveUnhandled } from 'dapl/spi';
import { CONNECTION, type Control, expect, hear, leave, say } from './control.js';
import { failureOf, TransferFailure } from './failure.js';
import { PartialFile, prepareDirectory } from './partial-file.js';
import { type SocketKind, withIa } from './session.js';
import type { ProviderName } from '../command-options.js';
import { printable } from '../printable.js';
import { partText, rateText, sizeText } from './units.js';

const SLOTS = 16;
const SLOT_BYTES = 2 ** 20;

export interface ReceiveOptions {
  /** Directory that the file is stored in. */
  readonly directory: string;
  /** True to replace a file of that name; else it is a failure. */
  readonly force: boolean;
  /** Local address and port to listen on. */
  readonly listen: string;
  readonly port: number;
  readonly socket: SocketKind;
  readonly provider: ProviderName;
  /** Aborted to interrupt, with a TransferFailure as its reason. */
  readonly signal: AbortSignal;
  readonly out: NodeJS.WriteStream;
  /** Called when connections are accepted. */
  readonly onListening: () => void;
}

/** Receives one file. @throws TransferFailure, or an error of the file system */
export async function receiveFile(options: ReceiveOptions): Promise<void> {
  await prepareDirectory(options.directory);
  await withIa(options.listen, options, (ia) => receiveOver(ia, options));
}

const BUSY = 'busy with another sender';

/** Receives one file over an adapter. @throws as `receiveFile` */
export async function receiveOver(ia: Ia, options: ReceiveOptions): Promise<void> {
  let isTaken = false;
  const answer = ({ refuse }: ListenRequest): undefined =>
    isTaken ? refuse(new TextEncoder().encode(BUSY)) : undefined;
  await using listener = await listen(ia, { port: options.port, answer, ...CONNECTION });
  options.onListening();
  const conn = await firstSender(listener, options);
  isTaken = true;
  leaveUnhandled(turnAway(listener));
  await new Receiver(conn, options).run();
}

async function firstSender(listener: Listener, { signal }: ReceiveOptions): Promise<Connection> {
  try {
    return await listener.accept({ signal });
  } catch (error) {
    if (!signal.aborted) throw error;
    const { what, exitCode } = failureOf(signal.reason);
    throw new TransferFailure(`${what} before a sender came`, { exitCode });
  }
}

/** Rejects clients that asked at the same time as the first. */
async function turnAway(listener: Listener): Promise<void> {
  for await (const conn of listener) {
    say({ conn }, { type: 'stop', reason: BUSY });
    await leave({ conn });
  }
}

class Receiver {
  private file: PartialFile | undefined;
  private startedMs = 0;
  private startedAtBytes = 0;
  private sizeBytes = 0;

  constructor(
    private readonly conn: Connection,
    private readonly options: ReceiveOptions,
  ) {}

  async run(): Promise<void> {
    const { conn, options } = this;
    const { signal } = options;
    const control = { conn, peer: conn.ep.query().remoteAddress ?? 'The sender', signal };
    try {
      signal.throwIfAborted();
      await this.take(control);
      // Only the end can follow. However the connection ends, the file is stored.
      await hear(control).catch(() => undefined);
    } catch (error) {
      const failure = failureOf(signal.aborted ? signal.reason : error);
      say(control, { type: 'stop', reason: failure.what });
      await this.file?.keep();
      throw failure.after(this.figures(), 'what came is kept');
    } finally {
      await leave(control);
    }
  }

  private async take(control: Control): Promise<void> {
    const offer = await expect(control, 'offer');
    this.sizeBytes = offer.sizeBytes;
    const file = await PartialFile.open(offer, this.options);
    this.file = file;
    const slots = this.conn.expose(SLOTS * SLOT_BYTES, 'write');
    say(control, {
      type: 'grant',
      offsetBytes: file.lengthBytes,
      prefixDigest: file.digest(),
      address: BigInt(slots.address),
      rmrContext: slots.rmrContext,
      slotBytes: SLOT_BYTES,
      slots: SLOTS,
    });
    const start = await expect(control, 'start');
    if (start.offsetBytes !== file.lengthBytes) {
      if (start.offsetBytes !== 0) throw protocolFailure();
      await file.restart();
    }
    this.startedAtBytes = file.lengthBytes;
    this.startedMs = performance.now();
    const digest = await this.store(control, slots.bytes);
    await this.verify(control, digest);
  }

  /** Stores chunks until the sender has sent the digest. */
  private async store(control: Control, slots: Uint8Array): Promise<Uint8Array> {
    for (;;) {
      const message = await hear(control);
      if (message.type === 'done') return message.digest;
      if (message.type !== 'chunk' || message.slot >= SLOTS) throw protocolFailure();
      const roomBytes = Math.min(SLOT_BYTES, this.sizeBytes - this.file!.lengthBytes);
      if (message.lengthBytes > roomBytes) throw protocolFailure();
      const at = message.slot * SLOT_BYTES;
      await this.file!.append(slots.subarray(at, at + message.lengthBytes));
      say(control, { type: 'credit', slot: message.slot });
    }
  }

  private async verify(control: Control, theirs: Uint8Array): Promise<void> {
    const file = this.file!;
    const ours = file.digest();
    const verified = Buffer.from(ours).equals(theirs) && file.lengthBytes === this.sizeBytes;
    if (verified) await file.finish();
    else await file.discard();
    this.file = undefined;
    say(control, { type: 'result', verified, digest: ours });
    const digest = Buffer.from(ours).toString('hex');
    if (!verified) throw new TransferFailure(`The file was deleted: its SHA-256 became ${digest}`);
    const seconds = (performance.now() - this.startedMs) / 1000;
    const moved = this.sizeBytes - this.startedAtBytes;
    this.options.out.write(
      `Received ${printable(file.path)}: ${sizeText(moved)} in ${seconds.toFixed(2)} s, ` +
        `${rateText(moved, seconds)}, SHA-256 verified.\n`,
    );
  }

  private figures(): string | undefined {
    if (this.startedMs === 0) return undefined;
    const stored = this.file?.lengthBytes ?? 0;
    const seconds = (performance.now() - this.startedMs) / 1000;
    const rate = rateText(stored - this.startedAtBytes, seconds);
    return `after ${partText(stored, this.sizeBytes)} at ${rate}`;
  }
}

function protocolFailure(): TransferFailure {
  return new TransferFailure('The sender violates the protocol');
}
