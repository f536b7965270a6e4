/** Shared receive queues: core/dat/srq/attributes.ts. */
import { SRQ_STATES, SrqState } from '../../core/dat/srq/attributes.js';
import { code, table } from './markdown.js';

export function sharedQueueStates(): string[] {
  const rows = Object.entries(SRQ_STATES).map(([name, { subtype, usable }]) => [
    String(SrqState[name as keyof typeof SrqState]),
    code(name),
    usable ? 'yes' : '-',
    code(subtype),
  ]);
  return [
    '## Shared receive queue',
    table(['Number', 'State', 'postRecv, resize, setLowWatermark, new endpoints', 'Subtype'], rows),
  ];
}
