/**
 * Deliberate bugs: each must be caught by a checker, or the checker is worth nothing. They go in
 * where the real ones would sit: the port, the completion queue, the notification.
 */
import { type CompletionQueue, PLACE } from '../../core/spi/index.js';
import { SoftCompletionQueue } from '../../providers/hca/completions/completion-queue.js';
import type { WindowTable } from '../../providers/hca/memory/memory-window.js';
import type { SoftSharedReceiveQueue } from '../../providers/hca/srq/shared-receive-queue.js';
import type { MemoryPort } from '../../providers/mock/index.js';
import { FLOW_PLANTS } from './flow-plants.js';
import type { Simulation } from './simulation.js';

export type Plant = (simulation: Simulation) => void;

export const PLANTS: Readonly<Record<string, Plant>> = {
  ...FLOW_PLANTS,
  /** A packet dealt with long ago is placed once more. */
  'late-placement': (simulation) => {
    for (const { node } of simulation.nodes) replayPlacements(node.port);
  },
  /** A completion comes twice. */
  'double-completion': (simulation) => everyCompletion(simulation, 200, 2),
  /** A completion is lost. */
  'lost-completion': (simulation) => everyCompletion(simulation, 200, 0),
  /** A byte between two regions changes. */
  'guard-byte': (simulation) => {
    simulation.after(5000, () => {
      const endpoint = simulation.connections[0]?.a;
      if (!endpoint) return;
      const at = endpoint.layout.target - 1;
      endpoint.model.bytes[at] = (endpoint.model.bytes[at] ?? 0) ^ 1;
    });
  },
  /** A byte of a received packet changes after its ICRC has been checked. */
  'flipped-bit': (simulation) => {
    for (const { node } of simulation.nodes) flipBits(node.port);
  },
  /** A completion queue does not tell, though it is armed. */
  'lost-notification': (simulation) => {
    loseNotification(simulation.nodes[0]?.cq, 50);
  },
  /** A window is said to be invalidated, and goes on to open memory. */
  'live-window': (simulation) => {
    for (const { node } of simulation.nodes) {
      const { windows } = node.device.hca.memory;
      windows.invalidate = (_binder, rkey) => windows.find(rkey) !== undefined;
    }
  },
  /** A bind is done again when requests before it are sent again. */
  'bind-repeated': (simulation) => {
    for (const { node } of simulation.nodes) repeatBinds(node.device.hca.memory.windows);
  },
  /** A slot of a shared receive queue is given to two messages. */
  'slot-twice': (simulation) => {
    for (const { shared } of simulation.nodes) giveTwice(shared.srq, 40);
  },
  /** What a lost message had taken is not put back. */
  'slot-lost': (simulation) => {
    for (const { shared, xrc } of simulation.nodes) {
      const queues = xrc?.receivers.map((receiver) => receiver.shared) ?? [];
      for (const { srq } of [shared, ...queues]) srq.putBack = () => undefined;
    }
  },
  /** The limit of a shared receive queue is told twice. */
  'limit-twice': (simulation) => {
    for (const { shared } of simulation.nodes) {
      const { srq } = shared;
      const deliver = srq.deliver.bind(srq);
      srq.deliver = (argument) => {
        deliver(argument);
        deliver(argument);
      };
    }
  },
  /** The limit of a shared receive queue is not told. */
  'limit-untold': (simulation) => {
    for (const { shared } of simulation.nodes) shared.srq.deliver = () => undefined;
  },
  /** A memory region is never given back. */
  'leaked-region': (simulation) => {
    const pd = simulation.nodes[0]?.pd;
    if (pd) pd.registerMemory(new Uint8Array(4096), 0, 0n);
  },
};

function replayPlacements(port: MemoryPort): void {
  const place = port.place.bind(port);
  const kept: { words: Uint32Array; bytes: Uint8Array }[] = [];
  let calls = 0;
  port.place = (count) => {
    place(count);
    const words = port.placements.slice(0, PLACE.WORDS);
    const source = words[PLACE.SOURCE] ?? 0;
    const length = words[PLACE.LENGTH] ?? 0;
    kept.push({ words, bytes: port.rxArena.slice(source, source + length) });
    if (++calls % 50 !== 0) return;
    const old = kept[Math.max(0, kept.length - 200)];
    if (!old) return;
    const { words: entry, bytes } = old;
    const saved = port.rxArena.slice(0, bytes.length);
    port.rxArena.set(bytes, 0);
    port.placements.set(entry);
    port.placements[PLACE.SOURCE] = 0;
    try {
      place(1);
    } catch (error) {
      // The region is gone by now: that is what protects its memory.
      if (!(error instanceof RangeError)) throw error;
    }
    port.rxArena.set(saved, 0);
  };
}

/** Changes a byte of every hundredth burst on its way into memory. */
export function flipBits(port: MemoryPort): void {
  const place = port.place.bind(port);
  let calls = 0;
  port.place = (count) => {
    const source = port.placements[PLACE.SOURCE] ?? 0;
    if (++calls % 100 === 0) port.rxArena[source] = (port.rxArena[source] ?? 0) ^ 0x10;
    place(count);
  };
}

function everyCompletion(simulation: Simulation, nth: number, times: number): void {
  for (const { cq } of simulation.nodes) repeatCompletion(cq, nth, times);
}

/** Every n-th completion comes so many times. */
export function repeatCompletion(
  cq: CompletionQueue | undefined,
  nth: number,
  times: number,
): void {
  if (!(cq instanceof SoftCompletionQueue)) return;
  const push = cq.push.bind(cq);
  let calls = 0;
  cq.push = (...completion) => {
    const repeat = ++calls % nth === 0 ? times : 1;
    let entry = -1;
    for (let i = 0; i < repeat; i++) entry = push(...completion);
    return entry;
  };
}

function repeatBinds(windows: WindowTable): void {
  const bind = windows.bind.bind(windows);
  let calls = 0;
  windows.bind = (binder, words, at) => {
    const done = bind(binder, words, at);
    return ++calls % 20 === 0 ? bind(binder, words, at) : done;
  };
}

export function giveTwice(srq: SoftSharedReceiveQueue, nth: number): void {
  const take = srq.take.bind(srq);
  let calls = 0;
  srq.take = () => {
    const slot = take();
    if (slot >= 0 && ++calls % nth === 0) srq.putBack(slot);
    return slot;
  };
}

/** The n-th notification does not come. */
function loseNotification(cq: CompletionQueue | undefined, nth: number): void {
  if (!(cq instanceof SoftCompletionQueue)) return;
  let calls = 0;
  const deliver = cq.deliver.bind(cq);
  cq.deliver = (argument) => {
    if (++calls !== nth) deliver(argument);
  };
}
