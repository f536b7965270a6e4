/** Compiles the peers that are C programs, where the libraries they measure are installed. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, renameSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const sources = join(root, 'bench/peers');
const native = join(root, 'providers/softroce/native');
const outDir = join(root, 'build/bench');

/** Something that a peer needs is not installed. */
export class MissingPeer extends Error {
  override readonly name = 'MissingPeer';
}

interface Program {
  /** In bench/peers, or whole paths. */
  readonly files: readonly string[];
  /** Debian's package, and the header by which it is known. */
  readonly needs?: { readonly header: string; readonly package: string };
  readonly flags: readonly string[];
  readonly libraries: readonly string[];
}

/** The files of the CRC that softroce's own port is built with. */
function crcFiles(): string[] {
  const folder = join(native, 'icrc');
  return readdirSync(folder)
    .filter((file) => /^crc32.*\.cc$/.test(file))
    .map((file) => join(folder, file));
}

const C_FLAGS = ['-std=c11', '-D_GNU_SOURCE'];
const PROGRAMS: Readonly<Record<string, () => Program>> = {
  fabric: () => ({
    files: ['main.c', 'control.c', 'fabric.c'],
    needs: { header: 'rdma/fi_domain.h', package: 'libfabric-dev' },
    flags: C_FLAGS,
    libraries: ['-lfabric'],
  }),
  ucx: () => ({
    files: ['main.c', 'control.c', 'ucx.c'],
    needs: { header: 'ucp/api/ucp.h', package: 'libucx-dev' },
    flags: C_FLAGS,
    libraries: ['-lucp', '-lucs'],
  }),
  relay: () => ({ files: ['relay.c'], flags: C_FLAGS, libraries: [] }),
  wall: () => ({
    // A C++ compiler takes control.c for C++; its declarations are C for both.
    files: ['wall.cc', 'control.c', ...crcFiles()],
    flags: ['-std=c++17', '-fno-exceptions', '-fno-rtti', `-I${native}`],
    libraries: [],
  }),
};

/**
 * The program, compiled when it is older than its sources.
 * @throws MissingPeer naming the package to install
 * @throws Error when the compiler rejects it
 */
export function peerProgram(name: string): Promise<string> {
  return new Promise((resolve) => resolve(build(name)));
}

function build(name: string): string {
  const { files, needs, flags, libraries } = PROGRAMS[name]!();
  if (process.platform !== 'linux') throw new MissingPeer(`${name} is for Linux only`);
  const isCpp = files.some((file) => file.endsWith('.cc'));
  const compiler = (isCpp ? process.env.CXX : process.env.CC) ?? (isCpp ? 'c++' : 'cc');
  if (spawnSync(compiler, ['--version']).status !== 0) {
    throw new MissingPeer(`needs a compiler (${compiler}): apt install build-essential`);
  }
  if (needs !== undefined && !hasHeader(compiler, needs.header)) {
    throw new MissingPeer(`needs apt install ${needs.package}`);
  }
  const inputs = files.map((file) => (file.includes('/') ? file : join(sources, file)));
  const output = join(outDir, name);
  const headers = readdirSync(sources).filter((file) => file.endsWith('.h'));
  if (isFresh(output, [...inputs, ...headers.map((file) => join(sources, file))])) return output;
  mkdirSync(outDir, { recursive: true });
  const scratch = `${output}.${process.pid}.tmp`;
  const args = ['-O3', '-g', '-Wall', '-Wextra', ...flags, '-o', scratch, ...inputs, ...libraries];
  const { status, stderr } = spawnSync(compiler, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${compiler} ${args.join(' ')} failed:\n${stderr}`);
  renameSync(scratch, output);
  return output;
}

function hasHeader(compiler: string, header: string): boolean {
  const input = `#include <${header}>\n`;
  return spawnSync(compiler, ['-E', '-x', 'c', '-'], { input }).status === 0;
}

function isFresh(output: string, inputs: readonly string[]): boolean {
  if (!existsSync(output)) return false;
  const made = statSync(output).mtimeMs;
  return inputs.every((input) => statSync(input).mtimeMs < made);
}
