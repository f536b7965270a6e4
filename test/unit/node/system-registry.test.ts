import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  DatDtoStatus,
  DatError,
  type DatEvent,
  EvdFlags,
  formatDatConf,
  type Ia,
  loadRegistry,
  openIa,
  parseDatConf,
  readDatConf,
  type Registry,
  systemRegistry,
} from 'dapl';
import { Fabric, mock, namedFabric } from 'dapl/providers/mock';
import { softroce } from 'dapl/providers/softroce';
import { defaultPaths } from '../../../plugins/node/dat-conf-file.js';
import { loopback, testPort } from '../../support/loopback.js';

const [NEAR, FAR] = [loopback(71, 1), loopback(71, 2)];
const UDP_PORT = testPort(0);
const line = (name: string, lib: string, params: string): string =>
  `${name} u2.0 nonthreadsafe default ${lib} dapl.2.0 "${params}" ""\n`;
const SOFTROCE = 'dapl/providers/softroce';
const MOCK = 'dapl/providers/mock';
const CONF = [
  line('soft-a', SOFTROCE, `${NEAR} 0 udpPort=${UDP_PORT}`),
  line('soft-b', SOFTROCE, `${FAR} udpPort=${UDP_PORT}`),
  line('mock-a', MOCK, '10.0.0.1 fabric=conf seed=3'),
  line('mock-b', MOCK, '10.0.0.2 1 fabric=conf'),
  line('other', MOCK, '10.0.0.1 fabric=else'),
  line('mine', './mine.mjs', '10.0.0.9'),
  line('stray', '@acme/none', ''),
  line('later', 'dapl/providers/later', 'mlx5_0 1'),
  line('ofa', 'libdaplofa.so.2', 'ib0 0'),
  line('bad-mtu', MOCK, '10.0.0.1 mtu=3'),
  line('bad-if', SOFTROCE, 'no-such-if'),
].join('');

/** One message from one adapter to the other. */
async function sendOne(from: Ia, to: Ia, connQual: number): Promise<string> {
  const serverPz = to.createPz();
  const inbox = to.allocate(64, { pz: serverPz });
  const serverEp = to.createEndpoint({ pz: serverPz });
  serverEp.postRecv(inbox.segment(), 1);
  to.createPsp({ connQual }).requests$.subscribe(({ cr }) => cr.accept(serverEp));
  const arrival = new Promise<DatEvent>((resolve) => serverEp.completions$.subscribe(resolve));
  const pz = from.createPz();
  const outbox = from.allocate(64, { pz });
  const { written } = new TextEncoder().encodeInto(`over ${from.address}`, outbox.bytes);
  const evd = from.createEvd({ qlen: 64, streams: EvdFlags.DTO | EvdFlags.CONNECTION });
  const ep = from.createEndpoint({ pz, connectEvd: evd, requestEvd: evd, recvEvd: evd });
  ep.connect({ address: to.address, connQual });
  await evd.wait();
  ep.postSend(outbox.segment(0, written), 2);
  const event = await arrival;
  assert.ok(event.type === 'dto' && event.status === DatDtoStatus.SUCCESS);
  return new TextDecoder().decode(inbox.bytes.subarray(0, event.transferredLength));
}

