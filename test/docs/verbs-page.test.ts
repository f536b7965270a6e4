// docs/verbs.md: each capability has a row, and what its rows name exists and runs.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { behaviourGroups } from '../../plugins/testing/suite/transfers/groups.js';
import { CAPABILITIES } from '../../plugins/testing/suite/capabilities.js';
import { allCases } from '../guest/cases/index.js';
import type { Lab } from '../guest/lab.js';

const root = join(import.meta.dirname, '../../..');
const text = readFileSync(join(root, 'docs/verbs.md'), 'utf8');

interface Row {
  readonly capability: string;
  readonly cells: readonly [overRxe: string, againstStub: string];
}

const spans = (cell: string): string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, s = '']) => s);

function rows(): Row[] {
  const [, part = ''] = text.split('## What is shown, and by what\n');
  const [section = ''] = part.split('\n## ');
  return section.split('\n').flatMap((line): Row[] => {
    const [, capability = '', overRxe = '', stub = ''] =
      /^\| (.*?) +\| (.*?) +\| (.*?) +\|$/.exec(line) ?? [];
    const isHead = capability === 'Capability' || /^-+$/.test(capability);
    return capability === '' || isHead ? [] : [{ capability, cells: [overRxe, stub] }];
  });
}

/** A lab that no case is run in: their names are wanted. */
function nowhere(): Lab {
  const anything: unknown = new Proxy(() => undefined, {
    get: (_, key) => (key === Symbol.toPrimitive ? () => '' : anything),
    apply: () => anything,
  });
  return anything as Lab;
}

/** What a fixture brings about, and no device has. */
const OF_FIXTURES = ['unreachable', 'cut', 'scripted-faults', 'latency', 'usage'];

function deviceCapabilities(): string[] {
  const source = readFileSync(join(root, 'core/spi/device/device.ts'), 'utf8');
  const [type = ''] = source.slice(source.indexOf('type DeviceCapability')).split(';\n');
  return [...type.matchAll(/\| '([\w-]+)'/g)].map(([, name = '']) => name);
}

/** Full titles of the tests over the stub. */
async function stubTitles(): Promise<Set<string>> {
  const mocha = join(root, 'node_modules/mocha/bin/mocha.js');
  const files = ['verbs', 'cli'].map((room) => join(root, `dist/test/unit/${room}/*.test.js`));
  const flags = ['--dry-run', '--reporter', 'json', '--no-config'];
  const { stdout } = await promisify(execFile)(process.execPath, [mocha, ...flags, ...files], {
    maxBuffer: 1 << 26,
    cwd: root,
  });
  const { tests } = JSON.parse(stdout) as { tests: { fullTitle: string }[] };
  return new Set(tests.map(({ fullTitle }) => fullTitle));
}

describe('docs/verbs.md: what is shown, and by what', () => {
  const table = rows();

  it('has a row for each capability of devices and of the suite', () => {
    const named = new Set(table.flatMap(({ capability }) => spans(capability)));
    const wanted = [...deviceCapabilities(), ...CAPABILITIES].filter(
      (name) => !OF_FIXTURES.includes(name),
    );
    assert.ok(wanted.length > 15);
    assert.deepEqual(
      wanted.filter((name) => !named.has(name)),
      [],
    );
  });

  it('shows each, or says why that is impossible', () => {
    const isShown = (cell: string): boolean =>
      spans(cell).length > 0 || /^suite\b/.test(cell) || /^impossible[:,] .{7}/.test(cell);
    const empty = table.filter(({ cells }) => !cells.every(isShown));
    assert.deepEqual(empty, []);
  });

  it('names cases of the guest that there are', () => {
    const known = new Set(allCases(nowhere(), 'any, version').map(({ name }) => name));
    assert.ok(known.has('verbs: the conformance suite over rxe'));
    const capabilities = new Set(deviceCapabilities());
    const named = table
      .flatMap(({ cells: [overRxe] }) => spans(overRxe))
      .filter((name) => !capabilities.has(name) && name !== 'rdma_reject');
    assert.ok(named.length > 20);
    assert.deepEqual(
      named.filter((name) => !known.has(name)),
      [],
    );
  });

  it('names groups of the suite, and tests over the stub, that there are', async () => {
    const groups = new Set(behaviourGroups.map(({ name }) => name));
    const named = table.flatMap(({ cells: [, stub] }) => spans(stub));
    const titles = await stubTitles();
    assert.ok(named.length > 20);
    assert.deepEqual(
      named.filter((name) => !groups.has(name) && !titles.has(name)),
      [],
    );
  });
});
