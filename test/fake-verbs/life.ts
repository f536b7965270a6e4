/**
 * A whole life over the fakes: two adapters open, make one of everything, connect, transfer by all
 * operations, disconnect, close. What it meets is told, never lost: the tests break it everywhere.
 * Together with scenes.ts it makes every call that the addon can make.
 */
import {
  DatError,
  type DatEvent,
  DatEventNumber,
  type Evd,
  type Ia,
  MemPrivileges,
  openIa,
  type RemoteAddress,
  RemoteSegment,
} from 'dapl';
import { verbs } from 'dapl/providers/verbs';
import { CM_LIBRARY, loadCmFake } from './cm-host.js';
import { FAKE_LIBIBVERBS, fakeVerbs } from './control.js';
import { CONN_QUAL, LIFE_ADDRESSES, PASSIVE } from './life-addresses.js';
import { earlyData, groups, regions, rejection, sleepingConsumer } from './scenes.js';
import { patience } from '../support/patience.js';

export { LIFE_ADDRESSES };
const [ACTIVE] = LIFE_ADDRESSES;
/** What comes at all comes long before. */
const PATIENCE_MS = patience(60_000);
const LOOK_MS = 20;
/** In vain, before the other side is asked: the loop turns meanwhile, and events come. */
const OTHER_SIDE_LOOKS = patience(10);

/** How a life went: to its end, or up to an error, or an event that was not the one expected. */
export interface Outcome {
  readonly errors: unknown[];
  /** Texts of events that were not expected. */
  readonly events: string[];
}

const EXPECTED: ReadonlySet<number> = new Set([
  DatEventNumber.ESTABLISHED,
  DatEventNumber.DISCONNECTED,
]);

/** An event in the way: the rest of the life makes no sense. */
class Interrupted extends Error {}

export function openLifeDevice(device: 'fake0' | 'fake1'): Promise<Ia> {
  const libraries = { verbs: FAKE_LIBIBVERBS, rdmacm: CM_LIBRARY };
  const cm = loadCmFake();
  cm.addAddress(ACTIVE, 'fake0');
  cm.addAddress(PASSIVE, 'fake1');
  return openIa(verbs({ device, libraries, polling: 'event' }));
}

export async function live(): Promise<Outcome> {
  const outcome: Outcome = { errors: [], events: [] };
  const adapters: Ia[] = [];
  const guard = async (step: () => unknown): Promise<void> => {
    try {
      await step();
    } catch (error) {
      if (!(error instanceof Interrupted)) outcome.errors.push(error);
    }
  };
  await guard(async () => {
    for (const device of ['fake0', 'fake1'] as const) {
      const ia = await openLifeDevice(device);
      adapters.push(ia);
      ia.async$.subscribe((event) => outcome.events.push(textOf(event)));
    }
    await new Life(adapters[0] as Ia, adapters[1] as Ia, outcome).run();
  });
  for (const ia of adapters) await guard(() => ia.close());
  return outcome;
}

/** Objects of both libraries that are left. */
export function leftovers(): string[] {
  const kinds = ['context', 'pd', 'mr', 'mw', 'ah', 'channel', 'cq', 'srq', 'qp', 'xrcd', 'list'];
  const counted = kinds.map((kind): [string, number] => [kind, fakeVerbs().objects(kind)]);
  counted.push(['librdmacm', loadCmFake().live()]);
  return counted.flatMap(([kind, count]) => (count > 0 ? [`${kind}: ${count}`] : []));
}

function textOf(event: DatEvent): string {
  return JSON.stringify(event, (key, value: unknown) =>
    typeof value === 'object' && value !== null && key !== '' ? undefined : plain(value),
  );
}

function plain(value: unknown): unknown {
  return typeof value === 'bigint' ? `${value}` : value;
}

/** What scenes see of a life. */
export interface LifeScene {
  readonly here: Side;
  readonly there: Side;
  /** The next event, if it is of that kind and a success, or a connection event of that number. */
  readonly next: (evd: Evd, type: DatEvent['type'], number?: number) => Promise<DatEvent>;
}

class Life implements LifeScene {
  readonly here;
  readonly there;

  constructor(
    active: Ia,
    passive: Ia,
    private readonly outcome: Outcome,
  ) {
    this.here = sideOf(active);
    this.there = sideOf(passive);
  }

