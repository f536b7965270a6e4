// The layout rules hold on the tree, and each of them bites: one violation per rule is planted in
// a copy of the tree and must be reported under the rule's name. A rule without a plant fails too.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { ESLint } from 'eslint';

interface Violation {
  readonly from: string;
  readonly rule: { readonly name: string };
}
interface CruiseResult {
  readonly summary: { readonly violations: readonly Violation[]; readonly totalCruised: number };
}
interface Plant {
  readonly rule: string;
  readonly file: string;
  readonly source: string;
}

const root = join(import.meta.dirname, '../..');
const require = createRequire(import.meta.url);
const rules = require(join(root, '.ci/dependency-cruiser.cjs')) as {
  readonly forbidden: readonly { readonly name: string }[];
};

const importing = (...names: string[]): string =>
  names.map((name, i) => `import * as planted${i} from '${name}';\nvoid planted${i};\n`).join('');
const plant = (rule: string, file: string, ...imports: string[]): Plant => ({
  rule,
  file,
  source: importing(...imports),
});

/** Files that the plants import; they break nothing themselves. */
const targets = [
  'core/planted-target.ts',
  'core/dat/planted-target.ts',
  'core/flow/planted-target.ts',
  'core/registry/planted-target.ts',
  'core/rx/planted-target.ts',
  'core/spi/planted-target.ts',
  'plugins/cm/planted-target.ts',
  'plugins/lab/planted-target.ts',
  'plugins/mad/planted-target.ts',
  'providers/hca/planted-target.ts',
  'providers/mock/planted-target.ts',
  'samples/ulp/planted/glue/planted-target.ts',
  'samples/ulp/planted/session/planted-target.ts',
  'test/planted-target.ts',
  'dist/core/planted-target.js',
];

const dependencyPlants: readonly Plant[] = [
  plant('core-knows-only-core', 'core/planted-1.ts', '../plugins/cm/planted-target.js'),
  plant('core-knows-only-core', 'core/planted-2.ts', '../providers/mock/planted-target.js'),
  plant('spi-knows-only-the-spi', 'core/spi/planted-1.ts', '../planted-target.js'),
  plant('spi-knows-only-the-spi', 'core/spi/planted-2.ts', 'rxjs'),
  plant('dat-error-knows-nothing', 'core/errors/dat/planted-1.ts', '../../spi/planted-target.js'),
  plant('events-know-no-objects', 'core/evd/planted-1.ts', '../dat/planted-target.js'),
  plant('core-knows-no-flow', 'core/dat/planted-1.ts', '../flow/planted-target.js'),
  plant('flow-takes-an-open-adapter', 'core/flow/planted-1.ts', '../registry/planted-target.js'),
  plant('module-knows-only-the-spi', 'plugins/cm/planted-1.ts', '../mad/planted-target.js'),
  plant('module-knows-only-the-spi', 'plugins/xrc/planted-1.ts', '../../core/planted-target.js'),
  plant(
    'node-entry-knows-only-core',
    'plugins/node/planted-1.ts',
    '../../providers/mock/planted-target.js',
  ),
  plant('pcap-knows-only-the-spi', 'plugins/pcap/planted-1.ts', '../../core/planted-target.js'),
  plant('wrappers-know-only-the-spi', 'plugins/trace/planted-1.ts', '../cm/planted-target.js'),
  plant(
    'wrappers-know-only-the-spi',
    'plugins/faults/planted-1.ts',
    '../../providers/mock/planted-target.js',
  ),
  plant('hca-knows-only-the-spi', 'providers/hca/planted-1.ts', '../../core/planted-target.js'),
  plant(
    'slots-know-only-the-spi',
    'providers/shared-address/planted-1.ts',
    '../hca/planted-target.js',
  ),
  plant('pacing-knows-only-itself', 'providers/hca/pacing/planted-1.ts', '../planted-target.js'),
  plant(
    'host-knows-only-the-pacing',
    'providers/host/planted-1.ts',
    '../../plugins/cm/planted-target.js',
  ),
  plant('host-knows-only-the-pacing', 'providers/host/planted-2.ts', '../hca/planted-target.js'),
  plant('provider-knows-no-provider', 'providers/kit/planted-1.ts', '../mock/planted-target.js'),
  plant(
    'provider-knows-no-provider',
    'providers/softroce/planted-1.ts',
    '../mock/planted-target.js',
  ),
  plant(
    'provider-knows-spi-and-modules',
    'providers/softroce/planted-2.ts',
    '../../core/planted-target.js',
  ),
  plant(
    'provider-knows-entries-of-modules',
    'providers/softroce/planted-4.ts',
    '../../plugins/cm/planted-target.js',
  ),
  plant('samples-are-strangers', 'samples/planted-1.ts', '../core/planted-target.js'),
  plant('samples-are-strangers', 'plugins/cli/planted-1.ts', '../cm/planted-target.js'),
  plant('samples-are-strangers', 'plugins/easy/planted-1.ts', '../../core/planted-target.js'),
  plant(
    'ulp-wire-knows-only-the-wire',
    'samples/ulp/planted/wire/planted-1.ts',
    '../session/planted-target.js',
  ),
  plant('ulp-wire-knows-only-the-wire', 'samples/ulp/planted/wire/planted-2.ts', 'dapl'),
  plant(
    'ulp-session-knows-no-glue',
    'samples/ulp/planted/session/planted-1.ts',
    '../glue/planted-target.js',
  ),
  plant('ulp-session-knows-no-glue', 'samples/ulp/planted/session/planted-2.ts', 'dapl'),
  plant('no-self-reference-inside', 'providers/softroce/planted-3.ts', 'dapl'),
  plant('nothing-stands-on-the-lab', 'plugins/cm/planted-9.ts', '../lab/planted-target.js'),
  plant('mock-runs-in-a-browser', 'providers/mock/planted-9.ts', 'node:perf_hooks'),
  plant('nothing-depends-on-tests', 'samples/planted-2.ts', '../test/planted-target.js'),
  plant('rxjs-only-in-core-stream-and-rx', 'core/planted-3.ts', 'rxjs'),
  plant('rxjs-only-in-core-stream-and-rx', 'core/dat/planted-2.ts', 'rxjs'),
  plant('nothing-stands-on-rx', 'core/dat/planted-3.ts', '../rx/planted-target.js'),
  plant('tsyringe-only-in-composition-roots', 'core/planted-4.ts', 'tsyringe'),
  plant('tsyringe-only-in-composition-roots', 'providers/mock/planted-1.ts', 'tsyringe'),
  plant('winston-only-in-the-node-entry', 'providers/mock/planted-2.ts', 'winston'),
  ...['node:dgram', 'node:net', 'node:fs', 'node:timers', 'node:perf_hooks', 'node:crypto'].map(
    (name, i) => plant('sans-io-imports-no-io', `core/planted-io-${i}.ts`, name),
  ),
  plant('sans-io-imports-no-io', 'plugins/mad/planted-1.ts', 'node:timers/promises'),
  plant('sans-io-imports-no-io', 'plugins/cm/planted-2.ts', 'node:dgram'),
  plant('sans-io-imports-no-io', 'plugins/xrc/planted-2.ts', 'node:net'),
  plant('sans-io-imports-no-io', 'providers/hca/planted-2.ts', 'node:fs'),
  plant('sans-io-imports-no-io', 'providers/shared-address/planted-2.ts', 'node:net'),
  ...['messages', 'host-domain', 'rings'].map((name) =>
    plant('sans-io-imports-no-io', `providers/softroce/xrc-host/${name}.ts`, 'node:net'),
  ),
  plant('sans-io-imports-no-io', 'samples/ulp/planted/wire/planted-3.ts', 'node:net'),
  plant('sans-io-imports-no-io', 'samples/ulp/planted/session/deep/planted-3.ts', 'node:timers'),
  plant('no-dev-dependency-shipped', 'samples/planted-3.ts', 'fast-check'),
  plant('no-import-of-outputs', 'samples/planted-4.ts', '../dist/core/planted-target.js'),
  plant('no-unresolvable', 'samples/planted-5.ts', 'dapl/core/registry.js'),
  plant('no-circular', 'core/planted-5.ts', './planted-6.js'),
  plant('no-unresolvable', 'core/planted-6.ts', './planted-5.js', './nowhere.js'),
];

