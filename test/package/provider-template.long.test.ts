// The template of a provider is a package outside of this one: it is built against the tarball,
// passes the suites that ship, and an application runs over it.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { install, ROOT } from './packed.js';

/** What the template's own package.json has beside the package. */
const TOOLS = ['typescript', '@types/node', 'undici-types'];

interface Report {
  readonly counts: { readonly passed: number; readonly failed: number };
  readonly missing: Readonly<Record<string, number>>;
  readonly results: readonly {
    readonly name: string;
    readonly outcome: string;
    readonly message?: string;
  }[];
}

describe('The template of a provider, as a package of its own', function () {
  this.timeout(300_000);
  const project = mkdtempSync(join(tmpdir(), 'dapl-provider-'));

  function node(...args: readonly string[]): string {
    const given = { cwd: project, encoding: 'utf8', maxBuffer: 1 << 26 } as const;
    const { status, stdout, stderr } = spawnSync(process.execPath, args, given);
    assert.equal(status, 0, `${stdout}\n${stderr}`);
    return stdout;
  }

  before(async () => {
    await install(project, ...TOOLS);
    cpSync(join(ROOT, 'samples/provider-template'), project, { recursive: true });
    for (const name of ['package', 'tsconfig']) {
      renameSync(join(project, `${name}.template.json`), join(project, `${name}.json`));
    }
  });
  after(() => {
    rmSync(project, { recursive: true });
  });

  it('builds against the types of the tarball', () => {
    node('node_modules/typescript/bin/tsc');
  });

  it('passes the suites of the tarball', () => {
    const report = JSON.parse(node('dist/conformance.js', 'json', 'quick')) as Report;
    const failed = report.results.filter(({ outcome }) => outcome === 'failed');
    assert.deepEqual(failed, []);
    assert.ok(report.counts.passed > 100, `${report.counts.passed} passed`);
    assert.ok((report.missing['ipv6'] ?? 0) > 20);
  });

  it('carries an application from thread to thread', () => {
    assert.equal(node('dist/main.js'), 'HELLO FROM ANOTHER THREAD\n');
  });
});
