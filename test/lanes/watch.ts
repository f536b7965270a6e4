/**
 * `npm run watch`: keeps the build up to date, and after each build runs the tests that import what
 * changed, the closest first. Options are passed to mocha: `npm run watch -- -g "part of a name"`.
 */
import { spawn, spawnSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { affectedTests, importers } from './affected.js';
import { filesBelow, ROOT } from './lanes.js';

/** A change to what everything imports concerns hundreds of files: these come first. */
const MOST_FILES = 40;

const DIST = join(ROOT, 'dist');
const mochaOptions = process.argv.slice(2);

/** Names that programs import, and the modules behind them, relative to dist. */
function packageEntries(): Map<string, string> {
  const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    exports: Record<string, { default?: string } | string>;
  };
  const entries = new Map<string, string>();
  for (const [name, entry] of Object.entries(manifest.exports)) {
    if (typeof entry === 'string' || entry.default === undefined) continue;
    entries.set(`dapl${name.slice(1)}`, entry.default.replace('./dist/', ''));
  }
  return entries;
}

/** Compiled modules that tsc has written since the last call. */
function changedModules(known: Map<string, string>, stamps: Map<string, number>): string[] {
  const changed: string[] = [];
  const files = filesBelow('dist').filter((name) => name.endsWith('.js'));
  for (const path of files.map((file) => file.slice('dist/'.length))) {
    const { mtimeMs } = statSync(join(DIST, path));
    if (stamps.get(path) === mtimeMs) continue;
    stamps.set(path, mtimeMs);
    const text = readFileSync(join(DIST, path), 'utf8');
    // tsc may write a module again that is the same as before.
    if (known.get(path) === text) continue;
    known.set(path, text);
    changed.push(path);
  }
  return changed;
}

function runTests(tests: readonly string[]): void {
  if (tests.length === 0) {
    console.log('No test imports what changed.');
    return;
  }
  const chosen = tests.slice(0, MOST_FILES);
  const left = tests.length - chosen.length;
  if (left > 0) console.log(`The ${MOST_FILES} closest of ${tests.length} files of tests:`);
  const mocha = createRequire(import.meta.url).resolve('mocha/bin/mocha.js');
  const files = chosen.map((path) => join(DIST, path));
  const args = [mocha, '--reporter', 'dot', ...mochaOptions, ...files];
  spawnSync(process.execPath, args, { cwd: ROOT, stdio: 'inherit' });
  if (left > 0) console.log(`${left} more files import it, further away: npm test runs them.`);
}

const entries = packageEntries();
const modules = new Map<string, string>();
const stamps = new Map<string, number>();
changedModules(modules, stamps);

const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');
const build = spawn(process.execPath, [tsc, '-b', '-w', '--preserveWatchOutput'], {
  cwd: ROOT,
  stdio: ['ignore', 'pipe', 'inherit'],
});
process.on('exit', () => build.kill());
for await (const line of createInterface(build.stdout)) {
  if (line.trim() !== '') console.log(line);
  if (!line.includes('Found 0 errors.')) continue;
  const changed = changedModules(modules, stamps);
  if (changed.length === 0) continue;
  console.log(`Changed: ${changed.slice(0, 5).join(', ')}${changed.length > 5 ? ', …' : ''}`);
  // Nothing is compiled meanwhile: what changes during the tests is seen after them.
  runTests(affectedTests(changed, importers(modules, entries)));
}
