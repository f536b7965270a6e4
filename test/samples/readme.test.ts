// The programs at the top of the README, run as they are printed there, each in a process.

import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { patience } from '../support/patience.js';
import { fileOf } from '../support/printed-program.js';

const readme = readFileSync('README.md', 'utf8');

/** A program by the name that stands above it. */
function program(name: string): string {
  const [, code] = new RegExp(`\`${name}\\.mjs\`:\n\n\`\`\`js\n([^]*?)\`\`\``).exec(readme) ?? [];
  assert.ok(code, `the README has no ${name}.mjs`);
  return code;
}

/** Lines that say something: not the empty ones, and those of brackets and `try` and `finally`. */
function lines(...names: readonly string[]): number {
  const said = names.flatMap((name) => program(name).split('\n'));
  return said.filter((line) => !/^[\s{}();]*(try \{|\} finally \{)?$/.test(line)).length;
}

/** What the client writes, once its server has begun to listen. */
async function outputOf(path: string): Promise<string> {
  for (;;) {
    try {
      const timeout = patience(60_000);
      return (await promisify(execFile)(process.execPath, [path], { timeout })).stdout;
    } catch (error) {
      const { stderr = '' } = error as { readonly stderr?: string };
      if (!/DAT_CONN_(?:UNREACHABLE|REFUSED)/.test(stderr)) throw error;
    }
  }
}

describe('README', () => {
  let server: ChildProcess | undefined;
  afterEach(async () => {
    if (server === undefined || server.exitCode !== null) return;
    const gone = once(server, 'exit');
    server.kill();
    await gone;
  });

  for (const [name, output, most] of [
    ['echo', 'hello over RDMA\n', 11],
    ['rpc', `${4 << 20} bytes, all x: true\n`, 30],
  ] as const) {
    it(`has ${name} in ${most} lines, which runs as printed`, async () => {
      assert.ok(lines(`${name}-server`, `${name}-client`) <= most);
      const path = fileOf(program(`${name}-server`), `readme-${name}-server`);
      server = spawn(process.execPath, [path], { stdio: ['ignore', 'inherit', 'inherit'] });
      const client = fileOf(program(`${name}-client`), `readme-${name}-client`);
      assert.equal(await outputOf(client), output);
      // The server goes on: the next one is served as well.
      assert.equal(await outputOf(client), output);
      assert.equal(server.exitCode, null);
    });
  }
});
