/** tshark opens what a capture wrote, of every provider, and finds nothing wrong in it. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PAIRS, onSoftroce, talk } from '../support/captured-pairs.js';

const CHECKS = ['-o', 'udp.check_checksum:TRUE', '-o', 'ip.check_checksum:TRUE'];
const BAD = 'ip.checksum.status == 0 or udp.checksum.status == 0 or _ws.malformed';

describe('tshark reads the files of plugins/pcap', () => {
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'dapl-pcap-'));
  });
  after(() => rmSync(folder, { recursive: true }));

  const captures = [
    ...Object.entries(PAIRS).map(([name, open]) => [name, open, 'RC Send First'] as const),
    ['softroce, long packets', (file: string) => onSoftroce(file, {}), 'RC Send Only'] as const,
  ];
  for (const [name, open, data] of captures) {
    it(`a capture of ${name}`, async () => {
      const file = join(folder, 'out.pcapng');
      await talk(...(await open(file)));
      const tshark = (...args: string[]): string =>
        spawnSync('tshark', ['-r', file, ...CHECKS, ...args], { encoding: 'utf8' }).stdout;
      const info = tshark();
      for (const text of ['ConnectRequest', 'ConnectReply', 'ReadyToUse', data]) {
        assert.ok(info.includes(text), `${text} in\n${info}`);
      }
      assert.equal(tshark('-Y', BAD), '');
    });
  }
});
