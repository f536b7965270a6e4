/** Deliberate bugs under the DAT API: see plants.ts. */
import type { CompletionQueue, SharedReceiveQueue } from '../../core/spi/index.js';
import type { MockNode } from '../../providers/mock/index.js';
import { SoftSharedReceiveQueue } from '../../providers/hca/srq/shared-receive-queue.js';
import { flipBits, giveTwice, repeatCompletion } from './plants.js';

/** Puts a bug into an HCA before anything has been made of it. */
export type DatPlant = (node: MockNode) => void;

export const DAT_PLANTS: Readonly<Record<string, DatPlant>> = {
  'lost-completion': (node) => everyQueue(node, (cq) => repeatCompletion(cq, 60, 0)),
  'flipped-bit': (node) => flipBits(node.port),
  /** A window is said to be invalidated, and goes on to open memory. */
  'live-window': (node) => {
    const { windows } = node.device.hca.memory;
    windows.invalidate = (_binder, rkey) => windows.find(rkey) !== undefined;
  },
  /** A slot of a shared receive queue is given to two messages. */
  'slot-twice': (node) =>
    everyShared(node, (srq) => {
      if (srq instanceof SoftSharedReceiveQueue) giveTwice(srq, 10);
    }),
};

function everyQueue(node: MockNode, spoil: (cq: CompletionQueue) => void): void {
  const { device } = node;
  const create = device.createCompletionQueue.bind(device);
  device.createCompletionQueue = (init) => {
    const cq = create(init);
    spoil(cq);
    return cq;
  };
}

function everyShared(node: MockNode, spoil: (srq: SharedReceiveQueue) => void): void {
  const { device } = node;
  const create = device.createSharedReceiveQueue.bind(device);
  device.createSharedReceiveQueue = (init) => {
    const srq = create(init);
    spoil(srq);
    return srq;
  };
}