describe('registry of the machine', () => {
  let folder: string;
  let path: string;
  /** What `systemRegistry()` is where nobody has asked for it before. */
  let registry: Registry;
  const override = process.env['DAT_OVERRIDE'];

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'dapl-conf-'));
    path = join(folder, 'dat.conf');
    await writeFile(path, CONF);
    const entry = import.meta.resolve('dapl/providers/mock');
    const source = `export { datProviderInit } from ${JSON.stringify(entry)};\n`;
    await writeFile(join(folder, 'mine.mjs'), source);
    process.env['DAT_OVERRIDE'] = path;
    registry = await loadRegistry();
  });

  after(async () => {
    if (override === undefined) delete process.env['DAT_OVERRIDE'];
    else process.env['DAT_OVERRIDE'] = override;
    await rm(folder, { recursive: true });
  });

  it('reads the file that DAT_OVERRIDE names', async () => {
    const conf = await readDatConf();
    assert.equal(conf.path, path);
    assert.equal(conf.entries.length, 11);
    assert.deepEqual(parseDatConf(formatDatConf(conf.entries)).entries, conf.entries);
  });

  it('looks in the usual places otherwise', () => {
    assert.equal(defaultPaths('linux')[0], '/etc/dat.conf');
    assert.match(defaultPaths('win32', {})[0] ?? '', /C:.DAT.dat\.conf/);
  });

  it('fails when a file that was named is not there', async () => {
    await assert.rejects(readDatConf(join(folder, 'none')), (error) => {
      assert.ok(DatError.isDatError(error));
      assert.equal(error.code, 'DAT_INTERNAL_ERROR');
      assert.match(error.message, /registry cannot be read: ENOENT.*DAT_OVERRIDE/);
      return true;
    });
  });

  it('opens adapters of several providers in one process, which all work', async () => {
    const names = ['soft-a', 'soft-b', 'mock-a', 'mock-b'];
    const adapters = await Promise.all(names.map((name) => registry.openIa(name)));
    const [softA, softB, mockA, mockB] = adapters as [Ia, Ia, Ia, Ia];
    const texts = await Promise.all([sendOne(softA, softB, 7), sendOne(mockA, mockB, 7)]);
    assert.deepEqual(texts, [`over ${NEAR}`, 'over 10.0.0.1']);
    assert.equal(softA.query().provider.providerName, 'soft-a');
    assert.ok(namedFabric('conf').counters.delivered > 0);
    await Promise.all(adapters.map((ia) => ia.close()));
  });

  it('shares a device, and its modules, between a name and a provider at hand', async () => {
    const byName = await registry.openIa('mock-a');
    const atHand = await openIa(mock({ fabric: namedFabric('conf'), address: '10.0.0.1' }));
    assert.equal(byName.query().provider.providerSpecific['DAT_IB_NODE_GUID'], guid(atHand));
    byName.createPsp({ connQual: 9 });
    assert.throws(
      () => atHand.createPsp({ connQual: 9 }),
      (error) => DatError.isDatError(error) && error.code === 'DAT_CONN_QUAL_IN_USE',
    );
    await byName.close();
    assert.equal(atHand.query().ia.iaAddress, '10.0.0.1');
    await atHand.close();
  });

  it('imports a file beside dat.conf', async () => {
    const ia = await registry.openIa('mine');
    assert.equal(ia.address, '10.0.0.9');
    await ia.close();
  });

  const failing: readonly (readonly [string, RegExp])[] = [
    ['stray', /"stray": cannot load @acme\/none: Cannot find package/],
    ['later', /"later": cannot load dapl\/providers\/later: Package subpath/],
    ['ofa', /libdaplofa\.so\.2: a shared object of another DAT library/],
    ['bad-mtu', /refuses its ia_params .*"mtu=3": options are fabric, seed, mtuBytes/],
    ['bad-if', /"no-such-if"; it must be an address, or an interface: one of /],
    ['nowhere', /no provider plugin is registered as "nowhere"; there are soft-a, soft-b/],
  ];
  for (const [name, text] of failing) {
    it(`says why ${name} does not open`, async () => {
      await assert.rejects(registry.openIa(name), (error) => {
        assert.ok(DatError.isDatError(error), String(error));
        assert.equal(error.code, 'DAT_PROVIDER_NOT_FOUND');
        assert.equal(error.subtype, 'DAT_NAME_NOT_REGISTERED');
        assert.match(error.message, text);
        return true;
      });
    });
  }

  it('knows what is related', async () => {
    assert.equal(await registry.providersRelated('mock-a', 'mock-b'), 'TRUE');
    assert.equal(await registry.providersRelated('mock-a', 'other'), 'FALSE');
    assert.equal(await registry.providersRelated('mock-a', 'soft-a'), 'FALSE');
    assert.equal(await registry.providersRelated('soft-a', 'soft-b'), 'UNKNOWN');
  });

  it('is one for the process; others are objects', async () => {
    const system = await systemRegistry();
    assert.equal(await systemRegistry(), system);
    const fabric = new Fabric({ autoRun: true });
    system.register(mock({ fabric, address: '10.1.0.1' }), 'by-hand');
    await (await openIa('by-hand')).close();
    await assert.rejects((await loadRegistry(path)).openIa('by-hand'), /"by-hand"/);
    system.unregister('by-hand');
  });

  it('is read when a process first opens by name', () => {
    const script = `
      import { openIa } from ${JSON.stringify(import.meta.resolve('dapl'))};
      const ia = await openIa('mock-a');
      console.log(ia.address);
      await ia.close();`;
    const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
      encoding: 'utf8',
    });
    assert.equal(stdout, '10.0.0.1\n', stderr);
  });

  describe('looks for packages', () => {
    let program: string;
    let strange: string;

    /** A package of that name there, which says that it has been loaded, and by whom. */
    async function install(home: string, name: string): Promise<void> {
      const at = join(home, 'node_modules', name);
      await mkdir(at, { recursive: true });
      const manifest = { name, version: '1.0.0', type: 'module', exports: './index.js' };
      await writeFile(join(at, 'package.json'), JSON.stringify(manifest));
      const entry = import.meta.resolve('dapl/providers/mock');
      const loaded = `console.log('loaded');`;
      const source = `export { datProviderInit } from ${JSON.stringify(entry)};\n${loaded}\n`;
      await writeFile(join(at, 'index.js'), source);
    }

    before(async () => {
      program = join(folder, 'program');
      strange = join(folder, 'strange');
      await Promise.all([install(program, 'dapl-beside'), install(strange, 'dapl-planted')]);
      const text = ['beside', 'planted'].map((name) =>
        line(name, `dapl-${name}`, '10.0.0.1 fabric=p'),
      );
      await writeFile(join(folder, 'packages.conf'), text.join(''));
      const source = `
        import { loadRegistry } from ${JSON.stringify(import.meta.resolve('dapl'))};
        const registry = await loadRegistry(${JSON.stringify(join(folder, 'packages.conf'))});
        const name = process.argv.at(-1);
        const ia = await registry.openIa(name).catch(({ message }) => console.log(message));
        console.log(ia?.address);
        await ia?.close();`;
      await writeFile(join(program, 'main.mjs'), source);
      await symlink(join(program, 'main.mjs'), join(strange, 'link.mjs'));
    });

    const run = (...args: readonly string[]): string => {
      const options = { encoding: 'utf8', cwd: strange } as const;
      const { stdout, stderr } = spawnSync(process.execPath, args, options);
      assert.equal(stderr, '');
      return stdout;
    };

    it('beside the program that Node was started with, by whatever link', () => {
      for (const path of [join(program, 'main.mjs'), 'link.mjs']) {
        assert.equal(run(path, 'beside'), 'loaded\n10.0.0.1\n', path);
      }
    });

    it('not in the working directory', async () => {
      const planted = /^[^\n]*cannot load dapl-planted: Cannot find package[^\n]*\nundefined\n$/;
      assert.match(run(join(program, 'main.mjs'), 'planted'), planted);
      const code = await readFile(join(program, 'main.mjs'), 'utf8');
      // What follows is no program, though it looks like one.
      const argument = join(strange, 'link.mjs');
      for (const flag of ['-e', '--eval']) {
        const args = ['--input-type=module', flag, code, argument];
        assert.match(run(...args, 'planted'), planted);
        assert.match(run(...args, 'beside'), /cannot load dapl-beside: Cannot find package/);
      }
      assert.match(run('--input-type=module', `--eval=${code}`, argument, 'beside'), /Cannot find/);
    });
  });

  it('needs no dat.conf for a provider at hand', async () => {
    process.env['DAT_OVERRIDE'] = join(folder, 'none');
    const ia = await openIa(softroce({ addresses: [loopback(71, 3)], udpPort: UDP_PORT }));
    assert.equal(ia.address, loopback(71, 3));
    await ia.close();
    process.env['DAT_OVERRIDE'] = path;
  });
});

function guid(ia: Ia): string | undefined {
  return ia.query().provider.providerSpecific['DAT_IB_NODE_GUID'];
}
