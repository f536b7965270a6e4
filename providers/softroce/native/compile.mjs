// The compiler's call for a directory of native code: what goes into it, and what makes it.
//
// The Node-API headers come from the pinned package node-api-headers, so the addon is the same
// whatever Node is installed; its symbols are resolved from the running node binary. Only uv.h
// has to come from Node's own include directory, which every usual way to install Node ships.
// Installed as a dependency there is no node-api-headers: then all come from Node's own.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const require = createRequire(import.meta.url);

export const root = resolve(dirname(fileURLToPath(import.meta.url)), '../../..');

/** Node's own headers: beside its binary, where the user said, or where Debian puts them. */
const nodeInclude = [
  join(dirname(dirname(process.execPath)), 'include/node'),
  join(process.env.npm_config_nodedir ?? '/usr', 'include/node'),
  '/usr/include/node',
].find((dir) => existsSync(join(dir, 'uv.h')));

const headers = apiHeaders() ?? nodeInclude;

const commonFlags = ['-O3', '-g', '-fPIC', '-shared', '-fvisibility=hidden', '-Wall', '-Wextra'];
// An addon stays where it is, though Node.js unloads it with the last thread that has loaded it: a
// thread and signal handlers of the process are in it.
const addonFlags = [
  ...(process.platform === 'linux' ? ['-Wl,-z,nodelete'] : []),
  '-DNAPI_VERSION=9',
  '-DNODE_GYP_MODULE_NAME=dapl',
  ...(headers ? [`-isystem${headers}`] : []),
];
const darwinFlags = ['-undefined', 'dynamic_lookup'];

function apiHeaders() {
  try {
    return require('node-api-headers').include_dir;
  } catch {
    return undefined;
  }
}

/**
 * The compiler of the environment, else the first one of the usual names that runs.
 * @param prefix of a cross compiler, such as "aarch64-linux-gnu-": then nothing else will do
 */
export function findCompiler(isCpp, prefix = '') {
  const chosen = prefix ? undefined : isCpp ? process.env.CXX : process.env.CC;
  const usual = isCpp ? ['c++', 'g++', 'clang++'] : ['cc', 'gcc', 'clang'];
  for (const name of chosen ? [chosen] : usual.map((each) => prefix + each)) {
    const { status, stdout } = spawnSync(name, ['--version'], { encoding: 'utf8' });
    if (status === 0) return { name, version: stdout.split('\n')[0] };
  }
  return undefined;
}

/** What native.json and the directory say: files, flags and libraries. */
export function plan(dir) {
  const manifest = JSON.parse(readFileSync(join(dir, 'native.json'), 'utf8'));
  const files = readdirSync(dir, { recursive: true }).sort();
  const own = files.filter((file) => /\.cc?$/.test(file));
  const sources = [...own, ...(manifest.sources ?? [])].map((file) => join(dir, file));
  const include = (manifest.include ?? []).map((path) => join(dir, path));
  const inputs = [
    ...files.filter((file) => /\.(cc?|h|json|mjs)$/.test(file)).map((file) => join(dir, file)),
    ...(manifest.sources ?? []).map((file) => join(dir, file)),
    ...include.flatMap((path) =>
      readdirSync(path, { recursive: true })
        .filter((file) => file.endsWith('.h'))
        .map((file) => join(path, file)),
    ),
  ];
  const isCpp = sources.some((source) => source.endsWith('.cc'));
  const flags = [
    ...commonFlags,
    ...(isCpp ? ['-std=c++17', '-fno-exceptions', '-fno-rtti'] : ['-std=c11', '-D_GNU_SOURCE']),
    ...(manifest.output.endsWith('.node') ? addonFlags : []),
    ...[dir, ...include].map((path) => `-I${path}`),
    ...(manifest.headers && nodeInclude ? [`-isystem${nodeInclude}`] : []),
    ...(process.platform === 'darwin' ? darwinFlags : []),
    ...(manifest.flags ?? []),
  ];
  const libraries = (manifest.libraries ?? []).map((name) => `-l${name}`);
  return { ...manifest, inputs, sources, isCpp, flags, libraries };
}

/**
 * Sources and flags of plans in one digest: the key of "up to date", with no compiler asked. It is
 * the same wherever the tree is.
 * @param about what else the output depends on: target, compilers, further flags
 */
export function fingerprint(plans, about) {
  const hash = createHash('sha256');
  const options = [about, plans.map(({ flags, libraries }) => [flags, libraries])];
  hash.update(JSON.stringify(options).replaceAll(root, ''));
  for (const file of plans.flatMap(({ inputs }) => inputs)) {
    const bytes = readFileSync(file);
    hash.update(`${relative(root, file)}\0${String(bytes.length)}\0`).update(bytes);
  }
  return hash.digest('hex');
}

/** A header of Node's that the plan needs and that is not there. */
export function missingHeader(target) {
  if (target.output.endsWith('.node') && headers === undefined) return 'node_api.h';
  return target.headers?.find((file) => !existsSync(join(nodeInclude ?? headers, file)));
}

/** Ends the process with 1 when the compiler rejects the sources. */
export function compile(target, compiler, output, moreFlags = []) {
  const { flags, sources, libraries } = target;
  const args = [...flags, ...moreFlags, '-o', output, ...sources, ...libraries];
  const { status } = spawnSync(compiler.name, args, { stdio: 'inherit' });
  if (status === 0) return;
  console.error(`${compiler.name} ${args.join(' ')} failed`);
  process.exit(1);
}

/** Every directory under these that has something to build. */
export function findDirectories(parents) {
  return parents
    .filter((parent) => existsSync(join(root, parent)))
    .flatMap((parent) => readdirSync(join(root, parent)).map((name) => join(root, parent, name)))
    .flatMap((dir) => [dir, join(dir, 'native')])
    .filter((dir) => existsSync(join(dir, 'native.json')))
    .filter((dir) => readdirSync(dir).some((file) => /\.cc?$/.test(file)));
}
