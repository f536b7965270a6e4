/**
 * One end of a connection, in a namespace of its own.
 *
 *   end-main.js serve ADDRESS DELAY_MS OPTIONS     accepts, DELAY_MS after it was asked
 *   end-main.js drive ADDRESS PEER OPTIONS         connects, then does what each line says
 *
 * `write` moves 1 MiB to the peer and prints `written`, or what has become of the connection;
 * `counters` prints those of the device; `end` disconnects. OPTIONS is JSON: of the provider, and
 * `transport` of the endpoint.
 */
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import {
  type ConnectionEvent,
  DatDtoStatus,
  DatEventNumber,
  type Ep,
  type Evd,
  type Ia,
  MemPrivileges,
  nameOf,
  openIa,
  PspFlags,
} from 'dapl';
import { softroce } from 'dapl/providers/softroce';
import { patience } from '../support/patience.js';

const CONN_QUAL = 4321;
const BYTES = 1 << 20;
const HEAD_BYTES = 16;

interface Options {
  readonly udpPort?: number;
  readonly mtuBytes?: number;
  readonly icrcCheck?: 'recovered' | 'exact';
  readonly transport?: { readonly ackTimeout?: number; readonly retryCount?: number };
}

const say = (text: string): void => void process.stdout.write(`${text}\n`);

class End {
  private readonly connections: Evd;
  private readonly requests: Evd;
  private readonly receives: Evd;
  private readonly memory;
  private readonly head;
  readonly ep: Ep;

  constructor(
    readonly ia: Ia,
    { transport = {} }: Options,
  ) {
    const pz = ia.createPz();
    const { LOCAL_READ, LOCAL_WRITE, REMOTE_WRITE } = MemPrivileges;
    this.memory = ia.allocate(BYTES, { pz, privileges: LOCAL_READ | LOCAL_WRITE | REMOTE_WRITE });
    this.head = ia.allocate(HEAD_BYTES, { pz });
    this.connections = ia.createEvd({ qlen: 8 });
    this.requests = ia.createEvd({ qlen: 16 });
    this.receives = ia.createEvd({ qlen: 16 });
    this.ep = ia.createEndpoint({
      pz,
      connectEvd: this.connections,
      requestEvd: this.requests,
      recvEvd: this.receives,
      attributes: { transport },
    });
    this.ep.postRecv(this.head.segment());
  }

  async connectionEvent(): Promise<ConnectionEvent> {
    const { event } = await this.connections.wait();
    if (event.type !== 'connection') throw new Error(`a ${event.type} event`);
    return event;
  }

  async established(): Promise<void> {
    const event = await this.connectionEvent();
    say(nameOf(DatEventNumber, event.number));
    if (event.number !== DatEventNumber.ESTABLISHED) say(event.reason ?? '');
  }

  /** Where the peer may write. */
  async offer(): Promise<void> {
    const segment = this.head.segment();
    const view = new DataView(segment.bytes.buffer, segment.bytes.byteOffset, HEAD_BYTES);
    view.setBigUint64(0, this.memory.address);
    view.setUint32(8, this.memory.rmrContext ?? 0);
    this.ep.postSend(segment);
    await this.requests.wait();
  }

  async write(): Promise<void> {
    const { bytes } = this.head.segment();
    const view = new DataView(bytes.buffer, bytes.byteOffset, HEAD_BYTES);
    const remote = { address: view.getBigUint64(0), rmrContext: view.getUint32(8) };
    this.ep.postRdmaWrite(this.memory.segment(), 0, remote);
    const { event } = await this.requests.wait();
    if (event.type !== 'dto') throw new Error(`a ${event.type} event`);
    if (event.status === DatDtoStatus.SUCCESS) return say('written');
    say(nameOf(DatDtoStatus, event.status));
    const end = await this.connectionEvent();
    say(`${nameOf(DatEventNumber, end.number)}: ${end.reason ?? ''}`);
    for (const line of end.flightRecord ?? []) say(`  ${line}`);
    say('over');
  }

  async offered(): Promise<void> {
    await this.receives.wait();
  }
}

const [, , role, address = '', third = '', json = '{}'] = process.argv;
const options = JSON.parse(json) as Options;
const { udpPort, mtuBytes, icrcCheck } = options;
const ia = await openIa(
  softroce({
    addresses: [address],
    port: 'native',
    shm: false,
    ...(udpPort !== undefined && { udpPort }),
    ...(mtuBytes !== undefined && { mtuBytes }),
    ...(icrcCheck !== undefined && { icrcCheck }),
  }),
);
if (role === 'serve') await serve(Number(third));
else await drive(third);
await ia.close();

async function serve(delayMs: number): Promise<void> {
  const crEvd = ia.createEvd({ qlen: 4 });
  ia.createPsp({ connQual: CONN_QUAL, evd: crEvd, flags: PspFlags.CONSUMER });
  say('listening');
  const { event } = await crEvd.wait();
  if (event.type !== 'connection-request') throw new Error(`a ${event.type} event`);
  await delay(delayMs);
  const end = new End(ia, options);
  event.cr.accept(end.ep);
  await end.established();
  await end.offer();
  const last = await end.connectionEvent();
  say(nameOf(DatEventNumber, last.number));
}

async function drive(peer: string): Promise<void> {
  const end = new End(ia, options);
  end.ep.connect({ address: peer, connQual: CONN_QUAL, timeoutMs: patience(30_000) });
  await end.established();
  if (end.ep.state !== 'CONNECTED') return;
  await end.offered();
  say('ready');
  const lines = createInterface({ input: process.stdin });
  lines.on('line', (line) => void act(end, line, () => lines.close()));
  await once(lines, 'close');
}

async function act(end: End, line: string, close: () => void): Promise<void> {
  if (line === 'write') return end.write();
  if (line === 'counters') return say(JSON.stringify(ia.deviceCounters()));
  if (end.ep.state === 'CONNECTED') end.ep.disconnect();
  await end.connectionEvent();
  close();
}
