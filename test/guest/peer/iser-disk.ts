// Our initiator at work on a disk of another target: a program of the guest's cases.
// Arguments: address, target name, how many commands. The first thing that is wrong ends it with 1.
import assert from 'node:assert/strict';
import { inspect } from 'node:util';

import { discover, IscsiError, openDisk } from '../../../samples/ulp/iser/index.js';

const [address = '', target = '', countText = '64'] = process.argv.slice(2);
const COUNT = Number(countText);
const DEPTH = 16;
const SIZES = [512, 4096, 65_536, 262_144];

const say = (line: string): void => void process.stdout.write(`${line}\n`);

const targets = await discover({ address });
assert(
  targets.some(({ name }) => name === target),
  `${target} is among ${JSON.stringify(targets)}`,
);
say('discovered');

const notices: string[] = [];
const disk = await openDisk({ address, target, notice: (what) => notices.push(what) });
say(`logged in: ${inspect(disk.description, { breakLength: Infinity })}`);

try {
  await work();
} finally {
  await disk.close();
}
assert.deepEqual(notices, [], 'the session was never lost');
say('logged out');

async function work(): Promise<void> {
  // Writes and reads of several lengths, some from the disk's own memory, many at a time.
  let next = 0;
  const lane = async (): Promise<void> => {
    for (let turn = next++; turn < COUNT; turn = next++) {
      const bytes = SIZES[turn % SIZES.length]!;
      const make =
        turn % 2 === 0 ? (n: number) => disk.allocate(n) : (n: number) => new Uint8Array(n);
      const [out, back] = [make(bytes), make(bytes)];
      for (let at = 0; at < bytes; at++) out[at] = (at * 7 + turn) & 0xff;
      const lba = turn * (262_144 / disk.blockBytes);
      await disk.write(lba, out, { fua: turn % 3 === 0 });
      await disk.read(lba, back);
      assert.deepEqual(Buffer.compare(back, out), 0, `command ${turn} reads what it has written`);
    }
  };
  await Promise.all(Array.from({ length: DEPTH }, lane));
  await disk.flush();
  say(`moved ${COUNT} writes and reads, and flushed them`);

  if (disk.description.maxUnmapBlocks > 0) {
    await disk.unmap(0, 2048n);
    // What it holds now, the disk does not promise (LBPRZ 0).
    await disk.read(0, new Uint8Array(4096));
    say('unmapped');
  }

  const beyond = await disk
    .read(disk.blockCount - 1n, new Uint8Array(1024))
    .catch((e: unknown) => e);
  assert(beyond instanceof IscsiError && beyond.code === 'ISCSI_INVALID_PARAMETER');

  // A reset among commands: each ends, and is sent again where it was ended by the reset.
  const busy = Array.from({ length: DEPTH }, (_, i) =>
    disk.write(i * 8, new Uint8Array(4096).fill(i)),
  );
  await disk.reset();
  await Promise.all(busy);
  say('reset');

  const controller = new AbortController();
  const aborted = disk.read(0, new Uint8Array(262_144), { signal: controller.signal });
  controller.abort();
  const outcome = await aborted.then(
    () => 'done',
    (error: unknown) => (error instanceof IscsiError ? error.code : String(error)),
  );
  assert(outcome === 'done' || outcome === 'ISCSI_ABORTED', outcome);
  await disk.read(0, new Uint8Array(512));
  say('aborted');
}
