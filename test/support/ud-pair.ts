/** Two adapters of a mock fabric, each with an endpoint for datagrams; time moves by hand. */
import {
  DatDto,
  DatDtoStatus,
  type DatEvent,
  type Evd,
  type Ia,
  type Lmr,
  openIa,
  type Pz,
  type UdEndpointOptions,
  type UdEp,
} from '../../core/index.js';
import { nameOf } from '../../core/spi/index.js';
import type { HcaDevice } from '../../providers/hca/index.js';
import { Fabric, mock } from '../../providers/mock/index.js';

export const CLIENT = '192.0.2.1';
export const SERVER = '192.0.2.2';
export const CONN_QUAL = 7472;

export interface UdSide {
  readonly ia: Ia;
  readonly pz: Pz;
  readonly evd: Evd;
  readonly ep: UdEp;
  readonly lmr: Lmr;
}

export interface UdPair {
  readonly fabric: Fabric;
  readonly client: UdSide;
  readonly server: UdSide;
  close(): Promise<void>;
}

export async function udSide(
  fabric: Fabric,
  address: string,
  attributes: UdEndpointOptions['attributes'] = {},
): Promise<UdSide> {
  const ia = await openIa(mock({ fabric, address }));
  const pz = ia.createPz();
  const evd = ia.createEvd({ qlen: 256 });
  const ep = ia.createUdEndpoint({ pz, recvEvd: evd, requestEvd: evd, attributes });
  const lmr = ia.allocate(1 << 16, { pz });
  return { ia, pz, evd, ep, lmr };
}

export async function udPair(attributes: UdEndpointOptions['attributes'] = {}): Promise<UdPair> {
  const fabric = new Fabric({ seed: 1, autoRun: false });
  const client = await udSide(fabric, CLIENT, attributes);
  const server = await udSide(fabric, SERVER, attributes);
  return {
    fabric,
    client,
    server,
    close: () => settled(fabric, Promise.all([client.ia.close(), server.ia.close()])),
  };
}

/** Lets time pass until a promise has settled. */
export async function settled<T>(fabric: Fabric, promise: Promise<T>): Promise<void> {
  let done = false;
  const end = (): void => void (done = true);
  promise.then(end, end);
  await fabric.run({ until: () => done });
  await promise;
}

/** What waits, as texts: `RECV_UD 7 SUCCESS`. */
export function datagramsOf({ evd }: { readonly evd: Evd }): string[] {
  const seen: string[] = [];
  for (let event = evd.dequeue(); event !== undefined; event = evd.dequeue()) {
    seen.push(textOfDatagram(event));
  }
  return seen;
}

export function textOfDatagram(event: DatEvent): string {
  if (event.type !== 'datagram') return event.type;
  const { operation, cookie, status } = event;
  return `${nameOf(DatDto, operation)} ${cookie} ${nameOf(DatDtoStatus, status)}`;
}

/** The software HCA of a node. */
export function hcaOf(fabric: Fabric, address: string): HcaDevice['hca'] {
  const node = fabric.node(address);
  if (node === undefined) throw new Error(`no node at ${address}`);
  return node.device.hca;
}
