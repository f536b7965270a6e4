// Builds native code without node-gyp: one compiler call, no Python, no headers to download.
//
//   node providers/softroce/native/build.mjs [--providers | directory...]
//
// --providers: every providers/*/native that holds a native.json. Without arguments: those, and
// test/native/*.
//
// Such a directory holds its sources (*.c, *.cc; in folders, too) and a native.json:
//   output     file made in build/native, such as "softroce-port.node"
//   platforms  values of process.platform it is for; left out on any other
//   flags      further compiler flags (optional)
//   libraries  what to link against, such as "dl" (optional)
//   sources    further sources of ours, relative to it (optional)
//   include    directories of ours whose headers it uses, relative to it (optional)
//   headers    headers needed from Node itself, such as "uv.h" (optional)
//   without    what it means for the user when it cannot be built: the end of the sentence
//
// compile.mjs has the compiler's call.
// Where compiler or header is missing the provider works over node:dgram: that is one sentence
// and exit 0, but an error when CI is set. A compiler that rejects the sources is always an error.

import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import {
  compile,
  findCompiler,
  findDirectories,
  fingerprint,
  missingHeader,
  plan,
  root,
} from './compile.mjs';

const outDir = join(root, 'build/native');

/** @returns {boolean} whether the output is in place, or not meant for this platform */
function build(dir) {
  const target = plan(dir);
  const name = relative(root, dir);
  if (target.platforms && !target.platforms.includes(process.platform)) {
    console.log(`${name}: not built, it is for ${target.platforms.join(', ')} only`);
    return true;
  }
  const output = join(outDir, target.output);
  const stamp = `${output}.sha256`;
  const compilers = [process.env.CC ?? '', process.env.CXX ?? ''];
  const digest = fingerprint([target], [process.platform, process.arch, compilers]);
  if (existsSync(output) && existsSync(stamp) && readFileSync(stamp, 'utf8') === digest) {
    return true;
  }
  rmSync(output, { force: true }); // better none than one of other sources
  const absent = missingHeader(target);
  if (absent) {
    console.error(`${name}: Node's header ${absent} was not found, so ${target.without}.`);
    return false;
  }
  const compiler = findCompiler(target.isCpp);
  if (!compiler) {
    const language = target.isCpp ? 'C++' : 'C';
    console.error(`${name}: no ${language} compiler found, so ${target.without}.`);
    return false;
  }
  mkdirSync(outDir, { recursive: true });
  // Renamed into place: a process that has the old file mapped keeps it intact.
  const scratch = `${output}.${String(process.pid)}.tmp`;
  console.log(`${name}: building with ${compiler.version}`);
  compile(target, compiler, scratch);
  renameSync(scratch, output);
  writeFileSync(stamp, digest);
  return true;
}

const named = process.argv.slice(2);
const isProviders = named[0] === '--providers';
const directories =
  named.length > 0 && !isProviders
    ? named.map((dir) => resolve(dir))
    : findDirectories(isProviders ? ['providers'] : ['providers', 'test/native']);
const missing = directories.filter((dir) => !build(dir));
if (missing.length > 0 && process.env.CI) process.exitCode = 1;
