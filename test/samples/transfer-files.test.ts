import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFile, readdir, symlink, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { longIt } from '../support/lane.js';
import { TransferWorld } from './transfer-world.js';

const MIB = 2 ** 20;

describe('transfer: files arrive', () => {
  let world: TransferWorld;

  beforeEach(async () => {
    world = await TransferWorld.make(71);
  });
  afterEach(() => world.close());

  async function arrives(path: string, ...options: readonly string[]): Promise<void> {
    const { code, stdout, stderr } = await world.both(path, ...options).ended;
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
    const bytes = await readFile(path);
    const digest = createHash('sha256').update(bytes).digest('hex');
    assert.match(stdout, new RegExp(`SHA-256 ${digest} verified by the receiver`));
    assert.match(stdout, /^Sent .*\/s\.$/m);
    assert.match(stdout, /^Received .*\/s, SHA-256 verified\.$/m);
    assert.match(stdout, /^Process (\d+) on .* sends to process (?!\1 )\d+ on /m);
    assert.deepEqual(await readdir(world.out), [basename(path)]);
    assert.ok(bytes.equals(await readFile(join(world.out, basename(path)))));
  }

  longIt('carries a file of no bytes', async () => arrives(await world.file('empty', 0)));

  it('prints what the README has recorded', async () => {
    /** What stays the same from run to run. */
    const shape = (line: string): string =>
      line
        .replace(/\b[0-9a-f]{64}\b/, 'DIGEST')
        .replace(/\/\S+\/(?=random)/, 'DIRECTORY/')
        .replaceAll(/(?<![\w-])\d+(?:\.\d+)*/g, 'N');
    const readme = await readFile('README.md', 'utf8');
    const [, recorded = ''] = /```console\n(Making [^]*?)```/.exec(readme) ?? [];
    const [making = '', ...shown] = recorded.trimEnd().split('\n');
    assert.ok((await readFile('samples/transfer/demo.ts', 'utf8')).includes(`'${making}\\n'`));
    const { stdout } = await world.both(await world.file('random-256MiB', 3 * MIB)).ended;
    assert.deepEqual(stdout.trimEnd().split('\n').map(shape), shown.map(shape));
  });

  longIt('carries one byte', async () => arrives(await world.file('one', 1)));

  it('carries a file that ends within a slot, with a name in UTF-8 with spaces', async () =>
    arrives(await world.file('Größe mit  Leerzeichen ✓.bin', MIB + 1)));

  it('carries a name that looks like an option, over the sockets of Node', async () =>
    arrives(await world.file('--from', 2 * MIB - 1), '--socket', 'dgram'));

  longIt('leaves what the destination holds, and replaces it with --force', async () => {
    const path = await world.file('same', 20);
    await writeFile(join(world.out, 'same'), 'older and longer than what comes');
    const { code, stderr } = await world.both(path).ended;
    assert.equal(code, 1);
    assert.match(
      stderr,
      /^There is a file ".*same" already; --force at the receiver replaces it\.$/m,
    );
    assert.deepEqual(await readdir(world.out), ['same']);
    assert.match(await readFile(join(world.out, 'same'), 'utf8'), /^older/);
    await arrives(path, '--force');
  });

  it('writes to no file that a planted part leads to', async () => {
    const path = await world.file('file', 20);
    const victim = join(world.directory, 'victim');
    await writeFile(victim, 'stays');
    await symlink(victim, join(world.out, 'file.part'));
    const { code, stderr } = await world.both(path).ended;
    assert.equal(code, 1);
    assert.match(stderr, /^".*file\.part" is a symbolic link: it is not written to\.$/m);
    assert.equal(await readFile(victim, 'utf8'), 'stays');
  });

  longIt("shows the sender's name, and reason, without what a terminal obeys", async () => {
    const path = await world.file('\x1b]0;title\x07\rname', 20);
    const { code, stdout } = await world.both(path).ended;
    assert.equal(code, 0);
    assert.ok(stdout.includes('Received '), stdout);
    assert.ok(stdout.includes('\\u{1b}]0;title\\u{7}\\u{d}name: '), stdout);
    const again = await world.both(path).ended;
    for (const text of [stdout, again.stdout, again.stderr]) {
      assert.doesNotMatch(text, /[^\P{Cc}\n]/u);
    }
  });

  longIt('carries more slots than the window has', async () =>
    arrives(await world.file('window', 20 * MIB)),
  );
});
