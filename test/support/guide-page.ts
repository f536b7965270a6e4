/**
 * Pages of docs/guides as folders of programs: a block of code whose file name stands above it is
 * that file. They run as they are printed, but for the addresses (printed-program.ts).
 */
import assert from 'node:assert/strict';
import { type ChildProcessByStdio, execFile, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { env } from 'node:process';
import type { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { networkOf } from './loopback.js';
import { patience } from './patience.js';

/** Of the addresses that take the place of 127.0.0.x. */
const NETWORK = 1;
const TIMEOUT_MS = 60_000;

const root = join(import.meta.dirname, '../../..');
const guides = join(root, 'docs/guides');
const made = new Set<string>();
process.once('exit', () => {
  for (const path of made) rmSync(path, { recursive: true, force: true });
});

/** The text of a page. */
export function guide(name: string): string {
  return readFileSync(join(guides, `${name}.md`), 'utf8');
}

/** Its blocks of code of one language, in their order. */
export function blocksOf(text: string, language: string): string[] {
  const blocks = text.matchAll(new RegExp(`^\`\`\`${language}\n([^]*?)^\`\`\``, 'gm'));
  return [...blocks].map(([, code = '']) => code);
}

/** What a program has written, where it has ended well. */
export interface Output {
  readonly stdout: string;
  readonly stderr: string;
}

/** A folder of programs inside the package, which they import by its name. */
export class ProgramFolder {
  private readonly path: string;

  /** The folder is there until the tests are over. */
  constructor() {
    this.path = mkdtempSync(join(import.meta.dirname, 'guide-'));
    made.add(this.path);
  }

  /** Writes one file. */
  add(name: string, code: string): this {
    writeFileSync(join(this.path, name), code.replaceAll('127.0.0.', `${networkOf(NETWORK)}.`));
    return this;
  }

  /** Writes each block of a page that stands beneath the name of its file. */
  addAll(text: string): this {
    const named = [...text.matchAll(/^`([\w.-]+)`:\n\n```(?:js|json)\n([^]*?)^```/gm)];
    assert.ok(named.length > 0, 'the page names no program');
    for (const [, name = '', code = ''] of named) this.add(name, code);
    return this;
  }

  /** The folder has a package.json of its own: this package is one that it has installed. */
  withDapl(): this {
    mkdirSync(join(this.path, 'node_modules'));
    symlinkSync(root, join(this.path, 'node_modules/dapl'));
    return this;
  }

  /**
   * Runs a program in that folder, in a process of its own.
   * @param args of Node: options, the program, arguments of it
   * @throws Error as `execFile`, when it fails
   */
  run(args: readonly string[], variables: Readonly<Record<string, string>> = {}): Promise<Output> {
    const options = {
      cwd: this.path,
      timeout: patience(TIMEOUT_MS),
      env: { ...env, ...variables },
    };
    return promisify(execFile)(process.execPath, args, options);
  }

  /** Starts one that goes on; it is killed when it hangs. */
  start(args: readonly string[]): ChildProcessByStdio<null, Readable, null> {
    return spawn(process.execPath, args, {
      cwd: this.path,
      timeout: patience(TIMEOUT_MS),
      stdio: ['ignore', 'pipe', 'inherit'],
    });
  }
}