  async run(): Promise<void> {
    const { here, there } = this;
    const psp = there.ia.createPsp({ connQual: CONN_QUAL, evd: there.evd });
    here.ep.connect({ address: PASSIVE, connQual: CONN_QUAL });
    const request = await this.next(there.evd, 'connection-request');
    if (request.type === 'connection-request') request.cr.accept(there.ep);
    await this.next(here.evd, 'connection');
    await this.next(there.evd, 'connection');
    psp.free();
    await this.transfer();
    await this.grant();
    await sleepingConsumer(this);
    await this.datagram();
    regions(this);
    await rejection(this);
    here.ep.disconnect();
    await this.next(here.evd, 'connection');
    await this.next(there.evd, 'connection');
    await earlyData(this);
  }

  private async transfer(): Promise<void> {
    const { here, there } = this;
    const remote = remoteOf(there);
    there.srq.resize(64);
    there.srq.setLowWatermark(1);
    for (let i = 0; i < 4; i++) there.srq.postRecv(there.lmr.segment(i * 64, 64), i);
    here.ep.postSend(here.lmr.segment(0, 64), 1);
    await this.next(here.evd, 'dto');
    await this.next(there.evd, 'dto');
    here.ep.postRdmaWrite(here.lmr.segment(0, 512), 2, remote);
    await this.next(here.evd, 'dto');
    here.ep.postRdmaRead(here.lmr.segment(0, 512), 3, remote);
    await this.next(here.evd, 'dto');
  }

  private async grant(): Promise<void> {
    const { ia, pz, ep, lmr, evd } = this.here;
    const rmr = ia.createRmr(pz);
    rmr.bind(lmr.segment(0, 64), ep, { privileges: MemPrivileges.REMOTE_READ });
    await this.next(evd, 'rmr-bind');
    rmr.free();
  }

  private async datagram(): Promise<void> {
    const { here, there } = this;
    const [from, to] = [here, there].map(({ ia, pz, evd }) =>
      ia.createUdEndpoint({ pz, recvEvd: evd, requestEvd: evd }),
    );
    if (!from || !to) throw new Error('two of two');
    const { qpn } = to;
    const handle = from.createAddressHandle({ address: PASSIVE, qpn, qkey: to.attributes.qkey });
    to.postRecv(there.lmr.segment(0, 1000), 1);
    from.postSendUd(here.lmr.segment(0, 8), handle, 2);
    await this.next(here.evd, 'datagram');
    await this.next(there.evd, 'datagram');
    handle.free();
    groups(to);
    from.free();
    to.free();
  }

  /** Nothing may come any more when an asynchronous event has told of trouble. */
  private async arrival(evd: Evd): Promise<DatEvent> {
    const since = performance.now();
    for (let looks = 1; ; looks++) {
      try {
        return (await evd.wait({ timeoutMs: LOOK_MS })).event;
      } catch (error) {
        const isLate = performance.now() - since > PATIENCE_MS;
        if (isLate || !DatError.isDatError(error) || error.code !== 'DAT_TIMEOUT_EXPIRED')
          throw error;
        if (this.outcome.events.length > 0) throw new Interrupted('trouble');
        if (looks > OTHER_SIDE_LOOKS) this.lookAtOthers(evd);
      }
    }
  }

  /** It is the other side that may have been told why. */
  private lookAtOthers(evd: Evd): void {
    for (const side of [this.here, this.there]) {
      const event = side.evd === evd ? undefined : side.evd.dequeue();
      if (event === undefined) continue;
      this.outcome.events.push(textOf(event));
      throw new Interrupted('the other side');
    }
  }

  readonly next: LifeScene['next'] = async (evd, type, number) => {
    const event = await this.arrival(evd);
    const failed = 'status' in event && event.status !== 0;
    const isOther =
      event.type === 'connection' &&
      (number === undefined ? !EXPECTED.has(event.number) : event.number !== number);
    if (event.type === type && !failed && !isOther) return event;
    this.outcome.events.push(textOf(event));
    throw new Interrupted(event.type);
  };
}

export type Side = ReturnType<typeof sideOf>;

function sideOf(ia: Ia) {
  const pz = ia.createPz();
  const evd = ia.createEvd({ qlen: 64 });
  const srq = ia.createSrq({ pz, maxRecvDtos: 16 });
  const evds = { recvEvd: evd, requestEvd: evd, connectEvd: evd };
  const ep = ia.createEndpoint({ pz, ...evds, srq });
  const lmr = ia.allocate(4096, { pz, privileges: MemPrivileges.ALL });
  return { ia, pz, evd, srq, ep, lmr };
}

function remoteOf({ lmr }: Side): RemoteAddress {
  return new RemoteSegment({ address: lmr.address, rmrContext: lmr.rmrContext ?? 0 });
}
