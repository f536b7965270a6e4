// A program that uses the package, bundled by esbuild into one CommonJS file, loads and runs; its
// native port is found where the package or its prebuilds are, and what takes its place is said.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { leaveOut } from './support/left-out.js';
import { loopback } from './support/loopback.js';

const root = join(import.meta.dirname, '../..');
const PLATFORM = `${process.platform}-${process.arch}`;
const ADDON = join(root, 'build/native/softroce-port.node');

const LISTENS = loopback(24, 1);
/** That a device is on node:dgram is warned of. */
const QUIET = '--disable-warning=DAPL_DGRAM';

const PROGRAM = `
  import { localAddressToward, openIa } from 'dapl';
  import { listen } from 'dapl/easy';
  import { capture } from 'dapl/plugins/pcap';
  import { Fabric, mock } from 'dapl/providers/mock';
  import { inspectSoftroce, softroce } from 'dapl/providers/softroce';
  import { verbs } from 'dapl/providers/verbs';

  async function main() {
    const fabric = new Fabric({ autoRun: true });
    const ia = await openIa(mock({ fabric, address: '192.0.2.1' }));
    const { port, portProblem } = await inspectSoftroce(1);
    const own = await localAddressToward('127.0.0.1');
    const server = await listen({ address: '${LISTENS}' });
    const listens = server.address;
    await server.close();
    console.log(JSON.stringify({ address: ia.address, own, port, portProblem, listens }));
    await ia.close();
    if ([capture, softroce, verbs].some((each) => typeof each !== 'function')) throw new Error();
  }
  main();`;

interface Outcome {
  readonly address: string;
  readonly own: string;
  readonly listens: string;
  readonly port: string;
  readonly portProblem?: string;
}

describe('a CommonJS bundle', function () {
  this.timeout(60_000);
  let folder: string;
  let bundle: string;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'dapl-bundle-'));
    bundle = join(folder, 'program.cjs');
    const entry = join(import.meta.dirname, 'bundle-entry.mjs');
    writeFileSync(entry, PROGRAM);
    await build({
      entryPoints: [entry],
      outfile: bundle,
      bundle: true,
      format: 'cjs',
      platform: 'node',
      logLevel: 'silent',
    });
  });
  after(() => rmSync(folder, { recursive: true }));

  async function run(): Promise<Outcome> {
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [QUIET, bundle], {
      cwd: tmpdir(),
      timeout: 30_000,
    });
    assert.equal(stderr, '');
    const outcome = JSON.parse(stdout) as Outcome;
    assert.deepEqual([outcome.address, outcome.own], ['192.0.2.1', '127.0.0.1']);
    assert.equal(outcome.listens, LISTENS);
    return outcome;
  }

  it('runs where the package is not installed, over node:dgram, and says why', async () => {
    assert.ok(!/\bimport\.meta\b/.test(readFileSync(bundle, 'utf8')));
    const { port, portProblem = '' } = await run();
    assert.equal(port, 'dgram');
    assert.match(portProblem, /softroce-port\.node was not built, and no prebuild for/);
  });

  it('finds the native port in prebuilds beside it, or a package', async function () {
    if (!existsSync(ADDON))
      leaveOut(this, 'the native port was not built', 'with a compiler: npm ci');
    const prebuilds = join(folder, 'prebuilds', PLATFORM);
    mkdirSync(prebuilds, { recursive: true });
    cpSync(ADDON, join(prebuilds, 'softroce-port.node'));
    assert.deepEqual((await run()).port, 'native');
    rmSync(join(folder, 'prebuilds'), { recursive: true });
    assert.deepEqual((await run()).port, 'dgram');
    mkdirSync(join(folder, 'node_modules'));
    symlinkSync(root, join(folder, 'node_modules/dapl'));
    assert.deepEqual((await run()).port, 'native');
  });
});
