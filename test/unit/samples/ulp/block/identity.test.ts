// The serial number of an image: kept with it, not taken along by a copy.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  linkSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type BlockBackend,
  FileBackend,
  type FileBackendOptions,
  type FileAttributes,
  MemoryBackend,
  ReadOnlyBackend,
} from '../../../../../samples/ulp/block/index.js';
import { IscsiTarget } from '../../../../../samples/ulp/iser/index.js';

const NAME = 'iqn.2026-01.org.example:disk';
/** A file system without attributes. */
const REFUSED: FileAttributes = {
  get: () => Promise.reject(new Error('not supported')),
  set: () => Promise.reject(new Error('not supported')),
};

describe('the serial number of an image', () => {
  let folder: string;
  let image: string;
  let notes: string[];
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'dapl-identity-'));
    image = join(folder, 'a.img');
    writeFileSync(image, new Uint8Array(4096));
    notes = [];
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  async function serialOf(
    path: string,
    options: Omit<FileBackendOptions, 'path'> = {},
  ): Promise<string> {
    const onNote = (note: string): void => void notes.push(note);
    const backend = await FileBackend.open({ path, onNote, ...options });
    await backend.close();
    return backend.serial;
  }

  const PLACES: readonly [string, Partial<FileBackendOptions>][] = [
    ['in an attribute', {}],
    ['in a file, without attributes', { attributes: undefined }],
    ['in a file, where attributes are refused', { attributes: REFUSED }],
  ];
  for (const [where, options] of PLACES) {
    it(`is kept ${where}`, async () => {
      const serial = await serialOf(image, options);
      assert.match(serial, /^[0-9a-f]{32}$/);
      assert.equal(await serialOf(image, options), serial);
      assert.equal(await serialOf(image, { ...options, readOnly: true }), serial);
      symlinkSync(image, join(folder, 'link.img'));
      assert.equal(await serialOf(join(folder, 'link.img'), options), serial);
      assert.deepEqual(notes, []);
      assert.equal(existsSync(`${image}.identity`), 'attributes' in options);
    });

    it(`is another one for each image, and for a copy with all that is kept ${where}`, async () => {
      const serial = await serialOf(image, options);
      const copy = join(folder, 'b.img');
      execFileSync('cp', ['-a', image, copy]);
      if ('attributes' in options) copyFileSync(`${image}.identity`, `${copy}.identity`);
      const other = await serialOf(copy, options);
      assert.notEqual(other, serial);
      assert.deepEqual(notes, [`${copy} is a copy: it gets a serial number of its own, ${other}`]);
      assert.equal(await serialOf(copy, options), other);
      assert.equal(await serialOf(image, options), serial);
      assert.equal(notes.length, 1);
    });
  }

  it('goes along when the image gets another name', async () => {
    const serial = await serialOf(image);
    renameSync(image, join(folder, 'c.img'));
    assert.equal(await serialOf(join(folder, 'c.img')), serial);
  });

  it('is what is given, and is not kept then', async () => {
    assert.equal(await serialOf(image, { serial: 'mine', attributes: undefined }), 'mine');
    assert.ok(!existsSync(`${image}.identity`));
  });

  it('is said not to last where it cannot be kept', async () => {
    const attributes = REFUSED;
    // A folder in the place of the sidecar, so that root is refused, too.
    execFileSync('mkdir', [`${image}.identity`]);
    await assert.rejects(serialOf(image, { attributes }), { code: 'EISDIR' });
    rmSync(`${image}.identity`, { recursive: true });
    symlinkSync(join(folder, 'missing', 'file'), `${image}.identity`);
    const first = await serialOf(image, { attributes });
    assert.notEqual(await serialOf(image, { attributes }), first);
    assert.match(notes[0]!, /a\.img cannot keep its serial number \(ENOENT.*unless you give one$/);
  });

  it('is not made up anew where a record is damaged', async () => {
    writeFileSync(`${image}.identity`, '{"serial":');
    await assert.rejects(serialOf(image, { attributes: undefined }), {
      message:
        `${image}.identity has no identity in it but "{\\"serial\\":": ` +
        'remove it, and there is a new one',
    });
    writeFileSync(`${image}.identity`, '');
    const serial = await serialOf(image, { attributes: undefined });
    assert.ok(readFileSync(`${image}.identity`, 'utf8').includes(serial));
  });

  it('of two LUNs of a target must differ', async () => {
    linkSync(image, join(folder, 'same.img'));
    const one = await FileBackend.open({ path: image });
    const same = await FileBackend.open({ path: join(folder, 'same.img') });
    const luns = new Map<number, BlockBackend>([
      [0, one],
      [3, new ReadOnlyBackend(same)],
    ]);
    assert.throws(() => new IscsiTarget({ name: NAME, luns }), {
      name: 'RangeError',
      message: new RegExp(`^LUN 0 and LUN 3 have the serial number ${one.serial}, and must differ`),
    });
    await one.close();
    await same.close();
    const memory = (): MemoryBackend => new MemoryBackend({ sizeBytes: 512 });
    assert.notEqual(memory().serial, memory().serial);
  });
});
