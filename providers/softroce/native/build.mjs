// Builds native code without node-gyp: one compiler call, no Python, no headers to download.
//
//   node providers/softroce/native/build.mjs [directory...]
//
// Without arguments: every providers/*/native, and test/native/*, that holds a native.json.
//
// Such a directory holds its sources (*.c, *.cc) and a native.json:
//   output     file made in build/native, such as "softroce-port.node"
//   platforms  values of process.platform it is for; left out on any other
//   flags      further compiler flags (optional)
//   libraries  what to link against, such as "dl" (optional)
//   sources    further sources of ours, relative to it (optional)
//   include    directories of ours whose headers it uses, relative to it (optional)
//   headers    headers needed from Node itself, such as "uv.h" (optional)
//   without    what it means for the user when it cannot be built: the end of the sentence
//
// The Node-API headers come from the pinned package node-api-headers, so the addon is the same
// whatever Node is installed; its symbols are resolved from the running node binary. Only uv.h
// has to come from Node's own include directory, which every usual way to install Node ships.
// Where compiler or header is missing the provider works over node:dgram: that is one sentence
// and exit 0, but an error when CI is set. A compiler that rejects the sources is always an error.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const root = resolve(here, '../../..');
const outDir = join(root, 'build/native');
const require = createRequire(import.meta.url);
const headers = require('node-api-headers').include_dir;

/** Node's own headers: beside its binary, where the user said, or where Debian puts them. */
const nodeInclude = [
  join(dirname(dirname(process.execPath)), 'include/node'),
  join(process.env.npm_config_nodedir ?? '/usr', 'include/node'),
  '/usr/include/node',
].find((dir) => existsSync(join(dir, 'uv.h')));

const commonFlags = ['-O3', '-g', '-fPIC', '-shared', '-fvisibility=hidden', '-Wall', '-Wextra'];
const addonFlags = ['-DNAPI_VERSION=9', '-DNODE_GYP_MODULE_NAME=dapl', `-isystem${headers}`];
const darwinFlags = ['-undefined', 'dynamic_lookup'];

/** The compiler of the environment, else the first one of the usual names that runs. */
function findCompiler(isCpp) {
  const chosen = isCpp ? process.env.CXX : process.env.CC;
  const names = chosen ? [chosen] : isCpp ? ['c++', 'g++', 'clang++'] : ['cc', 'gcc', 'clang'];
  for (const name of names) {
    const { status, stdout } = spawnSync(name, ['--version'], { encoding: 'utf8' });
    if (status === 0) return { name, version: stdout.split('\n')[0] };
  }
  return undefined;
}

function plan(dir) {
  const manifest = JSON.parse(readFileSync(join(dir, 'native.json'), 'utf8'));
  const files = readdirSync(dir).sort();
  const own = files.filter((file) => /\.cc?$/.test(file));
  const sources = [...own, ...(manifest.sources ?? [])].map((file) => join(dir, file));
  const include = (manifest.include ?? []).map((path) => join(dir, path));
  const inputs = [
    ...files.filter((file) => /\.(cc?|h|json|mjs)$/.test(file)).map((file) => join(dir, file)),
    ...(manifest.sources ?? []).map((file) => join(dir, file)),
    ...include.flatMap((path) =>
      readdirSync(path)
        .filter((file) => file.endsWith('.h'))
        .map((file) => join(path, file)),
    ),
  ];
  const isCpp = sources.some((source) => source.endsWith('.cc'));
  const flags = [
    ...commonFlags,
    ...(isCpp ? ['-std=c++17', '-fno-exceptions', '-fno-rtti'] : ['-std=c11', '-D_GNU_SOURCE']),
    ...(manifest.output.endsWith('.node') ? addonFlags : []),
    ...include.map((path) => `-I${path}`),
    ...(manifest.headers && nodeInclude ? [`-isystem${nodeInclude}`] : []),
    ...(process.platform === 'darwin' ? darwinFlags : []),
    ...(manifest.flags ?? []),
  ];
  const libraries = (manifest.libraries ?? []).map((name) => `-l${name}`);
  return {
    ...manifest,
    output: join(outDir, manifest.output),
    inputs,
    sources,
    isCpp,
    flags,
    libraries,
  };
}

/** Sources, flags and target in one digest: the key of "up to date", with no compiler asked. */
function fingerprint({ inputs, flags, libraries }) {
  const hash = createHash('sha256');
  const compilers = [process.env.CC ?? '', process.env.CXX ?? ''];
  hash.update(JSON.stringify([process.platform, process.arch, compilers, flags, libraries]));
  for (const file of inputs) {
    const bytes = readFileSync(file);
    hash.update(`${relative(root, file)}\0${String(bytes.length)}\0`).update(bytes);
  }
  return hash.digest('hex');
}

/** @returns {boolean} whether the output is in place, or not meant for this platform */
function build(dir) {
  const target = plan(dir);
  const name = relative(root, dir);
  if (target.platforms && !target.platforms.includes(process.platform)) {
    console.log(`${name}: not built, it is for ${target.platforms.join(', ')} only`);
    return true;
  }
  const stamp = `${target.output}.sha256`;
  const digest = fingerprint(target);
  if (existsSync(target.output) && existsSync(stamp) && readFileSync(stamp, 'utf8') === digest) {
    return true;
  }
  rmSync(target.output, { force: true }); // better none than one of other sources
  const absent = target.headers?.find((file) => !existsSync(join(nodeInclude ?? headers, file)));
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
  const scratch = `${target.output}.${String(process.pid)}.tmp`;
  const args = [...target.flags, '-o', scratch, ...target.sources, ...target.libraries];
  console.log(`${name}: building with ${compiler.version}`);
  const { status } = spawnSync(compiler.name, args, { stdio: 'inherit' });
  if (status !== 0) {
    console.error(`${name}: ${compiler.name} ${args.join(' ')} failed`);
    process.exit(1);
  }
  renameSync(scratch, target.output);
  writeFileSync(stamp, digest);
  return true;
}

/** Every directory of the tree that has something to build. */
function findDirectories() {
  const providers = readdirSync(join(root, 'providers')).map((name) => `providers/${name}/native`);
  const tests = readdirSync(join(root, 'test/native')).map((name) => `test/native/${name}`);
  return [...providers, ...tests]
    .map((dir) => join(root, dir))
    .filter((dir) => existsSync(join(dir, 'native.json')))
    .filter((dir) => readdirSync(dir).some((file) => /\.cc?$/.test(file)));
}

const named = process.argv.slice(2).map((dir) => resolve(dir));
const missing = (named.length > 0 ? named : findDirectories()).filter((dir) => !build(dir));
if (missing.length > 0 && process.env.CI) process.exitCode = 1;
