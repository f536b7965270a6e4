/** The order in which an interface adapter ends what is left of it (design: teardown). */
import type { TeardownStep } from '../../di/index.js';
import type { Cno, Evd, Upcall } from '../../evd/index.js';
import type { DeviceRelease } from '../common/adapter-services.js';
import { Ep } from '../endpoint/ep.js';
import { UdEp } from '../datagram/endpoint.js';
import { Lmr } from '../memory/lmr.js';
import { Pz } from '../memory/pz.js';
import { Rmr } from '../window/rmr.js';
import { ServicePoint } from '../connect/service-point.js';
import { Srq } from '../srq/srq.js';
import { XrcDomain } from '../xrc/domain.js';
import type { IaChild } from '../common/adapter-state.js';

export interface CloseScope {
  readonly children: ReadonlySet<IaChild>;
  /** Those that are left when it is their turn. */
  readonly evds: () => readonly Evd[];
  readonly cnos: () => readonly Cno[];
  /** The upcalls that the adapter is closed from, which must not be waited for; may grow. */
  readonly callers: ReadonlySet<Upcall>;
  /** Unregisters the agents for management datagrams. */
  readonly endAgents: () => Promise<void>;
  readonly release: DeviceRelease;
}

/**
 * Connections first, while everything that tells the peer still works; the modules, if this is the
 * last adapter of the device, with its MAD agents between CM and MAD; then queue pairs, windows,
 * shared receive queues, completion queues, regions, zones; the device.
 */
export function closeSteps(scope: CloseScope): TeardownStep[] {
  const { children, evds, cnos, callers, release, endAgents } = scope;
  const of = <T extends IaChild>(type: abstract new (...args: never[]) => T): T[] =>
    [...children].filter((child): child is T => child instanceof type);
  const step = (name: string, run: () => void | Promise<void>): TeardownStep => ({ name, run });
  return [
    step('service points', () => each(of(ServicePoint), (point) => point.shutdown('ia.close'))),
    step('datagram services', () => each(of(UdEp), (ep) => ep.shutdown('ia.close'))),
    step('connections', () => {
      for (const srq of of(Srq)) srq.shutdown();
      each(of(Ep), (ep) => ep.shutdown());
    }),
    ...release.modules.filter(isCm),
    step('MAD agents', endAgents),
    ...release.modules.filter((module) => !isCm(module)),
    step('queue pairs', () => each([...of(Ep), ...of(UdEp)], (ep) => ep.destroy('ia.close'))),
    step('memory windows', () => each(of(Rmr), (rmr) => rmr.destroy('ia.close'))),
    step('shared receive queues', () => each(of(Srq), (srq) => srq.destroy('ia.close'))),
    step('XRC domains', () => each(of(XrcDomain), (domain) => domain.destroy('ia.close'))),
    step('event dispatchers', () => freeAll(evds(), callers)),
    step('notification objects', () => each(cnos(), (cno) => cno.close())),
    step('memory regions', () => each(of(Lmr), (lmr) => lmr.destroy('ia.close'))),
    step('protection zones', () => each(of(Pz), (pz) => pz.destroy('ia.close'))),
    ...release.device,
  ];
}

function isCm({ name }: TeardownStep): boolean {
  return name === 'CM';
}

/** One that fails keeps no other from ending. */
function each<T>(items: readonly T[], end: (item: T) => void): void {
  const failures: unknown[] = [];
  for (const item of items) {
    try {
      end(item);
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length === 1) throw failures[0];
  if (failures.length > 1) throw new AggregateError(failures, `${failures.length} objects failed`);
}

async function freeAll(evds: readonly Evd[], callers: ReadonlySet<Upcall>): Promise<void> {
  const results = await Promise.allSettled(evds.map(async (evd) => evd.end(callers)));
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}
