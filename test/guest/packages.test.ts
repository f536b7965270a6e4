// What a machine without the tools is told: the package managers here are scripts that take notes.
import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { ensurePackages } from './packages.js';

describe('guest: packages', () => {
  const path = process.env['PATH'];
  const getuid = process.getuid;
  let dir = '';

  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'dapl-packages-'));
    process.env['PATH'] = dir;
  });

  afterEach(() => {
    process.env['PATH'] = path;
    if (getuid !== undefined) process.getuid = getuid;
    rmSync(dir, { recursive: true, force: true });
  });

  function script(name: string, text: string): void {
    writeFileSync(join(dir, name), `#!/bin/sh\n${text}\n`);
    chmodSync(join(dir, name), 0o755);
  }

  /** Everything is installed but what is named. */
  function debianWithout(missing: string): void {
    script('dpkg-query', `case "$*" in *${missing}*) exit 1;; esac; printf installed`);
    script('apt-get', `echo "$*" >> '${dir}/notes'`);
    script('unshare', 'exit 0');
  }

  it('no Debian: the sentence names the packages', () => {
    const logged: string[] = [];
    const why = ensurePackages((line) => logged.push(line));
    assert.match(why ?? '', /^this is no Debian: .*\bqemu-system-x86\b.*\btshark\b/);
    assert.deepEqual(logged, []);
  });

  it('not root: the sentence is the command that root would type', () => {
    debianWithout('tshark');
    process.getuid = () => 1000;
    assert.equal(
      ensurePackages(() => assert.fail('nothing is installed')),
      'not root, and packages are missing: run "apt-get install --no-install-recommends tshark"',
    );
  });

  it('root: what is missing is named, and installed', () => {
    debianWithout('tshark');
    process.getuid = () => 0;
    const logged: string[] = [];
    ensurePackages((line) => logged.push(line));
    assert.deepEqual(logged, ['installing with apt-get: tshark']);
    const notes = readFileSync(join(dir, 'notes'), 'utf8').trim().split('\n');
    assert.match(notes[0] ?? '', / update$/);
    assert.match(notes[1] ?? '', / install --yes --no-install-recommends tshark$/);
    assert.equal(notes.length, 2);
  });

  it('all there, but not root: nothing can run, and why', () => {
    debianWithout('nothing-of-ours');
    process.getuid = () => 1000;
    const why = ensurePackages(() => assert.fail('nothing is installed'));
    assert.match(why ?? '', /^not root: tap devices/);
  });
});
