/**
 * The `run:` lines of ci.yml, as a runner takes them: in a clone of what is committed, one after
 * the other, of each job (npm run workflow -- [JOB...]). CI itself only checks that each is a
 * command of this repository that CI runs too (release.test.ts): it is the last of these lines.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROOT, succeed } from './packed.js';

export interface Job {
  readonly name: string;
  readonly commands: readonly string[];
}

/** Jobs of a workflow. Those of a release publish: nothing but a test reads them. */
export function workflowJobs(file = 'ci.yml'): Job[] {
  const text = readFileSync(join(ROOT, '.github/workflows', file), 'utf8');
  const [, jobs = ''] = text.split(/^jobs:$/m);
  return jobs.split(/^ {2}(?=\w)/m).flatMap((part) => {
    const [, name] = /^([\w-]+):/.exec(part) ?? [];
    const commands = [...part.matchAll(/\brun: (.*)$/gm)].map(([, command = '']) => command);
    return name === undefined ? [] : [{ name, commands }];
  });
}

function runJob({ name, commands }: Job): boolean {
  const clone = mkdtempSync(join(tmpdir(), `dapl-job-${name}-`));
  try {
    succeed('git', ['clone', '--quiet', ROOT, clone]);
    return commands.every((command) => {
      const start = Date.now();
      const options = {
        cwd: clone,
        stdio: 'inherit',
        env: { ...process.env, CI: 'true' },
      } as const;
      const { status } = spawnSync('bash', ['-e', '-c', command], options);
      const seconds = Math.round((Date.now() - start) / 1000);
      console.log(`${status === 0 ? 'PASS' : 'FAIL'}  ${name}: ${command} (${seconds} s)`);
      return status === 0;
    });
  } finally {
    rmSync(clone, { recursive: true });
  }
}

if (import.meta.filename === process.argv[1]) {
  const jobs = workflowJobs();
  const names = process.argv.slice(2);
  const unknown = names.find((name) => jobs.every((job) => job.name !== name));
  if (unknown !== undefined) {
    console.error(`there is no job ${unknown}: ${jobs.map(({ name }) => name).join(', ')}`);
    process.exit(2);
  }
  const chosen = jobs.filter(({ name }) => names.length === 0 || names.includes(name));
  const failed = chosen.filter((job) => !runJob(job)).length;
  console.log(`${chosen.length - failed} passed, ${failed} failed`);
  process.exitCode = failed === 0 ? 0 : 1;
}
