/** Endpoints over the fakes, and what their event dispatchers hold. */
import {
  DatDtoStatus,
  type DatEvent,
  DatEventNumber,
  type EndpointOptions,
  type Ep,
  type Evd,
  type Lmr,
  MemPrivileges,
  type Pz,
} from '../../core/index.js';
import { nameOf } from '../../core/spi/index.js';
import { type FakeIa, openFake } from './fake-provider.js';

export interface Bench extends FakeIa {
  readonly pz: Pz;
  /** Takes everything, unless the options say otherwise. */
  readonly evd: Evd;
  readonly ep: Ep;
  readonly lmr: Lmr;
}

const NOTHING = new Uint8Array(0);

export async function unconnected(
  options: (evd: Evd) => Partial<EndpointOptions> = () => ({}),
): Promise<Bench> {
  const fake = await openFake();
  const pz = fake.ia.createPz();
  const evd = fake.ia.createEvd({ qlen: 64 });
  const ep = fake.ia.createEndpoint({
    pz,
    recvEvd: evd,
    requestEvd: evd,
    connectEvd: evd,
    ...options(evd),
  });
  const lmr = fake.ia.allocate(4096, { pz, privileges: MemPrivileges.ALL });
  return { ...fake, pz, evd, ep, lmr };
}

/** Connected by its own doing; ESTABLISHED has been dequeued. */
export async function connected(options?: (evd: Evd) => Partial<EndpointOptions>): Promise<Bench> {
  const bench = await unconnected(options);
  bench.ep.connect({ address: '192.0.2.2', connQual: 7 });
  bench.cm.connection.emit({ type: 'established', privateData: NOTHING });
  bench.world.pump();
  bench.ep.query().connectEvd.dequeue();
  return bench;
}

/** Has accepted a request and waits for the handshake's end. */
export async function accepting(options?: (evd: Evd) => Partial<EndpointOptions>): Promise<Bench> {
  const bench = await unconnected(options);
  const psp = bench.ia.createPsp({ connQual: 7, evd: bench.evd });
  bench.cm.request(7);
  bench.world.pump();
  const event = bench.evd.dequeue();
  if (event?.type !== 'connection-request') throw new Error('no request has come');
  event.cr.accept(bench.ep);
  psp.free();
  return bench;
}

export function drain(evd: Evd): DatEvent[] {
  const events: DatEvent[] = [];
  for (let event = evd.dequeue(); event !== undefined; event = evd.dequeue()) events.push(event);
  return events;
}

/** Events as short texts: `dto 7 FLUSHED`, `BROKEN`. */
export function texts(events: readonly DatEvent[]): string[] {
  return events.map((event) =>
    event.type === 'dto'
      ? `dto ${event.cookie} ${nameOf(DatDtoStatus, event.status)}`
      : nameOf(DatEventNumber, event.number),
  );
}
