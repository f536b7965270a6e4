import assert from 'node:assert/strict';
import {
  chown,
  link,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TransferFailure } from '../../../../samples/transfer/failure.js';
import { PartialFile } from '../../../../samples/transfer/partial-file.js';
import { leaveOut } from '../../../support/left-out.js';

describe('transfer: the file of a stranger', () => {
  let outside: string;
  let directory: string;

  beforeEach(async () => {
    outside = await mkdtemp(join(tmpdir(), 'dapl-test-partial-'));
    directory = join(outside, 'inside');
    await mkdir(directory);
  });
  afterEach(() => rm(outside, { recursive: true }));

  function open(name: string, options: { force?: boolean; sizeBytes?: number } = {}) {
    const { force = false, sizeBytes = 1 } = options;
    const { signal } = new AbortController();
    return PartialFile.open({ name, sizeBytes }, { directory, force, signal });
  }

  /** It is refused, with a sentence that has this in it. */
  async function refused(opening: Promise<unknown>, sentence: RegExp): Promise<void> {
    await assert.rejects(opening, (error) => {
      assert.ok(error instanceof TransferFailure, String(error));
      assert.match(error.message, sentence);
      return true;
    });
  }

  const content = (name: string): Promise<string> => readFile(join(directory, name), 'utf8');

  describe('its name', () => {
    for (const name of ['', '.', '..', '../..', '/', 'a\0b']) {
      it(`is refused: ${JSON.stringify(name)}`, async () => {
        await refused(open(name), /no name for a file/);
        assert.deepEqual(await readdir(outside, { recursive: true }), ['inside']);
      });
    }

    it('is the last component of a path', async () => {
      const file = await open('../../etc/passwd');
      await file.append(Uint8Array.of(1));
      await file.finish();
      assert.deepEqual(await readdir(outside, { recursive: true }), ['inside', 'inside/passwd']);
    });
  });

  describe('a file that has the name', () => {
    beforeEach(() => writeFile(join(directory, 'file'), 'mine'));

    it('stays, and the sender is told', async () => {
      await refused(open('file'), /^There is a file ".*file" already; --force .* replaces it\.$/);
      assert.deepEqual(await readdir(directory), ['file']);
      assert.equal(await content('file'), 'mine');
    });

    it('is replaced when that is asked for', async () => {
      const file = await open('file', { force: true });
      await file.append(Buffer.from('x'));
      await file.finish();
      assert.equal(await content('file'), 'x');
      assert.deepEqual(await readdir(directory), ['file']);
    });

    it('stays also when it came while the bytes did, which are kept', async () => {
      const file = await open('late');
      await file.append(Buffer.from('x'));
      await writeFile(join(directory, 'late'), 'theirs');
      await refused(file.finish(), /already/);
      assert.equal(await content('late'), 'theirs');
      assert.equal(await content('late.part'), 'x');
    });

    it('may be a link that leads nowhere', async () => {
      await symlink(join(outside, 'nowhere'), join(directory, 'dangling'));
      await refused(open('dangling'), /already/);
      const file = await open('dangling', { force: true });
      await file.append(Buffer.from('x'));
      await file.finish();
      assert.deepEqual(await readdir(outside), ['inside']);
      assert.equal(await content('dangling'), 'x');
    });

    it('is no directory, not even then', async () => {
      await mkdir(join(directory, 'sub'));
      await refused(open('sub', { force: true }), /is a directory, not a file/);
    });
  });

  describe('a part that was put there', () => {
    const victim = (): string => join(outside, 'victim');
    const part = (): string => join(directory, 'file.part');
    beforeEach(() => writeFile(victim(), 'what must stay'));

    for (const [kind, make, sentence] of [
      ['a symbolic link', symlink, /is a symbolic link: it is not written to/],
      ['another name of a file', link, /is a file of several names: it is not written to/],
    ] as const) {
      it(`is not written to: ${kind}`, async () => {
        await make(victim(), part());
        // Shorter than the victim: what is too long for a part would be cut.
        await refused(open('file', { sizeBytes: 3, force: true }), sentence);
        assert.equal(await readFile(victim(), 'utf8'), 'what must stay');
      });
    }

    it('makes no file where a link leads that has none', async () => {
      await symlink(join(outside, 'none'), part());
      await refused(open('file'), /symbolic link/);
      assert.deepEqual(await readdir(outside), ['inside', 'victim']);
    });

    it('is not gone on with: a file of another user', async function () {
      if (process.geteuid?.() !== 0) {
        leaveOut(this, 'only root can give files away', 'as root: npm test');
      }
      await writeFile(part(), 'a');
      await chown(part(), 54_321, 54_321);
      await refused(open('file', { sizeBytes: 3 }), /is a file of another user/);
      assert.equal((await stat(part())).size, 1);
    });

    it('is gone on with, when it is a file of our own', async () => {
      await writeFile(part(), 'ab');
      const file = await open('file', { sizeBytes: 3 });
      assert.equal(file.lengthBytes, 2);
      await file.append(Buffer.from('c'));
      await file.finish();
      assert.equal(await content('file'), 'abc');
    });
  });
});
