import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readSysfsCounters } from '../../../providers/verbs/system/sysfs-counters.js';

describe('counters of a verbs port', () => {
  let sysfs: string;

  function write(path: string, text: string): void {
    const file = join(sysfs, 'class/infiniband/rxe0/ports', path);
    mkdirSync(join(file, '..'), { recursive: true });
    writeFileSync(file, text);
  }

  beforeEach(() => {
    sysfs = mkdtempSync(join(tmpdir(), 'dapl-sysfs-'));
  });

  afterEach(() => rmSync(sysfs, { recursive: true }));

  it('are those of both directories of the port, by their names', () => {
    write('1/counters/port_xmit_packets', '12\n');
    write('1/hw_counters/sent_pkts', '18446744073709551615\n');
    write('2/hw_counters/sent_pkts', '1\n');
    assert.deepEqual(readSysfsCounters('rxe0', 1, sysfs), {
      port_xmit_packets: 12,
      sent_pkts: 2 ** 64,
    });
  });

  it('are without what is none, or not counted', () => {
    write('1/hw_counters/lifespan', '12\n');
    write('1/counters/port_rcv_data', 'N/A (no PMA)\n');
    write('1/counters/VL15_dropped', '');
    mkdirSync(join(sysfs, 'class/infiniband/rxe0/ports/1/counters/directory'));
    assert.deepEqual(readSysfsCounters('rxe0', 1, sysfs), {});
  });

  it('are none of a device that sysfs does not know', () => {
    assert.deepEqual(readSysfsCounters('mlx5_0', 1, sysfs), {});
  });
});
