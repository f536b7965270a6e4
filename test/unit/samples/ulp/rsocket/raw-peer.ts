/** A peer that speaks the wire of rsockets by hand, and so may say anything. */
import {
  type ConnectionEvent,
  DatEventNumber,
  type Ep,
  type Evd,
  type Ia,
  type Lmr,
  MemPrivileges,
  type Pz,
} from '../../../../../core/index.js';
import {
  type ConnectionData,
  decodeConnectionData,
  encodeConnectionData,
  immediateOf,
  Operation,
  type RemoteRegion,
  writeIomap,
  writeTarget,
} from '../../../../../samples/ulp/rsocket/wire/index.js';
import { PORT, SERVER } from './stream-scene.js';

const HALF_BYTES = 4096;
const RECEIVES = 64;
const { LOCAL_READ, LOCAL_WRITE, REMOTE_WRITE } = MemPrivileges;

export class RawPeer {
  private readonly pz: Pz;
  private readonly evd: Evd;
  private readonly ep: Ep;
  private readonly memory: Lmr;
  private readonly out: Lmr;
  private readonly lmrs: readonly Lmr[];
  /** What the other side has told of itself. */
  theirs!: ConnectionData;
  ended: ConnectionEvent | undefined = undefined;
  private written = 0;

  constructor(private readonly ia: Ia) {
    this.pz = ia.createPz();
    const { pz } = this;
    this.evd = ia.createEvd({ qlen: 4096 });
    const evds = { recvEvd: this.evd, requestEvd: this.evd, connectEvd: this.evd };
    const attributes = {
      ...{ maxRecvDtos: RECEIVES, maxRequestDtos: 1024 },
      transport: { rnrRetryCount: 7, minRnrTimer: 14 },
    };
    this.ep = ia.createEndpoint({ pz, ...evds, attributes });
    this.memory = ia.allocate(2 * HALF_BYTES + 32, {
      ...{ pz, privileges: LOCAL_READ | LOCAL_WRITE | REMOTE_WRITE },
    });
    this.out = ia.allocate(1 << 17, { pz });
    this.lmrs = [this.memory, this.out];
    for (let n = 0; n < RECEIVES; n++) this.ep.postRecv([]);
  }

  get data(): ConnectionData {
    const { address, rmrContext: key = 0 } = this.memory;
    return {
      ...{ isBigEndian: false, credits: 32, iomapSlots: 0 },
      targetList: { address: address + BigInt(2 * HALF_BYTES), key, length: 2 },
      buffer: { address, key, length: HALF_BYTES },
    };
  }

  /** The second half, as it would be told of. */
  get secondHalf(): RemoteRegion {
    const { buffer } = this.data;
    return { ...buffer, address: buffer.address + BigInt(HALF_BYTES) };
  }

  /** @throws Error that says how it was refused */
  async connect(privateData: Uint8Array = encodeConnectionData(this.data)): Promise<void> {
    this.ep.connect({ address: SERVER, connQual: PORT, privateData });
    let { event } = await this.evd.wait();
    // A refusal comes behind the receives that it flushes.
    while (event.type === 'dto') ({ event } = await this.evd.wait());
    if (event.type !== 'connection' || event.number !== DatEventNumber.ESTABLISHED) {
      throw new Error(`refused: ${JSON.stringify(event)}`);
    }
    this.theirs = decodeConnectionData(event.privateData);
  }

  /** Bytes of the stream where they belong; `claimed` is what the message says of their number. */
  sendData(bytes: number, claimed = bytes): void {
    const { buffer } = this.theirs;
    const at = this.written % (2 * buffer.length);
    this.written += bytes;
    this.write(
      bytes,
      buffer.address + BigInt(at),
      buffer.key,
      immediateOf(Operation.DATA, claimed),
    );
  }

  /** A target entry, or the first bytes of one. */
  target(slot: number, entry: RemoteRegion, argument: number, bytes = 16): void {
    writeTarget(new DataView(this.out.bytes.buffer, this.out.bytes.byteOffset), 0, entry, true);
    const { address, key } = this.theirs.targetList;
    const immediate = immediateOf(Operation.TARGET, argument);
    this.write(bytes, address + BigInt(16 * slot), key, immediate);
  }

  iomap(slot: number, region: RemoteRegion, bytes = 24): void {
    const view = new DataView(this.out.bytes.buffer, this.out.bytes.byteOffset);
    writeIomap(view, 0, { offset: 0n, region }, true);
    const { address, key } = this.theirs.targetList;
    const immediate = immediateOf(Operation.IOMAP, slot);
    this.write(bytes, address + BigInt(32 + 24 * slot), key, immediate);
  }

  /** Immediate data alone, or with bytes that go to the receive buffer. */
  tell(immediate: number, bytes = 0): void {
    const { address, key } = this.theirs.buffer;
    this.write(bytes, address, key, immediate >>> 0);
  }

  write(bytes: number, address: bigint, rmrContext: number, immediate: number): void {
    const segment = this.out.segment(0, bytes);
    this.ep.postRdmaWriteWithImmediate(segment, 0, { address, rmrContext }, immediate);
  }

  send(bytes: number, immediate?: number): void {
    const segment = this.out.segment(0, bytes);
    if (immediate === undefined) this.ep.postSend(segment);
    else this.ep.postSendWithImmediate(segment, 0, immediate);
  }

  /** Takes what has come, and posts its receives again. @returns whether it still lives */
  drain(): boolean {
    for (let event = this.evd.dequeue(); event !== undefined; event = this.evd.dequeue()) {
      if (event.type === 'connection') this.ended = event;
      else if (event.type === 'dto' && event.immediate !== undefined && this.ended === undefined) {
        this.ep.postRecv([]);
      }
    }
    return this.ended === undefined && this.ep.state === 'CONNECTED';
  }

  /** Waits until the connection has ended. */
  async end(): Promise<void> {
    while (this.drain()) await this.evd.wait();
  }

  leave(): void {
    this.ep.free();
    void this.evd.free();
    for (const lmr of this.lmrs) lmr.free();
    this.pz.free();
  }
}
