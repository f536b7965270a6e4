import assert from 'node:assert/strict';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadAddon } from '../../../../providers/host/index.js';
import { leaveOut } from '../../../support/left-out.js';

const BUILT = join(import.meta.dirname, '../../../../../build/native/softroce-port.node');
const PLATFORM = `${process.platform}-${process.arch}`;

describe('native parts of providers', () => {
  let root: string;
  let prebuilds: string;
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'dapl-addon-'));
    prebuilds = join(root, 'prebuilds', PLATFORM);
    mkdirSync(prebuilds, { recursive: true });
    mkdirSync(join(root, 'build/native'), { recursive: true });
  });
  afterEach(() => rmSync(root, { recursive: true }));

  /** A file that the loader refuses with this text in its message. */
  const broken = (directory: string, name: string): string => {
    const path = join(directory, name);
    writeFileSync(path, 'no shared object');
    return path;
  };

  it('says when there is neither a build nor a prebuild', () => {
    assert.deepEqual(loadAddon('a.node', root), {
      problem: `a.node was not built, and no prebuild for ${PLATFORM} is in the package`,
    });
  });

  it('takes the local build before the prebuild, and the prebuild without one', function () {
    if (!existsSync(BUILT)) leaveOut(this, `no ${BUILT}`, 'npm run build:native');
    const prebuild = join(prebuilds, 'b.node');
    copyFileSync(BUILT, prebuild);
    const second = loadAddon('b.node', root);
    assert.ok('addon' in second, JSON.stringify(second));
    assert.equal(second.path, prebuild);
    const local = join(root, 'build/native/b.node');
    copyFileSync(BUILT, local);
    const first = loadAddon('b.node', root);
    assert.ok('addon' in first);
    assert.equal(first.path, local);
    assert.equal(typeof (first.addon as { openPort?: unknown }).openPort, 'function');
  });

  it('takes the prebuild when the local build does not load', function () {
    if (!existsSync(BUILT)) leaveOut(this, `no ${BUILT}`, 'npm run build:native');
    broken(join(root, 'build/native'), 'c.node');
    copyFileSync(BUILT, join(prebuilds, 'c.node'));
    const result = loadAddon('c.node', root);
    assert.ok('addon' in result && result.path.includes('prebuilds'), JSON.stringify(result));
  });

  it('names both files when neither loads', () => {
    const local = broken(join(root, 'build/native'), 'd.node');
    const prebuild = broken(prebuilds, 'd.node');
    const result = loadAddon('d.node', root);
    assert.ok('problem' in result);
    assert.ok(result.problem.includes(local) && result.problem.includes(prebuild), result.problem);
  });

  it('says which glibc a prebuild is for when this one is older', () => {
    writeFileSync(join(prebuilds, 'requires.json'), '{ "glibc": "2.33" }');
    // What the loader of an older machine says, thrown by a module in place of the shared object.
    const text = "/lib/libc.so.6: version `GLIBC_2.33' not found (required by e.js)";
    writeFileSync(join(prebuilds, 'e.js'), `throw new Error(${JSON.stringify(text)});`);
    const result = loadAddon('e.js', root);
    assert.ok('problem' in result);
    assert.match(result.problem, /GLIBC_2\.33' not found.*is for glibc 2\.33 or later: build it/);
  });

  it('says that a prebuild is for glibc where the C library is musl', () => {
    // What musl's loader says, word by word.
    const text =
      'Error loading shared library ld-linux-x86-64.so.2: No such file or directory ' +
      '(needed by /app/node_modules/dapl/prebuilds/linux-x64/softroce-port.node)';
    writeFileSync(join(prebuilds, 'f.js'), `throw new Error(${JSON.stringify(text)});`);
    const result = loadAddon('f.js', root);
    assert.ok('problem' in result);
    assert.match(result.problem, /ld-linux.*is for glibc, which is not here: build it/);
  });
});
