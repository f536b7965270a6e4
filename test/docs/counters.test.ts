// docs/softroce.md: no counter is missing, and those that it names exist.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { HcaCounters } from '../../providers/hca/common/counters.js';
import { SOCKET_PORT_COUNTERS } from '../../providers/softroce/port/port-options.js';

describe('docs/softroce.md', () => {
  it('names every counter of the device and its port', () => {
    const text = readFileSync(join(import.meta.dirname, '../../../docs/softroce.md'), 'utf8');
    const [, section = ''] = text.split('\n## Counters\n');
    const rows = section.split('\n').filter((line) => line.startsWith('| `'));
    const named = rows.flatMap((row) => [...row.split('|')[1]!.matchAll(/`(\w+)`/g)]);
    const counted = [...Object.keys(new HcaCounters().read()), ...SOCKET_PORT_COUNTERS];
    assert.deepEqual(named.map(([, name]) => name).sort(), counted.sort());
  });
});