const lintPlants: readonly Plant[] = [
  ...['Date.now()', 'new Date()', 'performance.now()', 'globalThis.setTimeout'].map((code, i) => ({
    rule: 'no-restricted-globals',
    file: `core/planted-clock-${i}.ts`,
    source: `export const planted: unknown = ${code};\n`,
  })),
  ...['setTimeout', 'setInterval', 'setImmediate', 'queueMicrotask'].map((code, i) => ({
    rule: 'no-restricted-globals',
    file: `plugins/cm/planted-timer-${i}.ts`,
    source: `export const planted: unknown = ${code};\n`,
  })),
  ...['wire', 'session'].map((layer) => ({
    rule: 'no-restricted-globals',
    file: `samples/ulp/planted/${layer}/planted-clock.ts`,
    source: 'export const planted: unknown = Date.now();\n',
  })),
  {
    rule: 'no-restricted-globals',
    file: 'providers/softroce/xrc-host/host-domain.ts',
    source: 'export const planted: unknown = Date.now();\n',
  },
  ...['Math.random()', 'process.hrtime()', 'process.nextTick'].map((code, i) => ({
    rule: 'no-restricted-properties',
    file: `providers/hca/planted-property-${i}.ts`,
    source: `export const planted: unknown = ${code};\n`,
  })),
  {
    rule: 'no-restricted-syntax',
    file: 'providers/host/planted-default.ts',
    source: 'export default 1;\n',
  },
  {
    rule: 'no-restricted-syntax',
    file: 'providers/host/planted-enum.ts',
    source: 'export enum Planted { one }\n',
  },
  {
    rule: '@typescript-eslint/no-explicit-any',
    file: 'samples/planted-any.ts',
    source: 'export const planted: any = 1;\n',
  },
  {
    rule: '@typescript-eslint/no-floating-promises',
    file: 'samples/planted-floating.ts',
    source: 'Promise.resolve(1);\nexport {};\n',
  },
  ...['core', 'plugins/cm', 'providers/host', 'samples'].map((folder) => ({
    rule: '@typescript-eslint/no-floating-promises',
    file: `${folder}/planted-void.ts`,
    source: 'void Promise.resolve(1);\nexport {};\n',
  })),
  {
    rule: 'no-restricted-syntax',
    file: 'samples/planted-return-void.ts',
    source: 'export function planted(): void {\n  return void Promise.resolve(1);\n}\n',
  },
  {
    rule: '@typescript-eslint/consistent-type-imports',
    file: 'samples/planted-type.ts',
    source:
      "import { Socket } from 'node:net';\nexport const planted = (s: Socket): Socket => s;\n",
  },
  {
    rule: '@typescript-eslint/switch-exhaustiveness-check',
    file: 'samples/planted-switch.ts',
    source: [
      "export function planted(x: 'a' | 'b'): void {",
      "  switch (x) { case 'a': break; }",
      '}',
      '',
    ].join('\n'),
  },
];

