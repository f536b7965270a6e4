/** Deliberate bugs under the DAT API: see plants.ts. */
import type { CompletionQueue } from '../../core/spi/index.js';
import type { MockNode } from '../../providers/mock/index.js';
import { flipBits, repeatCompletion } from './plants.js';

/** Puts a bug into an HCA before anything has been made of it. */
export type DatPlant = (node: MockNode) => void;

export const DAT_PLANTS: Readonly<Record<string, DatPlant>> = {
  'lost-completion': (node) => everyQueue(node, (cq) => repeatCompletion(cq, 60, 0)),
  'flipped-bit': (node) => flipBits(node.port),
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
