// docs/conformance.md: no case is missing, and what its tables name exists.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { DEVICE_CAPABILITIES } from '../../plugins/testing/device/fixture.js';
import { PORT_CAPABILITIES } from '../../plugins/testing/port/fixture.js';
import { CAPABILITIES } from '../../plugins/testing/suite/capabilities.js';
import { behaviourGroups } from '../../plugins/testing/suite/transfers/groups.js';
import { CASE_NAMES } from '../data/case-names.js';

const root = join(import.meta.dirname, '../../..');
const text = readFileSync(join(root, 'docs/conformance.md'), 'utf8');

interface Row {
  readonly cases: readonly string[];
  readonly tests: readonly string[];
  readonly reason: string;
}

const spans = (cell: string): string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, s = '']) => s);

/** The rows of the tables under `### <section>`. */
function rowsOf(section: string): Row[] {
  const [, part = ''] = text.split(`\n### ${section}\n`);
  const [table = ''] = part.split('\n#');
  return table.split('\n').flatMap((line): Row[] => {
    const [, names = '', here = ''] = /^\| (`.*?`) +\| (.*?) *\|$/.exec(line) ?? [];
    if (names === '') return [];
    return [{ cases: spans(names), tests: spans(here), reason: here.replace(/`[^`]+`/g, '') }];
  });
}

const sections = Object.keys(CASE_NAMES);
const named = sections.flatMap(rowsOf).flatMap(({ tests }) => tests);
const HCA = 'HCA: ';
const isUnit = (name: string): boolean => name.startsWith(HCA);

/** Full titles of the tests of the software HCA. */
async function hcaTitles(): Promise<Set<string>> {
  const mocha = join(root, 'node_modules/mocha/bin/mocha.js');
  const flags = ['--dry-run', '--reporter', 'json', '--no-config'];
  const files = join(root, 'dist/test/unit/hca/*.test.js');
  const { stdout } = await promisify(execFile)(process.execPath, [mocha, ...flags, files], {
    maxBuffer: 1 << 26,
    cwd: root,
  });
  const { tests } = JSON.parse(stdout) as { tests: { fullTitle: string }[] };
  return new Set(tests.map(({ fullTitle }) => HCA + fullTitle));
}

describe('docs/conformance.md', () => {
  for (const [section, names] of Object.entries(CASE_NAMES)) {
    it(`has each case of ${section} once, with a test or a reason`, () => {
      const rows = rowsOf(section);
      const present = rows.flatMap(({ cases }) => cases);
      assert.deepEqual([...present].sort(), [...names].sort());
      const idle = rows.filter(({ tests, reason }) => tests.length === 0 && reason.length < 12);
      assert.deepEqual(idle, []);
    });
  }

  it('names behaviours that the suite has', () => {
    const known = new Set(
      behaviourGroups.flatMap(({ name, behaviours }) =>
        behaviours.map((b) => `${name}: ${b.name}`),
      ),
    );
    const wanted = named.filter((name) => !isUnit(name));
    assert.deepEqual(
      wanted.filter((name) => !known.has(name)),
      [],
    );
    assert.ok(wanted.length > 120);
  });

  it('names tests that the software HCA has', async () => {
    const wanted = named.filter(isUnit);
    const known = await hcaTitles();
    assert.deepEqual(
      wanted.filter((name) => !known.has(name)),
      [],
    );
    assert.ok(wanted.length > 15);
  });

  it('has a row for each capability', () => {
    const [, part = ''] = text.split('## Capabilities\n');
    const rows = [...(part.split('\n## ')[0] ?? '').matchAll(/^\| `([\w-]+)`/gm)];
    assert.deepEqual(rows.map(([, name]) => name).sort(), [...CAPABILITIES].sort());
  });

  it('has the capabilities of devices and of ports', () => {
    const lists = [...text.matchAll(/ Capabilities: ((?:`[\w-]+`(?:, )?)+)/g)];
    assert.deepEqual(
      lists.map(([, list = '']) => spans(list)),
      [DEVICE_CAPABILITIES, PORT_CAPABILITIES],
    );
  });

  it('says how many behaviours need faults', () => {
    const isFaulty = (need: string): boolean => need === 'cut' || need === 'scripted-faults';
    const faulty = behaviourGroups
      .flatMap(({ behaviours }) => behaviours)
      .filter(({ needs }) => needs.some(isFaulty));
    const said = `which ${faulty.length} behaviours need`;
    const guide = readFileSync(join(root, 'docs/guides/write-a-provider.md'), 'utf8');
    assert.deepEqual([text.includes(said), guide.includes(said)], [true, true], said);
  });

  it('is complete: behaviours have names of their own', () => {
    for (const { name, behaviours } of behaviourGroups) {
      const names = behaviours.map((behaviour) => behaviour.name);
      assert.equal(new Set(names).size, names.length, name);
    }
  });
});
