import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFile, readdir, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
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

  it('carries a file of no bytes', async () => arrives(await world.file('empty', 0)));

  it('carries one byte', async () => arrives(await world.file('one', 1)));

  it('carries a file that ends within a slot, with a name in UTF-8 with spaces', async () =>
    arrives(await world.file('Größe mit  Leerzeichen ✓.bin', MIB + 1)));

  it('carries a name that looks like an option, over the sockets of Node', async () =>
    arrives(await world.file('--from', 2 * MIB - 1), '--socket', 'dgram'));

  it('replaces what the destination held', async () => {
    await writeFile(join(world.out, 'same'), 'older and longer than what comes');
    await arrives(await world.file('same', 20));
  });

  it('carries more slots than the window has', async () =>
    arrives(await world.file('window', 20 * MIB)));
});
