import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const main = fileURLToPath(import.meta.resolve('../../../plugins/cli/main.js'));
const root = join(import.meta.dirname, '../../../..');

interface Run {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

describe('dapl lab', () => {
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'dapl-lab-'));
    const { status, stderr } = spawnSync(process.execPath, [join(root, '.ci/lab.mjs')]);
    assert.equal(status, 0, String(stderr));
  });
  after(() => rmSync(folder, { recursive: true }));

  const lab = (...args: string[]): Run =>
    spawnSync(process.execPath, [main, 'lab', ...args], { encoding: 'utf8', cwd: folder });

  it('prints the path of the page', () => {
    const { status, stdout } = lab();
    assert.equal(status, 0);
    assert.equal(stdout, `${join(root, 'docs/lab/index.html')}\n`);
  });

  it('writes a page with the bytes of a file, whatever it is called', () => {
    const bytes = Uint8Array.of(0x0a, 0x0d, 0x0d, 0x0a, 1, 2, 3);
    writeFileSync(join(folder, 'a"<b>.pcapng'), bytes);
    const { status, stdout } = lab('a"<b>.pcapng', '-o', 'out.html');
    assert.deepEqual([status, stdout], [0, `${join(folder, 'out.html')}\n`]);
    const html = readFileSync(join(folder, 'out.html'), 'utf8');
    const found = /id="capture" data-name="a__b_\.pcapng">([^<]*)<\/script>/.exec(html);
    assert.deepEqual(new Uint8Array(Buffer.from(found?.[1] ?? '', 'base64')), bytes);
  });

  it('names the page after the file, in the working directory', () => {
    writeFileSync(join(folder, 'real.pcapng'), 'x');
    assert.equal(lab('real.pcapng').stdout, `${join(folder, 'real.pcapng.html')}\n`);
  });

  it('says what is wrong with a file that is missing', () => {
    const { status, stderr } = lab('missing.pcapng');
    assert.equal(status, 1);
    assert.match(stderr, /^dapl: ENOENT.*missing\.pcapng/);
  });
});
