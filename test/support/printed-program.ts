/**
 * Programs that stand in README and docs, run as they are but for one thing: the addresses printed
 * there, 127.0.0.x, are everybody's, and those that they are run with are this run's own.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pid } from 'node:process';
import { promisify } from 'node:util';
import { networkOf } from './loopback.js';
import { patience } from './patience.js';

/** Of the addresses that take the place of 127.0.0.x. */
const NETWORK = 1;

const written = new Set<string>();
process.once('exit', () => {
  for (const path of written) rmSync(path, { force: true });
});

/** Makes it a file, until the tests are over. @returns where, inside the package that it names */
export function fileOf(code: string, name: string): string {
  const path = join(import.meta.dirname, `${name}-${pid}.mjs`);
  writeFileSync(path, code.replaceAll('127.0.0.', `${networkOf(NETWORK)}.`));
  written.add(path);
  return path;
}

/** The sample `hello`, which is README's program beneath `Hello`. @returns the path of its file */
export function hello(): string {
  const path = join(import.meta.dirname, '../../samples/hello/main.js');
  return fileOf(readFileSync(path, 'utf8'), 'hello');
}

/** The program in JavaScript; decorators are those of `experimentalDecorators`. */
async function scriptOf(code: string, language: 'js' | 'ts'): Promise<string> {
  if (language === 'js') return code;
  const { default: ts } = await import('typescript');
  const { ES2022 } = ts.ScriptTarget;
  const compilerOptions = { target: ES2022, module: ts.ModuleKind.ES2022 };
  const options = { ...compilerOptions, experimentalDecorators: true };
  return ts.transpileModule(code, { compilerOptions: options }).outputText;
}

/** Runs a program of a page of docs: of those in that language, the first is 0. */
export async function runExample(
  page: string,
  language: 'js' | 'ts' = 'js',
  index = 0,
): Promise<{ readonly stdout: string; readonly stderr: string }> {
  const text = readFileSync(join(import.meta.dirname, '../../../docs', `${page}.md`), 'utf8');
  const programs = text.matchAll(new RegExp(`\`\`\`${language}\n(import [^]*?)\`\`\``, 'g'));
  const code = [...programs][index]?.[1];
  assert.ok(code, `docs/${page}.md has no example ${index}`);
  const path = fileOf(await scriptOf(code, language), `${page}-${language}-example-${index}`);
  return promisify(execFile)(process.execPath, [path], { timeout: patience(60_000) });
}
