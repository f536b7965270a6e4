/**
 * What the future of an EVD world depends on, as text. Events are told apart by their place alone,
 * and upcalls by what they wait for: which of two upcalls is which makes no difference.
 */
import type { Evd } from '../../../../core/evd/index.js';
import type { EvdWorld } from './evd-world.js';
import type { Running } from './running.js';

/** What stands behind an EVD. */
interface Internals {
  readonly store: {
    readonly queue: { length: number; capacity: number; head: number; places: Uint32Array };
    readonly cursor: { scanned: number; next: number; scanning: boolean };
  };
  readonly upcalls: {
    readonly gate: {
      policy: string;
      limit: number;
      due: boolean;
      blocked: boolean;
      drains: { own: unknown; remaining: Set<unknown>; joint: boolean }[];
    };
  };
  readonly dispatcher: {
    scheduled: boolean;
    runScheduled: () => void;
    again: boolean;
    noticed: boolean;
    iterating: boolean;
    waiter: { threshold: number } | undefined;
    sink: unknown;
    cno: unknown;
  };
  readonly arm: { armed: number; failing: boolean };
}

export function internalsOf(evd: Evd): Internals {
  return (evd as unknown as { readonly record: Internals }).record;
}

/** The upcalls in progress, in an order that does not depend on when they started. */
export function orderUpcalls(world: EvdWorld): Running[] {
  const { running } = world;
  if (running.length < 2) return running;
  const marks = new Map(running.map((upcall) => [upcall, markOf(world, upcall)]));
  const orders = permutations(running).map((order) => {
    const own = order.map((upcall) => marks.get(upcall)).join();
    return { order, text: `${own};${relations(world, order)}` };
  });
  orders.sort((a, b) => (a.text < b.text ? -1 : a.text > b.text ? 1 : 0));
  return orders[0]?.order ?? running;
}

export function fingerprintOf(world: EvdWorld): string {
  const { store, upcalls, dispatcher, arm } = internalsOf(world.evd);
  const { gate } = upcalls;
  const { running, cq, host, freed } = world;
  const alive = freed ? [] : [cq.armed, arm.armed, ...events(world, store)];
  const flags = [
    freed,
    world.endings.isClosing,
    world.enabled,
    world.held,
    world.arrivedSinceKeep,
    world.armFailed,
    world.newerThanArm,
    gate.due,
    gate.blocked,
    dispatcher.scheduled,
    dispatcher.again,
    dispatcher.noticed,
    dispatcher.iterating,
    dispatcher.sink !== undefined,
    dispatcher.cno !== undefined,
    arm.failing,
    cq.notification,
  ];
  return [
    flags.map(Number).join(''),
    world.policy,
    gate.policy,
    gate.limit,
    world.stale,
    host.tasks.map((task) => (task === dispatcher.runScheduled ? 'p' : 'o')).join(''),
    dispatcher.waiter?.threshold ?? 0,
    ...alive,
    running.map((upcall) => markOf(world, upcall)),
    relations(world, running),
    world.takers.fingerprint(),
    world.cno?.fingerprint() ?? '',
  ].join('|');
}

function events(world: EvdWorld, { queue, cursor }: Internals['store']): unknown[] {
  const places = Array.from({ length: queue.length }, (_, i) => {
    return (queue.places[(queue.head + i) % queue.capacity] ?? 0) - cursor.next;
  });
  return [cursor.scanned - cursor.next, world.cq.ring.length, places.join()];
}

function markOf(world: EvdWorld, running: Running): string {
  return `${running.upcall.waits}${world.endings.hasClosed(running) ? 'c' : ''}`;
}

/** Who waits for whom, with upcalls by their place in `order`. */
function relations(world: EvdWorld, order: readonly Running[]): string {
  const { drains } = internalsOf(world.evd).upcalls.gate;
  const place = (token: unknown): number => order.findIndex(({ upcall }) => upcall === token);
  // What has ended is waited for no more, and those that wait for the same are as one.
  const of = (own: unknown, others: Iterable<unknown>): string => {
    const left = [...others].map(place).filter((at) => at >= 0);
    const waiting = place(own);
    return `${waiting < 0 ? '' : waiting}<${left.sort().join()}`;
  };
  const inGate = drains.map(({ own, remaining, joint }) => of(own, remaining) + (joint ? 'j' : ''));
  const inModel = world.endings.list
    .filter((ending) => !world.endings.isOver(ending))
    .map(({ own, waitsFor, joint }) => {
      const others = [...waitsFor].map(({ upcall }) => upcall);
      return of(own?.upcall, others) + (joint ? 'j' : '');
    });
  const unique = (list: readonly string[]): string => [...new Set(list)].sort().join(' ');
  return `${unique(inGate)};${unique(inModel)}`;
}

function permutations<T>(items: readonly T[]): T[][] {
  if (items.length < 2) return [[...items]];
  return items.flatMap((item, i) => {
    const rest = [...items.slice(0, i), ...items.slice(i + 1)];
    return permutations(rest).map((others) => [item, ...others]);
  });
}
