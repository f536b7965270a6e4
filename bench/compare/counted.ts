/** What our devices have counted in each row: whether its time went where it should. */
import { layOut, nameOf, type Style } from './report.js';
import { median } from './statistics.js';
import type { Summary } from './summary.js';

/** What tells how a connection fared; all of them are in the file of `--json`. */
const COUNTERS = [
  'sentPackets',
  'sentTrains',
  'acksSent',
  'rnrNaksSent',
  'naksSent',
  'timeouts',
  'retries',
  'earlyRepeats',
  'duplicateRequests',
  'droppedDatagrams',
] as const;

/** Of both ends together, the median of the rounds; rows without a device of ours are left out. */
export function countersTable(summaries: readonly Summary[], style: Style): string {
  const lines = summaries.flatMap(({ label, ours, measurements }) => {
    const counted = measurements.flatMap(({ counters }) =>
      counters === undefined ? [] : [counters],
    );
    if (counted.length === 0) return [];
    const medians = COUNTERS.map((name) => median(counted.map((each) => each[name] ?? 0)));
    return [[label, nameOf(ours.contender), ...medians.map((count) => count.toFixed(0))]];
  });
  return layOut(['row', 'who', ...COUNTERS], lines, style);
}
