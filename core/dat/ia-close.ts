/** The order in which an interface adapter ends what is left of it (design: teardown). */
import type { TeardownStep } from '../di/index.js';
import type { Cno, Evd, Upcall } from '../evd/index.js';
import type { DeviceRelease } from './context.js';
import { Ep } from './ep.js';
import { Lmr } from './lmr.js';
import { Psp } from './psp.js';
import { Pz } from './pz.js';

/** Objects that an interface adapter counts; event dispatchers are apart. */
export type Child = Pz | Lmr | Ep | Psp;

export interface CloseScope {
  readonly children: ReadonlySet<Child>;
  /** Those that are left when it is their turn. */
  readonly evds: () => readonly Evd[];
  readonly cnos: () => readonly Cno[];
  /** The upcalls that the adapter is closed from, which must not be waited for; may grow. */
  readonly callers: ReadonlySet<Upcall>;
  readonly release: DeviceRelease;
}

/**
 * Connections first, while everything that tells the peer still works; the modules, if this is the
 * last adapter of the device; then queue pairs, completion queues, regions, zones; the device.
 */
export function closeSteps({ children, evds, cnos, callers, release }: CloseScope): TeardownStep[] {
  const of = <T extends Child>(type: abstract new (...args: never[]) => T): T[] =>
    [...children].filter((child): child is T => child instanceof type);
  const step = (name: string, run: () => void | Promise<void>): TeardownStep => ({ name, run });
  return [
    step('service points', () => each(of(Psp), (psp) => psp.shutdown('ia.close'))),
    step('connections', () => each(of(Ep), (ep) => ep.shutdown())),
    ...release.modules,
    step('queue pairs', () => each(of(Ep), (ep) => ep.destroy('ia.close'))),
    step('event dispatchers', () => freeAll(evds(), callers)),
    step('notification objects', () => each(cnos(), (cno) => cno.close())),
    step('memory regions', () => each(of(Lmr), (lmr) => lmr.destroy('ia.close'))),
    step('protection zones', () => each(of(Pz), (pz) => pz.destroy('ia.close'))),
    ...release.device,
  ];
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
