/** What the two sides have counted, in the unit of the cell. */
import type { Cell, Measurement } from './cells.js';
import type { Count } from './end.js';

/** From here on a message counts for its bytes. */
const LARGE = 4096;

export function measurementOf(cell: Cell, count: Count, cpuSeconds: number): Measurement {
  const bytes = count.messages * cell.bytes;
  if (count.p50 !== undefined) return { value: count.p50, p99: count.p99 ?? 0, bytes, cpuSeconds };
  const amount = cell.bytes < LARGE ? count.counted / 1e6 : (count.counted * cell.bytes) / 1e9;
  return { value: amount / count.seconds, bytes, cpuSeconds };
}
