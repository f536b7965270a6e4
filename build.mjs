// The one build entry: compile with tsc, drop outputs whose source is gone, build the addons.
//
//   node build.mjs            everything, tests included
//   node build.mjs --library  what a consumer runs (no tests, nor their addons): the quicker half

import { spawn } from 'node:child_process';
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(fileURLToPath(import.meta.url));
const outDir = join(root, 'dist');
const outputSuffix = /\.(?:js|d\.ts)(?:\.map)?$/;

/** tsc never deletes: without this, a removed test would go on running from its old output. */
function pruneStaleOutputs(dir) {
  for (const entry of readdirSync(dir, { withFileTypes: true })) {
    const path = join(dir, entry.name);
    if (entry.isDirectory()) {
      pruneStaleOutputs(path);
      if (readdirSync(path).length === 0) rmSync(path, { recursive: true });
    } else if (outputSuffix.test(entry.name)) {
      const source = join(root, relative(outDir, path)).replace(outputSuffix, '.ts');
      if (!existsSync(source)) rmSync(path);
    }
  }
}

/** Ends with the exit code of the first program that fails. */
function run(...args) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { cwd: root, stdio: 'inherit' });
    child.on('error', reject);
    child.on('close', (code) => {
      if (code !== 0) process.exitCode ||= code ?? 1;
      resolve();
    });
  });
}

if (existsSync(outDir)) pruneStaleOutputs(outDir);
const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');
const isLibrary = process.argv.includes('--library');
const addons = join(root, 'providers/softroce/native/build.mjs');
// The compilers know nothing of each other, and each keeps one processor busy.
await Promise.all([
  run(tsc, '-b', isLibrary ? 'tsconfig.lab.json' : 'tsconfig.json'),
  run(addons, ...(isLibrary ? ['--providers'] : [])),
]);
