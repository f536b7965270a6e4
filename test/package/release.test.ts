// What the pages around a release say is so: entries and their stability, commands of workflows.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ENTRIES, MANIFEST, ROOT } from './packed.js';
import { workflowJobs } from './workflow.js';

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

describe('what a release goes by', () => {
  it('docs/versions.md has a row for each entry, and none besides', () => {
    const rows = [...read('docs/versions.md').matchAll(/^\| `(dapl[\w/-]*)` \|/gm)];
    assert.deepEqual(rows.map(([, name]) => name).sort(), [...ENTRIES].sort());
  });

  it('docs/api has a report of each entry', () => {
    const reports = readdirSync(join(ROOT, 'docs/api'));
    const expected = ENTRIES.map(
      (name) => `${name.slice('dapl/'.length).replaceAll('/', '-') || 'dapl'}.api.md`,
    );
    assert.deepEqual(reports.sort(), expected.sort());
  });

  it('the changelog has the version, or what comes after it', () => {
    assert.ok(read('CHANGELOG.md').includes(`\n## ${MANIFEST.version}\n`));
  });

  it('each command of a workflow is one of this repository, and CI runs it', () => {
    const jobs = workflowJobs();
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    // Lines of the script that are commands, whatever function of it runs them.
    const ci = read('.ci/run').match(/^ *(?:apart )?(?:one|suite) .*$/gm) ?? [];
    assert.deepEqual(
      jobs.map(({ name, commands }) => [name, commands.length > 0]),
      [
        ['test', true],
        ['everything', true],
      ],
    );
    for (const command of jobs.flatMap(({ commands }) => commands)) {
      const [program = '', verb = '', script = verb] = command.split(' ');
      if (program === '.ci/run') {
        assert.ok(statSync(join(ROOT, program)).mode & 0o100, `${program} cannot be run`);
        continue;
      }
      assert.equal(program, 'npm', command);
      assert.ok(verb === 'ci' || script in scripts, `${command}: no such script`);
      assert.ok(
        ci.some((line) => `${line} `.includes(` ${command} `)),
        `${command}: .ci/run does not run it`,
      );
    }
  });

  it('the workflow of a release checks before it publishes, and signs where it is from', () => {
    const [publish] = workflowJobs('release.yml');
    const commands = publish?.commands ?? [];
    const placeOf = (part: string): number => commands.findIndex((line) => line.includes(part));
    const order = ['release-check.mjs', '.ci/run', 'npm pack', 'npm publish'].map(placeOf);
    assert.ok(!order.includes(-1), commands.join('\n'));
    assert.deepEqual(
      order,
      [...order].sort((a, b) => a - b),
    );
    assert.match(commands.at(-1) ?? '', / --provenance /);
    assert.match(read('.github/workflows/release.yml'), /^ +id-token: write$/m);
  });

  it('npm publish asks the release check too', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    assert.equal(scripts['prepublishOnly'], 'node .ci/release-check.mjs');
  });

  it('SECURITY.md names the field that has the contact, CODE_OF_CONDUCT.md that section', () => {
    assert.match(read('SECURITY.md'), /`security\.contact` in \[package\.json\]\(package\.json\)/);
    assert.match(read('CODE_OF_CONDUCT.md'), /\]\(SECURITY\.md#reporting\)/);
  });
});

describe('the release check', () => {
  const owned = {
    homepage: 'https://example.org',
    repository: { type: 'git', url: 'git+https://example.org/dapl.git' },
    bugs: { url: 'https://example.org/bugs' },
    security: { contact: 'security@example.org' },
  };
  let directory: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'dapl-release-'));
    mkdirSync(join(directory, '.ci'));
    cpSync(join(ROOT, '.ci/release-check.mjs'), join(directory, '.ci/release-check.mjs'));
    writeFileSync(join(directory, 'CHANGELOG.md'), '# Changelog\n\n## 1.2.3\n');
  });
  afterEach(() => rmSync(directory, { recursive: true }));

  function check(manifest: object, ...args: readonly string[]): [code: unknown, said: string] {
    const text = JSON.stringify({ version: '1.2.3', ...manifest });
    writeFileSync(join(directory, 'package.json'), text);
    const script = join(directory, '.ci/release-check.mjs');
    const { status, stderr } = spawnSync(process.execPath, [script, ...args], { encoding: 'utf8' });
    return [status, stderr];
  }

  it('has nothing to say of a package that is ready', () => {
    assert.deepEqual(check(owned), [0, '']);
    assert.deepEqual(check(owned, 'v1.2.3'), [0, '']);
  });

  it('refuses one whose owner has not said what only the owner knows', () => {
    const facts = ['homepage', 'repository.url', 'bugs.url', 'security.contact'];
    const sentences = facts.map(
      (name) => `package.json has no ${name}: only the owner can fill it in.\n`,
    );
    assert.deepEqual(check({}), [1, sentences.join('')]);
    const empty = { ...owned, security: { contact: '' } };
    assert.deepEqual(check(empty), [1, sentences[3]]);
  });

  it('refuses another version than that of the tag or the changelog', () => {
    const [code, said] = check({ ...owned, version: '1.2.4' }, 'v1.2.3');
    assert.equal(code, 1);
    assert.match(said, /no section "## 1\.2\.4"/);
    assert.match(said, /The tag is v1\.2\.3, but package\.json has the version 1\.2\.4\./);
  });
});
