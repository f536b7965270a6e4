/** The receiving side: listens, grants slots of registered memory, stores and verifies the file. */
import { type ConnectionRequestEvent, type Cr, type Ia, MemPrivileges } from 'dapl';
import { Channel, EP_ATTRIBUTES } from './channel.js';
import { failureOf, TransferFailure } from './failure.js';
import { PartialFile, prepareDirectory } from './partial-file.js';
import { type SocketKind, withIa } from './session.js';
import type { ProviderName } from '../provider-option.js';
import { printable } from '../printable.js';
import { partText, rateText, sizeText } from './units.js';

const SLOTS = 16;
const SLOT_BYTES = 2 ** 20;

export interface ReceiveOptions {
  /** Directory that the file is stored in. */
  readonly directory: string;
  /** Whether a file of that name is replaced; else it is a failure. */
  readonly force: boolean;
  /** Local address and port to listen on. */
  readonly listen: string;
  readonly port: number;
  readonly socket: SocketKind;
  readonly provider: ProviderName;
  /** Aborted to interrupt, with a TransferFailure as its reason. */
  readonly signal: AbortSignal;
  readonly out: NodeJS.WriteStream;
  /** Called when connections are taken. */
  readonly onListening: () => void;
}

/** Takes one file. @throws TransferFailure, or what the file system says */
export async function receiveFile(options: ReceiveOptions): Promise<void> {
  await prepareDirectory(options.directory);
  await withIa(options.listen, options, async (ia) => {
    const cr = await nextRequest(ia, options);
    await new Receiver(ia, options).run(cr);
  });
}

function nextRequest(ia: Ia, options: ReceiveOptions): Promise<Cr> {
  const psp = ia.createPsp({ connQual: options.port });
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      psp.free();
      const { what, exitCode } = failureOf(options.signal.reason);
      reject(new TransferFailure(`${what} before a sender came`, { exitCode }));
    };
    if (options.signal.aborted) {
      onAbort();
      return;
    }
    options.signal.addEventListener('abort', onAbort, { once: true });
    let taken = false;
    psp.requests$.subscribe((event: ConnectionRequestEvent) => {
      const cr = event.cr;
      if (taken) {
        cr.reject({ privateData: new TextEncoder().encode('busy with another sender') });
        return;
      }
      taken = true;
      options.signal.removeEventListener('abort', onAbort);
      resolve(cr);
    });
    options.onListening();
  });
}

class Receiver {
  private file: PartialFile | undefined;
  private startedMs = 0;
  private startedAtBytes = 0;
  private sizeBytes = 0;

  constructor(
    private readonly ia: Ia,
    private readonly options: ReceiveOptions,
  ) {}

  async run(cr: Cr): Promise<void> {
    const { ia, options } = this;
    const pz = ia.createPz();
    const ep = ia.createEndpoint({ pz, attributes: EP_ATTRIBUTES });
    const channel = new Channel(ia, pz, ep, cr.remoteAddress);
    const onAbort = (): void => channel.stop(failureOf(options.signal.reason));
    options.signal.addEventListener('abort', onAbort);
    try {
      options.signal.throwIfAborted();
      cr.accept(ep);
      await channel.established();
      await this.take(channel, pz);
      await channel.ended();
    } catch (error) {
      const failure = failureOf(options.signal.aborted ? options.signal.reason : error);
      channel.stop(failure);
      await this.file?.keep();
      throw failure.after(this.figures(), 'what came is kept');
    } finally {
      options.signal.removeEventListener('abort', onAbort);
      await channel.close();
    }
  }

  private async take(channel: Channel, pz: ReturnType<Ia['createPz']>): Promise<void> {
    const offer = await channel.expect('offer');
    this.sizeBytes = offer.sizeBytes;
    const file = await PartialFile.open(offer, this.options);
    this.file = file;
    const memory = this.ia.allocate(SLOTS * SLOT_BYTES, {
      pz,
      privileges: MemPrivileges.LOCAL_READ | MemPrivileges.LOCAL_WRITE | MemPrivileges.REMOTE_WRITE,
    });
    channel.send({
      type: 'grant',
      offsetBytes: file.lengthBytes,
      prefixDigest: file.digest(),
      address: memory.address,
      rmrContext: memory.rmrContext!,
      slotBytes: SLOT_BYTES,
      slots: SLOTS,
    });
    const start = await channel.expect('start');
    if (start.offsetBytes !== file.lengthBytes) {
      if (start.offsetBytes !== 0) throw protocolFailure();
      await file.restart();
    }
    this.startedAtBytes = file.lengthBytes;
    this.startedMs = performance.now();
    const digest = await this.store(channel, memory.bytes);
    await this.verify(channel, digest);
  }

  /** Stores chunks until the sender has said the digest. */
  private async store(channel: Channel, slots: Uint8Array): Promise<Uint8Array> {
    for (;;) {
      const message = await channel.receive();
      if (message.type === 'done') return message.digest;
      if (message.type !== 'chunk' || message.slot >= SLOTS) throw protocolFailure();
      const roomBytes = Math.min(SLOT_BYTES, this.sizeBytes - this.file!.lengthBytes);
      if (message.lengthBytes > roomBytes) throw protocolFailure();
      const at = message.slot * SLOT_BYTES;
      await this.file!.append(slots.subarray(at, at + message.lengthBytes));
      channel.send({ type: 'credit', slot: message.slot });
    }
  }

  private async verify(channel: Channel, theirs: Uint8Array): Promise<void> {
    const file = this.file!;
    const ours = file.digest();
    const verified = Buffer.from(ours).equals(theirs) && file.lengthBytes === this.sizeBytes;
    if (verified) await file.finish();
    else await file.discard();
    this.file = undefined;
    channel.send({ type: 'result', verified, digest: ours });
    const digest = Buffer.from(ours).toString('hex');
    if (!verified) throw new TransferFailure(`The file is dropped: its SHA-256 became ${digest}`);
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
  return new TransferFailure('The sender does not keep to the protocol');
}
