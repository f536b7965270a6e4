import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { iserTargetCommand } from '../../../plugins/cli/commands/iser-target.js';
import { openDisk } from '../../../samples/ulp/iser/index.js';
import { longIt } from '../../support/lane.js';
import { loopback } from '../../support/loopback.js';
import { patience } from '../../support/patience.js';

const main = fileURLToPath(import.meta.resolve('../../../plugins/cli/main.js'));
const ADDRESS = loopback(97, 1);
const TARGET = 'iqn.2026-01.org.example:cli';
const START_MS = 20_000;

describe('dapl iser-target', () => {
  let folder: string;
  let image: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'dapl-iser-'));
    image = join(folder, 'disk.img');
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const REFUSALS: readonly [string, readonly string[], RegExp][] = [
    ['no disk', ['--tcp', ADDRESS], /no disk: give --lun FILE, or --memory BYTES/],
    ['no portal', ['--memory', '1M'], /no portal: give --listen ADDRESS/],
    [
      'a file that is not there',
      ['--lun', 'no.img', '--tcp', ADDRESS],
      /no.img does not exist; --size/,
    ],
    ['no address', ['--memory', '1M', '--tcp', 'somewhere'], /--tcp somewhere: give an IP address/],
    ['no port', ['--memory', '1M', '--tcp', `${ADDRESS}:70000`], /port from 1 to 65535/],
    ['no size', ['--memory', 'much', '--tcp', ADDRESS], /much is no size/],
    ['an address of others', ['--memory', '1M', '--tcp', '192.0.2.1'], /--tcp 192.0.2.1: /],
    [
      'an address of others, iSER',
      ['--memory', '1M', '--listen', '192.0.2.1'],
      /--listen 192.0.2.1: /,
    ],
    ['no name', ['--memory', '1M', '--tcp', ADDRESS, '--name', 'disk'], /name is "disk"/],
    ['a short secret', ['--memory', '1M', '--tcp', ADDRESS, '--chap', 'a:short'], /has 5 bytes/],
    ['no secret', ['--memory', '1M', '--tcp', ADDRESS, '--chap', 'someone'], /name:secret/],
    [
      'mutual CHAP alone',
      ['--memory', '1M', '--tcp', ADDRESS, '--mutual-chap', 'disk:a long secret'],
      /needs an initiator that proves itself/,
    ],
    [
      'more serial numbers than disks',
      ['--memory', '1M', '--tcp', ADDRESS, '--serial', 'a', '--serial', 'b'],
      /--serial is given 2 times, for 1 disks/,
    ],
    [
      'a serial number that is too long',
      ['--memory', '1M', '--tcp', ADDRESS, '--serial', 'x'.repeat(37)],
      /serial is "x{37}", must be 1 to 36 characters/,
    ],
    ['no time', ['--memory', '1M', '--tcp', ADDRESS, '--drain', '-1'], /--drain is -1/],
  ];
  for (const [what, args, message] of REFUSALS) {
    it(`refuses ${what} in one sentence`, async () => {
      // A command made by itself, as main.ts does: a process for each row takes a second.
      await assert.rejects(iserTargetCommand().parseAsync(args, { from: 'user' }), (error) => {
        assert.ok(error instanceof Error);
        assert.match(error.message, message);
        assert.equal(error.message.trim().split('\n').length, 1, error.message);
        return true;
      });
    });
  }

  it('prints the sentence, ends with 1, and makes no file', () => {
    const args = ['iser-target', '--lun', 'no.img', '--tcp', ADDRESS];
    const { status, stderr } = spawnSync(process.execPath, [main, ...args], {
      encoding: 'utf8',
      cwd: folder,
    });
    assert.equal(status, 1, stderr);
    assert.match(stderr, /^dapl: no.img does not exist; --size.*\n$/);
    assert.ok(!existsSync(join(folder, 'no.img')));
  });

  it('serves an image, and leaves in good order when it is told to', async () => {
    const args = ['--lun', image, '--size', '4M', '--name', TARGET, '--drain', '5'];
    const portals = ['--tcp', `${ADDRESS}:3261`, '--listen', ADDRESS];
    const serving = spawn(process.execPath, [main, 'iser-target', ...args, ...portals]);
    const ended = once(serving, 'exit');
    try {
      const said = await untilServing(serving);
      assert.match(said, new RegExp(`iSER portal ${ADDRESS}:3260`));
      assert.match(said, /LUN 0: 4 MiB in blocks of 512/);
      const how = { address: ADDRESS, port: 3261, transport: 'tcp', target: TARGET } as const;
      const disk = await openDisk(how);
      await disk.write(8n, new Uint8Array(512).fill(0x77));
      await disk.close();
    } finally {
      serving.kill('SIGTERM');
    }
    assert.deepEqual(await ended, [0, null]);
    assert.equal(statSync(image).size, 4 << 20);
    assert.ok(
      readFileSync(image)
        .subarray(4096, 4608)
        .every((byte) => byte === 0x77),
    );
  });

  longIt('gives two disks two identities and two targets two names, and keeps them', async () => {
    const other = join(folder, 'other.img');
    const seen: string[][] = [];
    for (const args of [
      ['--lun', image, '--size', '1M', '--tcp', `${ADDRESS}:3263`],
      ['--lun', other, '--size', '1M', '--tcp', `${ADDRESS}:3264`],
      ['--lun', image, '--tcp', `${ADDRESS}:3265`],
      ['--lun', image, '--serial', 'mine', '--tcp', `${ADDRESS}:3266`],
    ]) {
      const serving = spawn(process.execPath, [main, 'iser-target', ...args]);
      const ended = once(serving, 'exit');
      const said = await untilServing(serving);
      serving.kill('SIGTERM');
      await ended;
      seen.push([
        /serial number (\S+)/.exec(said)?.[1] ?? '',
        /serving (\S+)/.exec(said)?.[1] ?? '',
      ]);
    }
    const [one, second, again, given] = seen as [string[], string[], string[], string[]];
    assert.deepEqual(again, one);
    assert.notEqual(second[0], one[0]);
    assert.notEqual(second[1], one[1]);
    assert.match(one[1]!, /^iqn\.2026-01\.io\.dapl:[a-z0-9.-]+:[0-9a-f]{8}$/);
    assert.equal(given[0], 'mine');
  });
});

/** What it prints until it serves. */
async function untilServing(child: ChildProcess): Promise<string> {
  let said = '';
  const waiting = new Promise<string>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('data', (chunk: Buffer) => {
        said += chunk.toString();
        if (said.includes('serving ')) resolve(said);
      });
    }
    child.once('exit', () => reject(new Error(said)));
    setTimeout(() => reject(new Error(`does not serve: ${said}`)), patience(START_MS)).unref();
  });
  return waiting;
}
