// Two programs that serve a disk each, under one name: iscsi-inq of libiscsi takes them for two.
import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { leaveOut } from '../support/left-out.js';
import { loopback } from '../support/loopback.js';

const PROGRAM = 'iscsi-inq';
const main = fileURLToPath(import.meta.resolve('../../plugins/cli/main.js'));
const ADDRESS = loopback(51, 1);
const NAME = 'iqn.2026-01.org.example:one-name';
const LOGICAL_UNIT = 'Association:(0) LOGICAL_UNIT';

interface Identity {
  /** VPD page 80h. */
  readonly serial: string;
  /** Designators of page 83h that multipath goes by, each as it is printed. */
  readonly unit: readonly string[];
}

describe('two disks of two targets, to iscsi-inq', () => {
  const serving: ChildProcess[] = [];
  let folder: string;
  before(function () {
    if (spawnSync(PROGRAM, ['--usage'], { stdio: 'ignore' }).error === undefined) return;
    leaveOut(this, `${PROGRAM} is not installed`, 'apt-get install libiscsi-bin');
  });
  beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'dapl-inq-'))));
  afterEach(async () => {
    for (const child of serving.splice(0)) {
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    }
    rmSync(folder, { recursive: true });
  });

  async function serve(image: string, port: number): Promise<string> {
    const args = ['--lun', join(folder, image), '--size', '1M', '--name', NAME];
    const portal = `${ADDRESS}:${port}`;
    const child = spawn(process.execPath, [main, 'iser-target', ...args, '--tcp', portal]);
    serving.push(child);
    let said = '';
    await new Promise<void>((resolve, reject) => {
      for (const stream of [child.stdout, child.stderr]) {
        stream.on('data', (chunk: Buffer) => {
          said += chunk.toString();
          if (said.includes('serving ')) resolve();
        });
      }
      child.once('exit', () => reject(new Error(said)));
    });
    return `iscsi://${portal}/${NAME}/0`;
  }

  async function page(url: string, code: number): Promise<string> {
    const args = ['-e', '1', '-c', String(code), url];
    // An NAA designator is printed as it is.
    return (await promisify(execFile)(PROGRAM, args, { encoding: 'latin1' })).stdout;
  }

  async function identityOf(url: string): Promise<Identity> {
    const [, serial = ''] = /Unit Serial Number:\[(.*)\]/.exec(await page(url, 0x80)) ?? [];
    const designators = (await page(url, 0x83)).split(/DEVICE DESIGNATOR #\d+\n/);
    return { serial, unit: designators.filter((each) => each.includes(LOGICAL_UNIT)) };
  }

  it('have serial numbers and designators of their own, which one disk keeps', async () => {
    const [one, other] = [await serve('a.img', 3260), await serve('b.img', 3261)];
    const first = await identityOf(one);
    const second = await identityOf(other);
    assert.match(first.serial, /^[0-9a-f]{32}$/);
    assert.notEqual(second.serial, first.serial);
    const types = first.unit.map((each) => /Designator Type:(.*)/.exec(each)?.[1]);
    assert.deepEqual(types, ['(1) T10_VENDORT_ID', '(3) NAA']);
    for (const [at, designator] of first.unit.entries()) {
      assert.notEqual(second.unit[at], designator);
    }
    // The same image at a third portal, beside the first: two paths to one disk.
    assert.deepEqual(await identityOf(await serve('a.img', 3262)), first);
  });
});
