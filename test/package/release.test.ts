// What the pages around a release say is so: entries and their stability, commands of workflows.

import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ENTRIES, MANIFEST, ROOT } from './packed.js';

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
    const ci = read('.ci/run');
    for (const file of readdirSync(join(ROOT, '.github/workflows'))) {
      const commands = [...read(`.github/workflows/${file}`).matchAll(/\brun: (.*)$/gm)];
      assert.ok(commands.length > 0, file);
      for (const [, command = ''] of commands) {
        const [program = '', verb = ''] = command.split(' ');
        const runs = program.startsWith('.')
          ? existsSync(join(ROOT, program))
          : program === 'npm' && ci.includes(`npm ${verb}`);
        assert.ok(runs, `${file}: ${command}`);
      }
    }
  });
});
