// What the pages around a release say is so: entries and their stability, commands of workflows.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync } from 'node:fs';
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
    const ci = read('.ci/run').match(/^ *(?:one|suite) .*$/gm) ?? [];
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
});
