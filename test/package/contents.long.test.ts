// What `npm pack` takes: what the exports and the command lead to, and the sources and prebuilds of
// the addons; and what it does where it is installed without a compiler.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, normalize, relative } from 'node:path';
import { install, MANIFEST, pack, ROOT } from './packed.js';

const PREBUILDS = `prebuilds/${process.platform}-${process.arch}`;

/** What a program there writes; no command is to be found by it. */
function inProject(project: string, program: string): string {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--input-type=module', '-e', program],
    { cwd: project, encoding: 'utf8', env: { PATH: '/nowhere' } },
  );
  assert.equal(status, 0, stderr);
  return stdout;
}

const FAKES = join(ROOT, 'build/native');
const TRANSFER = `
  import { createRequire } from 'node:module';
  import { MemPrivileges, openIa, RemoteSegment } from 'dapl';
  import { verbs } from 'dapl/providers/verbs';
  const cm = ${JSON.stringify(join(FAKES, 'fake-rdmacm.node'))};
  const libraries = { verbs: ${JSON.stringify(join(FAKES, 'fake-ibverbs.so'))}, rdmacm: cm };
  createRequire(import.meta.url)(cm).addAddress('198.51.100.1', 'fake0');
  const ia = await openIa(verbs({ device: 'fake0', libraries }));
  const pz = ia.createPz();
  const evd = ia.createEvd({ qlen: 16 });
  const end = () => ia.createEndpoint({ pz, recvEvd: evd, requestEvd: evd, connectEvd: evd });
  const [from, to] = [end(), end()];
  const next = async () => (await evd.wait({ timeoutMs: 20000 })).event;
  const psp = ia.createPsp({ connQual: 4000, evd });
  from.connect({ address: '198.51.100.1', connQual: 4000 });
  (await next()).cr.accept(to);
  await next();
  await next();
  const lmr = ia.allocate(4096, { pz, privileges: MemPrivileges.ALL });
  lmr.bytes.set(Buffer.from('hello'));
  const there = lmr.address + 64n;
  const remote = new RemoteSegment({ address: there, rmrContext: lmr.rmrContext });
  from.postRdmaWrite(lmr.segment(0, 5), 1, remote);
  await next();
  const text = Buffer.from(lmr.bytes.subarray(64, 69)).toString();
  await ia.close();
  const addons = process.report.getReport().sharedObjects.filter((path) =>
    path.endsWith('/verbs.node'));
  console.log(JSON.stringify({ text, addons }));`;
const WITHOUT_LIBRARY = `
  import { openIa } from 'dapl';
  import { verbs } from 'dapl/providers/verbs';
  const libraries = { verbs: '/nowhere/libibverbs.so.1' };
  await openIa(verbs({ libraries })).catch(({ message }) => console.log(message));`;

describe('the package', function () {
  this.timeout(300_000);
  let packed: ReadonlySet<string>;
  let unpackedBytes: number;
  before(async () => {
    ({ paths: packed, unpackedBytes } = await pack());
  });

  /** A link may name a folder. */
  const packedOrFolder = (path: string): boolean =>
    packed.has(path) || [...packed].some((each) => each.startsWith(`${path.replace(/\/$/, '')}/`));

  it('is a few files for each entry, without maps, and less than 8 MB with the lab', () => {
    const files = [...packed].filter((path) => path.startsWith('dist/'));
    const entries = Object.keys(MANIFEST.exports).length;
    assert.ok(files.length > entries && files.length < 6 * entries, `${files.length} in dist`);
    assert.ok(packed.size < 400, `${packed.size} files`);
    assert.ok(unpackedBytes < 8e6, `${unpackedBytes} bytes`);
    assert.deepEqual(
      files.filter((path) => path.endsWith('.map')),
      [],
    );
  });

  it('holds what its exports and its command lead to', () => {
    const targets = Object.values(MANIFEST.exports).flatMap((entry) =>
      typeof entry === 'string' ? [entry] : [entry.types, entry.default],
    );
    const all = [...targets, ...Object.values(MANIFEST.bin)];
    assert.deepEqual(
      all.filter((path) => !packed.has(path.replace(/^\.\//, ''))),
      [],
    );
  });

  for (const provider of ['softroce', 'verbs']) {
    it(`holds all sources of the addon of ${provider}, to build it where it is installed`, () => {
      const directory = `providers/${provider}/native`;
      const files = readdirSync(join(ROOT, directory), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)));
      assert.ok(files.length > 20);
      assert.deepEqual(
        files.filter((path) => !packed.has(path)),
        [],
      );
    });
  }

  it('holds what its pages point at, and what errors do', () => {
    const pages = [...packed].filter((path) => /\.md$/.test(path) && !path.startsWith('docs/api/'));
    const linked = pages.flatMap((page) =>
      [...readFileSync(join(ROOT, page), 'utf8').matchAll(/\]\((?!https?:)([^)#\s]+)/g)].map(
        ([, path = '']) => normalize(join(dirname(page), path)),
      ),
    );
    assert.ok(pages.length > 40 && linked.length > 200);
    const sources = ['core', 'plugins', 'providers'].flatMap((directory) =>
      readdirSync(join(ROOT, directory), { recursive: true, encoding: 'utf8' })
        .filter((name) => name.endsWith('.ts'))
        .map((name) => readFileSync(join(ROOT, directory, name), 'utf8')),
    );
    const named = sources.flatMap(
      (text) => text.match(/\b(?:docs|samples)\/[\w./-]+\.md\b/g) ?? [],
    );
    assert.ok(named.length > 5);
    assert.deepEqual(
      [...new Set([...linked, ...named])].filter((path) => !packedOrFolder(path)),
      [],
    );
  });

  it('holds the prebuilds', () => {
    const files = readdirSync(join(ROOT, PREBUILDS)).map((name) => `${PREBUILDS}/${name}`);
    assert.ok(files.includes(`${PREBUILDS}/verbs.node`), files.join());
    assert.deepEqual(
      files.filter((path) => !packed.has(path)),
      [],
    );
  });

  describe('installed where there is no compiler', () => {
    const project = mkdtempSync(join(tmpdir(), 'dapl-package-'));
    before(() => install(project));
    after(() => {
      rmSync(project, { recursive: true });
    });

    it('loads its prebuild, and transfers with it', () => {
      const told = JSON.parse(inProject(project, TRANSFER)) as { text: string; addons: string[] };
      assert.equal(told.text, 'hello');
      const addons = told.addons.map((path) => path.replace(/^.*node_modules\//, ''));
      assert.deepEqual(addons, [`dapl/${PREBUILDS}/verbs.node`]);
    });

    it('says what to install where libibverbs is missing', () => {
      const message = inProject(project, WITHOUT_LIBRARY);
      assert.match(message, /\/nowhere\/libibverbs\.so\.1 .*cannot open shared object file/);
      assert.match(message, /apt-get install libibverbs1 librdmacm1/);
    });

    it('says how to get an addon where there is no prebuild for the machine', () => {
      rmSync(join(project, 'node_modules/dapl', PREBUILDS, 'verbs.node'));
      assert.match(inProject(project, WITHOUT_LIBRARY), /verbs\.node.*(build|compile)/s);
    });
  });

  it('holds no test but the conformance suite, and no machine-made object', () => {
    const strangers = [...packed].filter((path) =>
      /^(test|dist\/test\/(?!compliance\/)|build|node_modules|bench)\b/.test(path),
    );
    assert.deepEqual(strangers, []);
  });
});
