// The initiator's program: list, read, write and verify disks of a target in this process.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Ia, openIa } from '../../../core/index.js';
import { iserInitiatorCommand } from '../../../plugins/cli/commands/iser-initiator.js';
import { softroce } from '../../../providers/softroce/index.js';
import { IscsiTarget, MemoryBackend } from '../../../samples/ulp/iser/index.js';
import { longIt } from '../../support/lane.js';
import { loopback } from '../../support/loopback.js';

const main = fileURLToPath(import.meta.resolve('../../../plugins/cli/main.js'));
const NAME = 'iqn.2026-01.org.example:used';
const DISK_BYTES = 4 << 20;
const CHAP = { name: 'someone', secret: 'one long secret' };

/** Arguments, and what is said of them. */
type Refusal = readonly [args: readonly string[], message: RegExp];

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

describe('dapl iser-initiator', () => {
  let folder: string;
  let ia: Ia;
  let disk: MemoryBackend;
  let target: IscsiTarget;
  /** By transport: the portal. */
  let portals: Readonly<Record<'iser' | 'tcp', string>>;

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'dapl-initiator-'));
    const address = loopback(97, 2);
    ia = await openIa(softroce({ addresses: [address] }));
    disk = new MemoryBackend({ sizeBytes: DISK_BYTES });
    target = new IscsiTarget({ name: NAME, luns: new Map([[0, disk]]), chap: CHAP });
    target.listenIser(ia, 3260);
    const tcp = await target.listenTcp(address, 0);
    portals = { iser: `${address}:3260`, tcp: tcp.name };
  });
  afterEach(async () => {
    await target.close(0);
    await ia.close();
    Reflect.deleteProperty(process.env, 'DAPL_CHAP');
    rmSync(folder, { recursive: true });
  });

  const run = (...args: string[]): Promise<Ended> =>
    new Promise((resolve) => {
      const env = { ...process.env, DAPL_CHAP: `${CHAP.name}:${CHAP.secret}` };
      execFile(process.execPath, [main, 'iser-initiator', ...args], { env }, (error, ...said) => {
        const [stdout, stderr] = said;
        resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr });
      });
    });
  const good = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await run(...args);
    assert.equal(code, 0, stderr);
    return stdout;
  };

  for (const transport of ['iser', 'tcp'] as const) {
    const test = transport === 'iser' ? it : longIt;
    test(`lists, writes, verifies and reads over ${transport}`, async () => {
      const how = ['--transport', transport, '--local', loopback(97, 3)];
      const portal = portals[transport];
      const listed = await good('list', ...how, portal);
      assert.match(listed, new RegExp(`^${NAME}`));
      assert.match(listed, /LUN 0: .*8192 blocks of 512 bytes \(4 MiB\), thin/);

      const file = join(folder, 'bytes');
      const bytes = Buffer.alloc(3 * 512, 'some bytes of a disk');
      writeFileSync(file, bytes);
      await good('write', ...how, '--lba', '100', portal, NAME, file);
      const there = new Uint8Array(bytes.length);
      await disk.read(100n, there);
      assert.deepEqual(Buffer.from(there), bytes);

      const same = ['verify', ...how, '--lba', '100', portal, NAME, file];
      assert.match(await good(...same), /^3 blocks from LBA 100 match/);
      await disk.write(101n, new Uint8Array(512));
      const differing = await run(...same);
      assert.equal(differing.code, 1);
      assert.match(differing.stderr, /LBA 101 differs from/);

      const copy = join(folder, 'copy');
      const part = ['--lba', '100', '--blocks', '3'];
      await good('read', ...how, ...part, portal, NAME, copy);
      const expected = Buffer.from(bytes);
      expected.fill(0, 512, 1024);
      assert.deepEqual(readFileSync(copy), expected);
    });
  }

  it('says in one sentence what cannot be done, and ends with 1', async () => {
    const how = ['--transport', 'tcp'];
    const REFUSALS: readonly [Refusal, ...Refusal[]] = [
      [['read', ...how, portals.tcp, 'iqn.2026-01.org.example:other', 'x'], /NOT_FOUND|not found/i],
      [['read', ...how, '--lun', '5', portals.tcp, NAME, 'x'], /logical unit/i],
      [['write', ...how, portals.tcp, NAME, join(folder, 'none')], /none/],
      [['verify', ...how, '--chap', 'someone:another secret', portals.tcp, NAME, 'x'], /AUTH/i],
    ];
    const [[first, said]] = REFUSALS;
    const { code, stderr } = await run(...first);
    assert.equal(code, 1, stderr);
    assert.match(stderr, said);
    assert.equal(stderr.trim().split('\n').length, 1, stderr);
    process.env['DAPL_CHAP'] = `${CHAP.name}:${CHAP.secret}`;
    for (const [args, message] of REFUSALS) {
      // As main.ts does, which prints the message: a process for each row takes a second.
      const refused = iserInitiatorCommand().parseAsync(args, { from: 'user' });
      await assert.rejects(refused, (error: Error) => {
        assert.match(error.message, message);
        assert.equal(error.message.trim().split('\n').length, 1, error.message);
        return true;
      });
    }
  });
});
