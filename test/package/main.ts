/**
 * The package where it may be installed (npm run test:package): under each version of Node that it
 * is for, built there in place of prebuilds, and on arm64, whose prebuilds Debian's cross compiler
 * makes and QEMU runs. Versions of Node are npm's packages of it, kept in build/nodes.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loopback } from '../support/loopback.js';
import { nodeOf } from './node-versions.js';
import { install, ROOT, succeed } from './packed.js';
import { talk } from './talk.js';

const VERSIONS = ['20.19.0', '20', '22', '24'];
/** Debian's cross compiler, and what runs its outputs. */
const CROSS = ['g++-aarch64-linux-gnu', 'qemu-user'];
const EMULATED = ['qemu-aarch64', '-L', '/usr/aarch64-linux-gnu'];

const ADDRESS = loopback(27, 1);
const PORT_USED = `
  const { sharedObjects } = process.report.getReport();
  const shared = sharedObjects.find((path) => path.endsWith('/softroce-port.node'));
  console.log(process.arch, shared.replace(/^.*node_modules\\/dapl\\//, ''));`;
const IMPORTED = `import * as easy from 'dapl/easy'; ${talk(ADDRESS)} ${PORT_USED}`;
const REQUIRED = `const easy = require('dapl/easy'); (async () => { ${talk(ADDRESS)} })();`;

let passed = 0;
let failed = 0;

async function check(name: string, body: () => void | Promise<void>): Promise<void> {
  try {
    await body();
    passed += 1;
    console.log(`PASS  ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAIL  ${name}\n    ${(error as Error).message.replaceAll('\n', '\n    ')}`);
  }
}

/** Of the programs of a consumer, what is missing where they cannot run. */
function missingPackages(): string | undefined {
  if (process.arch !== 'x64') return `this machine is ${process.arch}, not x64`;
  const missing = CROSS.filter((name) => spawnSync('dpkg', ['-s', name]).status !== 0);
  return missing.length === 0 ? undefined : `apt-get install ${missing.join(' ')}`;
}

const project = mkdtempSync(join(tmpdir(), 'dapl-installed-'));
process.once('exit', () => rmSync(project, { recursive: true }));
const home = join(project, 'node_modules/dapl');
const imported = join(project, 'imported.mjs');
const required = join(project, 'required.cjs');
writeFileSync(imported, IMPORTED);
writeFileSync(required, REQUIRED);

const lack = missingPackages();
if (lack === undefined) succeed(process.execPath, ['.ci/prebuild.mjs', 'linux-arm64']);
await install(project, 'mocha');

const prebuilt = `prebuilds/linux-${process.arch}/softroce-port.node`;
const conformance = [
  join(home, 'dist/plugins/cli/main.js'),
  ...['test', '-P', 'softroce', '-d', loopback(27, 2), '--peer', loopback(27, 3)],
  ...['--only', 'Transferring'],
];
for (const version of VERSIONS) {
  const node = nodeOf(version, process.arch);
  const name = `Node ${succeed(node, ['--version']).trim()}`;
  await check(`${name} imports it, and talks by its prebuild`, () => {
    assert.equal(succeed(node, [imported], project), `hello\n${process.arch} ${prebuilt}\n`);
  });
  await check(`${name} requires it`, () => {
    assert.equal(succeed(node, ['--no-warnings', required], project), 'hello\n');
  });
}
if (lack === undefined) {
  const emulated = (...args: readonly string[]): string => {
    const [program = '', ...rest] = [...EMULATED, nodeOf('22', 'arm64'), ...args];
    return succeed(program, rest, project);
  };
  await check('arm64 imports it, and talks by its prebuild', () => {
    assert.equal(emulated(imported), 'hello\narm64 prebuilds/linux-arm64/softroce-port.node\n');
  });
  await check('arm64 passes the conformance suite of transfers over softroce', () => {
    assert.match(emulated(...conformance), /^\d+ passed, 0 failed$/m);
  });
  await check('arm64 passes the tests of ICRC, trains and wire formats', () => {
    const mocha = join(ROOT, 'node_modules/mocha/bin/mocha.js');
    const tests = ['native/crc32', 'native/icrc', 'native/train-planner', 'unit/wire/*'];
    const files = tests.map((name) => join(ROOT, 'dist/test', `${name}.test.js`));
    const options = ['--no-config', '--no-package', '--timeout', '120000', '--reporter', 'dot'];
    const said = emulated(mocha, ...options, ...files);
    assert.match(said, /^ {2}\d{2,} passing/m);
    assert.doesNotMatch(said, /^ {2}\d+ (failing|pending)/m);
  });
  await check('arm64 loads the addon of verbs', () => {
    const text = emulated(join(home, 'dist/plugins/cli/main.js'), 'info');
    assert.match(text, /^verbs: devices through libibverbs$/m);
    assert.doesNotMatch(text, /was not built|cannot open shared object file: .*verbs\.node/);
  });
} else {
  console.log(`SKIPPED, arm64 was not checked: ${lack}`);
  if (process.env['CI']) failed += 1;
}
await check('a compiler makes what prebuilds are missing', () => {
  rmSync(join(home, 'prebuilds'), { recursive: true });
  succeed('npm', ['run', '--silent', 'build:native'], home);
  const built = 'build/native/softroce-port.node';
  const talked = succeed(process.execPath, [imported], project);
  assert.equal(talked, `hello\n${process.arch} ${built}\n`);
});

console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
