/** Our side: the workloads over softroce through the public DAT API, as a stranger writes them. */
import { type Ia, openIa } from 'dapl';
import type { SoftroceOptions } from 'dapl/providers/softroce';
import { type Cell, type Counters, serverSlots, slotsOfSet } from './cells.js';
import { Connection, established } from './connection.js';
import type { Count, End, Target } from './end.js';
import { provider } from './provider.js';
import { type Place, ping, pingByWrite, serve, serveWrites } from './ping.js';
import { stream } from './stream.js';

const CONN_QUAL = 7500;
/** Longer than anything that works takes, however busy the machine. */
const CONNECT_TIMEOUT_MS = 30_000;
/** Connections asked for at a time. */
const CONNECTING = 50;
/** How long two ends that are to idle have been busy before. */
const STIR_SECONDS = 0.05;

/** How the port differs from what a user gets without a word. */
type PortChoice = Pick<SoftroceOptions, 'port' | 'mtuBytes' | 'parameters' | 'shm' | 'shared'>;

export class SoftroceEnd implements End {
  private connection: Connection | undefined;
  private serving: Promise<void> | undefined;

  static async open(options: PortChoice, local: string, remote: string): Promise<SoftroceEnd> {
    return new SoftroceEnd(await openIa(provider({ ...options, addresses: [local] })), remote);
  }

  private constructor(
    private readonly ia: Ia,
    private readonly remote: string,
  ) {}

  listen(cell: Cell): Promise<Target> {
    const { workload, endpoints } = cell;
    const isMessage = workload !== 'write' && workload !== 'read' && workload !== 'ping-write';
    const perEp = serverSlots(cell);
    const connection = new Connection(this.ia, cell, perEp, isMessage ? perEp : 0);
    this.connection = connection;
    let place: Place | undefined;
    let accepted = 0;
    const psp = this.ia.createPsp({ connQual: CONN_QUAL });
    psp.requests$.subscribe(({ cr }) => {
      if (cr === undefined) return;
      place = readPlace(cr.privateData);
      cr.accept(connection.eps[accepted]);
      accepted += 1;
      if (accepted === endpoints) psp.free();
    });
    this.serving =
      workload === 'ping-write' ? serveWrites(connection, () => place) : serve(connection);
    const { address, rmrContext } = connection.memory;
    return Promise.resolve({ port: CONN_QUAL, address, rmrContext: rmrContext ?? 0 });
  }

  async run(cell: Cell, target: Target, seconds: number): Promise<Count> {
    const { workload, depth, endpoints } = cell;
    const isPing = workload === 'ping' || workload === 'idle';
    const perEp = Math.max(2, endpoints === 1 ? depth : 2, slotsOfSet(cell));
    const connection = new Connection(this.ia, cell, perEp, isPing ? 2 : 0);
    this.connection = connection;
    for (let i = 0; i < endpoints; i += CONNECTING) {
      await Promise.all(connection.eps.slice(i, i + CONNECTING).map((ep) => this.connect(ep)));
    }
    if (workload === 'ping-write') return pingByWrite(connection, target, seconds);
    if (workload === 'idle') return ping(connection, STIR_SECONDS);
    return isPing ? ping(connection, seconds) : stream(connection, target, seconds);
  }

  async stop(): Promise<void> {
    this.connection?.stop();
    await this.serving;
    this.serving = undefined;
    await this.connection?.free();
    this.connection = undefined;
  }

  /** A commit of before, which `--against` measures by this code, tells none. */
  counters(): Counters | undefined {
    return 'deviceCounters' in this.ia ? this.ia.deviceCounters() : undefined;
  }

  async close(): Promise<void> {
    await this.ia.close('abrupt');
  }

  private connect(ep: Connection['eps'][number]): Promise<void> {
    const { memory } = this.connection!;
    const privateData = writePlace(memory.address, memory.rmrContext ?? 0);
    const done = established(ep);
    ep.connect({
      address: this.remote,
      connQual: CONN_QUAL,
      timeoutMs: CONNECT_TIMEOUT_MS,
      privateData,
    });
    return done;
  }
}

function writePlace(address: bigint, rmrContext: number): Uint8Array {
  const bytes = Buffer.alloc(12);
  bytes.writeBigUInt64BE(address);
  bytes.writeUInt32BE(rmrContext, 8);
  return bytes;
}

function readPlace(privateData: Uint8Array): Place {
  const bytes = Buffer.from(privateData);
  return { address: bytes.readBigUInt64BE(), rmrContext: bytes.readUInt32BE(8) };
}