/** Runs a tool that reports JSON, in a process of its own: its heap would slow all later tests. */
function report(cwd: string, bin: string, ...args: string[]): unknown {
  const { stdout, stderr } = spawnSync(
    process.execPath,
    [join(root, 'node_modules', bin), ...args],
    { cwd, encoding: 'utf8', maxBuffer: 2 ** 28 },
  );
  assert.notEqual(stdout, '', stderr);
  return JSON.parse(stdout);
}

function cruise(cwd: string): CruiseResult {
  const bin = 'dependency-cruiser/bin/dependency-cruise.mjs';
  const args = ['--config', '.ci/dependency-cruiser.cjs', '--output-type', 'json', '.'];
  return report(cwd, bin, ...args) as CruiseResult;
}

function write(dir: string, file: string, source: string): void {
  mkdirSync(dirname(join(dir, file)), { recursive: true });
  writeFileSync(join(dir, file), source);
}

/** A tree with our rules, our packages and nothing but the planted files. */
function makeTree(plants: readonly Plant[]): string {
  const dir = mkdtempSync(join(tmpdir(), 'dapl-architecture-'));
  const configs = ['.ci/dependency-cruiser.cjs', 'eslint.config.js', 'package.json'];
  const compilerConfigs = ['tsconfig.json', 'tsconfig.build.json', 'tsconfig.test.json'];
  for (const file of [...configs, ...compilerConfigs]) cpSync(join(root, file), join(dir, file));
  symlinkSync(join(root, 'node_modules'), join(dir, 'node_modules'));
  for (const file of targets) write(dir, file, 'export const target = 1;\n');
  for (const folder of ['core', 'plugins/node']) {
    for (const name of ['index.js', 'index.d.ts'])
      write(dir, `dist/${folder}/${name}`, 'export {};\n');
  }
  for (const { file, source } of plants) write(dir, file, source);
  return dir;
}

describe('architecture', () => {
  let dir: string;
  afterEach(() => {
    if (dir) rmSync(dir, { recursive: true });
    dir = '';
  });

  it('holds on the tree', () => {
    const { summary } = cruise(root);
    assert.ok(summary.totalCruised > 10, 'the cruise saw the tree');
    const found = summary.violations.map(({ rule, from }) => `${rule.name}: ${from}`);
    assert.deepEqual(found, []);
  });

  it('reports a planted violation of every dependency rule by name', () => {
    dir = makeTree(dependencyPlants);
    const { violations } = cruise(dir).summary;
    const found = new Set(violations.map(({ rule, from }) => `${rule.name}: ${from}`));
    const missed = dependencyPlants.filter(({ rule, file }) => !found.has(`${rule}: ${file}`));
    assert.deepEqual(missed, []);
    const planted = new Set(dependencyPlants.map(({ rule }) => rule));
    const unproven = rules.forbidden.filter(({ name }) => !planted.has(name));
    assert.deepEqual(unproven, [], 'every rule has a plant');
    const accused = violations.filter(({ from }) => targets.includes(from));
    assert.deepEqual(accused, [], 'files that break no rule are clean');
  });

  it('reports planted clocks, timers, randomness and style by lint rule', () => {
    dir = makeTree(lintPlants);
    const plants = lintPlants.map(({ file }) => file);
    const args = ['--format', 'json', '**/planted-*.ts', ...plants];
    const results = report(dir, 'eslint/bin/eslint.js', ...args) as ESLint.LintResult[];
    const found = new Set(
      results.flatMap(({ filePath, messages }) =>
        messages.map(({ ruleId }) => `${ruleId ?? 'fatal'}: ${filePath.slice(dir.length + 1)}`),
      ),
    );
    const missed = lintPlants.filter(({ rule, file }) => !found.has(`${rule}: ${file}`));
    assert.deepEqual(missed, []);
    const clean = targets.filter((file) => [...found].some((line) => line.endsWith(file)));
    assert.deepEqual(clean, [], 'files without a violation are clean');
  });
});
