// Builds the addons of all providers for packing: prebuilds/<platform>-<arch>/*.node.
//
//   npm run build:prebuilds               for this machine, and others that a cross compiler is for
//   npm run build:prebuilds -- linux-x64  for this one only
//
// Those that are of these sources and flags already stay: requires.json has the digest of both.
//
// They carry their own C++ runtime, so that what a machine must have is glibc alone: the newest
// symbol version that they ask for is printed, kept in prebuilds/<platform>-<arch>/requires.json,
// and held against a limit. RDMA libraries are opened at run time, and need nothing here.

import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import {
  compile,
  findCompiler,
  findDirectories,
  fingerprint,
  missingHeader,
  plan,
  root,
} from '../providers/softroce/native/compile.mjs';

/** Newest glibc that a prebuild may ask for: that of RHEL 9, Debian 12 and Ubuntu 22.04. */
const NEWEST_GLIBC = [2, 34];
const PORTABLE_FLAGS = [
  '-g0',
  '-s',
  '-static-libstdc++',
  '-ffunction-sections',
  '-fdata-sections',
  '-Wl,--gc-sections',
  '-Wl,--exclude-libs,ALL',
];

/** Prefix of the compiler, by target; none on the machine's own. */
const TARGETS = { 'linux-x64': 'x86_64-linux-gnu-', 'linux-arm64': 'aarch64-linux-gnu-' };
const HOST = `${process.platform}-${process.arch}`;

/** The newest version of glibc that the file's symbols are of, as [2, 34]. */
function glibcOf(file) {
  const { status, stdout } = spawnSync('readelf', ['-V', file], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`readelf does not read ${file}`);
  const versions = [...stdout.matchAll(/GLIBC_(\d+)\.(\d+)/g)].map((match) => [
    Number(match[1]),
    Number(match[2]),
  ]);
  return versions.sort((a, b) => a[0] - b[0] || a[1] - b[1]).at(-1) ?? [2, 0];
}

const isNewer = (a, b) => a[0] > b[0] || (a[0] === b[0] && a[1] > b[1]);

/** Whether what is there is of these sources: the rest of the digest is what they are built by. */
function isFresh(outDir, outputs, sources) {
  const file = join(outDir, 'requires.json');
  if ([file, ...outputs.map((name) => join(outDir, name))].some((path) => !existsSync(path))) {
    return false;
  }
  return JSON.parse(readFileSync(file, 'utf8')).sources === sources;
}

/** @returns {boolean} false when there is no compiler for it */
function prebuild(target) {
  const plans = findDirectories(['providers'])
    .map((dir) => plan(dir))
    .filter(({ platforms }) => platforms.includes('linux'));
  const sources = fingerprint(plans, [target, PORTABLE_FLAGS]);
  const outDir = join(root, 'prebuilds', target);
  const outputs = plans.map(({ output }) => output);
  if (isFresh(outDir, outputs, sources)) {
    console.log(`${relative(root, outDir)}: up to date`);
    return true;
  }
  // None rather than one of other sources, which JavaScript of today may not get along with.
  rmSync(outDir, { recursive: true, force: true });
  const prefix = target === HOST ? '' : TARGETS[target];
  const compiler = findCompiler(true, prefix);
  if (!compiler) {
    console.log(`${target}: no compiler ${prefix}g++, not built`);
    return false;
  }
  const scratch = join(root, 'build', `prebuilds-${target}.${String(process.pid)}`);
  mkdirSync(scratch, { recursive: true });
  let newest = [2, 0];
  for (const planned of plans) {
    const absent = missingHeader(planned);
    if (absent) throw new Error(`Node's header ${absent} was not found`);
    const output = join(scratch, planned.output);
    compile(planned, compiler, output, PORTABLE_FLAGS);
    const glibc = glibcOf(output);
    const size = Math.ceil(statSync(output).size / 1024);
    const name = relative(root, join(outDir, planned.output));
    console.log(`${name}: ${size} KiB, needs glibc ${glibc.join('.')}`);
    if (isNewer(glibc, newest)) newest = glibc;
  }
  const requires = { glibc: newest.join('.'), sources };
  writeFileSync(join(scratch, 'requires.json'), `${JSON.stringify(requires)}\n`);
  if (isNewer(newest, NEWEST_GLIBC)) {
    console.error(`${target}: a prebuild may need glibc ${NEWEST_GLIBC.join('.')} at most`);
    rmSync(scratch, { recursive: true });
    process.exit(1);
  }
  mkdirSync(dirname(outDir), { recursive: true });
  rmSync(outDir, { recursive: true, force: true }); // another process may have been as quick
  renameSync(scratch, outDir);
  return true;
}

const named = process.argv.slice(2);
const unknown = named.find((target) => !(target in TARGETS));
if (unknown !== undefined) {
  console.error(`${unknown} is none of ${Object.keys(TARGETS).join(', ')}`);
  process.exit(2);
}
const built = (named.length > 0 ? named : Object.keys(TARGETS)).map(prebuild);
if (named.length > 0 && built.includes(false)) process.exitCode = 1;
