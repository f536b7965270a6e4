/** The receiving side: listens, grants slots of registered memory, stores and verifies the file. */
import { type ConnectionRequestEvent, type Cr, type Ia, MemPrivileges } from 'dapl';
import { Channel, EP_ATTRIBUTES } from './channel.js';
import { TransferFailure } from './failure.js';
import { PartialFile } from './partial-file.js';
import { rateText } from './progress.js';
import { withIa } from './session.js';

const SLOTS = 16;
const SLOT_BYTES = 2 ** 20;
const MIB = 2 ** 20;

export interface ReceiveOptions {
  /** Directory that the file is stored in. */
  readonly directory: string;
  /** Local address and port to listen on. */
  readonly listen: string;
  readonly port: number;
  readonly signal: AbortSignal;
  readonly out: NodeJS.WriteStream;
  /** Called when connections are taken. */
  readonly onListening: () => void;
}

/** Takes one file. @throws TransferFailure, or what the file system says */
export async function receiveFile(options: ReceiveOptions): Promise<void> {
  await withIa(options.listen, async (ia) => {
    const cr = await nextRequest(ia, options);
    await new Receiver(ia, options).run(cr);
  });
}

function nextRequest(ia: Ia, options: ReceiveOptions): Promise<Cr> {
  const psp = ia.createPsp({ connQual: options.port });
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      psp.free();
      reject(new TransferFailure('Interrupted before a sender came.', 130));
    };
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
    const onAbort = (): void => channel.stop(this.interruption());
    options.signal.addEventListener('abort', onAbort);
    try {
      options.signal.throwIfAborted();
      cr.accept(ep);
      await channel.established();
      await this.take(channel, pz);
      await channel.ended();
    } catch (error) {
      await this.file?.keep();
      throw options.signal.aborted ? this.interruption() : this.withFigures(error);
    } finally {
      options.signal.removeEventListener('abort', onAbort);
    }
  }

  private async take(channel: Channel, pz: ReturnType<Ia['createPz']>): Promise<void> {
    const offer = await channel.expect('offer');
    this.sizeBytes = offer.sizeBytes;
    const file = await PartialFile.open(this.options.directory, offer.name, offer.sizeBytes);
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
    if (start.offsetBytes !== file.lengthBytes) await file.restart();
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
      if (message.type !== 'chunk' || message.slot >= SLOTS || message.lengthBytes > SLOT_BYTES) {
        throw new TransferFailure('The sender does not keep to the protocol.');
      }
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
    if (!verified)
      throw new TransferFailure(`The SHA-256 differs: ${digest}. The file is dropped.`);
    const seconds = (performance.now() - this.startedMs) / 1000;
    const moved = this.sizeBytes - this.startedAtBytes;
    this.options.out.write(
      `Received ${file.path}: ${(moved / MIB).toFixed(1)} MiB in ${seconds.toFixed(2)} s, ` +
        `${rateText(moved, seconds)}, SHA-256 verified.\n`,
    );
  }

  private interruption(): TransferFailure {
    return new TransferFailure(`Interrupted ${this.figures()}.`, 130);
  }

  private figures(): string {
    const stored = this.file?.lengthBytes ?? 0;
    const seconds = Math.max((performance.now() - this.startedMs) / 1000, 1e-3);
    if (this.startedMs === 0) return 'before any of the file came';
    return (
      `after ${(stored / MIB).toFixed(1)} of ${(this.sizeBytes / MIB).toFixed(1)} MiB ` +
      `(${rateText(stored - this.startedAtBytes, seconds)}); what came is kept`
    );
  }

  private withFigures(error: unknown): unknown {
    if (!(error instanceof TransferFailure) || this.startedMs === 0) return error;
    const text = `${error.message} It ended ${this.figures()}.`;
    return new TransferFailure(text, error.exitCode, { cause: error });
  }
}
