/** The attributes of a queue pair, as they have been given: kept in words of its memory. */
import type { QueuePairAttributes } from '../../../core/spi/index.js';
import { ATTRIBUTES, type QueuePairMemory } from './queue-pair-memory.js';

const NAMES = Object.keys(ATTRIBUTES) as (keyof typeof ATTRIBUTES)[];

/** Keeps those that are given, each with its bit among those that have been. */
export function keepAttributes(memory: QueuePairMemory, attributes: QueuePairAttributes): void {
  for (const [i, name] of NAMES.entries()) {
    if (attributes[name] === undefined) continue;
    memory.attributesGiven |= 1 << i;
    Object.assign(memory, { [name]: attributes[name] });
  }
  memory.addressVector = attributes.addressVector ?? memory.addressVector;
}

export function keptAttributes(memory: QueuePairMemory): QueuePairAttributes {
  const given = NAMES.filter((_, i) => (memory.attributesGiven & (1 << i)) !== 0);
  const { addressVector } = memory;
  return {
    ...Object.fromEntries(given.map((name) => [name, memory[name]])),
    ...(addressVector && { addressVector }),
  };
}
