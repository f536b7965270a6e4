// The guest's kernel: Debian's stock package, downloaded and unpacked (never installed) into the
// cache, with an initramfs of busybox and the few modules that reach the host's file system.
// The cloud flavour will not do: it has neither rdma_rxe nor 9p.
import { execFileSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createHash } from 'node:crypto';
import { basename, join } from 'node:path';

import { apt } from './packages.js';
import { cacheDir, sourceDir } from './paths.js';

export interface Kernel {
  /** As `uname -r` says in the guest. */
  readonly release: string;
  readonly image: string;
  readonly initramfs: string;
  /** Becomes /lib/modules of the guest. */
  readonly modulesDir: string;
}

const STALE_AFTER_MS = 3_600_000;
const PREFIX = 'linux-image-';
const BOOT_MODULES = [
  'virtio_pci',
  'virtio_net',
  'virtio_console',
  '9pnet_virtio',
  '9p',
  'overlay',
];
/** Drivers for hardware that no guest has: two thirds of the package. */
const UNUSED_MODULES = ['drivers/gpu', 'drivers/media', 'drivers/net/wireless', 'sound'];

export function ensureKernel(log: (line: string) => void): Kernel {
  mkdirSync(cacheDir, { recursive: true });
  sweepCache();
  const name = packageName();
  const dir = join(cacheDir, name);
  if (!existsSync(dir)) unpack(name, dir, log);
  const release = name.slice(PREFIX.length);
  return {
    release,
    image: ensureImage(dir, release),
    initramfs: ensureInitramfs(dir, release),
    modulesDir: join(dir, 'lib', 'modules'),
  };
}

/** Removes what a run that was killed in the middle of a download has left. */
function sweepCache(): void {
  for (const name of readdirSync(cacheDir).filter((entry) => entry.startsWith('tmp-'))) {
    const dir = join(cacheDir, name);
    const age = Date.now() - (statSync(dir, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
    if (age > STALE_AFTER_MS) rmSync(dir, { recursive: true, force: true });
  }
}

/** The versioned package behind linux-image-amd64, or the newest cached one when apt is offline. */
function packageName(): string {
  const depends = execFileSync('apt-cache', ['depends', 'linux-image-amd64'], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const found = /Depends: (linux-image-\S+)/.exec(depends)?.[1];
  if (found !== undefined) return found;
  const cached = readdirSync(cacheDir)
    .filter((entry) => entry.startsWith(PREFIX))
    .sort();
  const newest = cached.at(-1);
  if (newest === undefined) {
    throw new Error('apt knows no linux-image-amd64 (Debian only; try "apt-get update")');
  }
  return newest;
}

function unpack(name: string, dir: string, log: (line: string) => void): void {
  log(`downloading ${name} (about 70 MB) into ${cacheDir}`);
  makeAside(dir, (root, aside) => {
    try {
      apt(['download', name], aside);
    } catch {
      apt(['update']);
      apt(['download', name], aside);
    }
    const archive = readdirSync(aside).find((file) => file.endsWith('.deb'));
    if (archive === undefined) throw new Error(`apt-get download ${name} left no package`);
    execFileSync('dpkg', ['-x', join(aside, archive), root]);
    const release = name.slice(PREFIX.length);
    for (const unused of UNUSED_MODULES) {
      rmSync(join(root, 'lib/modules', release, 'kernel', unused), {
        recursive: true,
        force: true,
      });
    }
    execFileSync('depmod', ['-b', root, release]);
  });
}

/**
 * Takes the ELF kernel out of a bzImage; QEMU starts it by its PVH entry. The kernel would unpack
 * itself too, but under emulation that is four of six seconds of its boot.
 * Offsets: Linux Documentation/arch/x86/boot.rst, setup_sects, payload_offset, payload_length.
 */
function ensureImage(dir: string, release: string): string {
  const target = join(dir, 'boot', 'vmlinux');
  if (existsSync(target)) return target;
  const bzImage = readFileSync(join(dir, 'boot', `vmlinuz-${release}`));
  const setupSectors = bzImage.readUInt8(0x1f1);
  const start = (setupSectors + 1) * 512 + bzImage.readUInt32LE(0x248);
  // The last four bytes of the payload are its unpacked length, which xz does not expect.
  const payload = bzImage.subarray(start, start + bzImage.readUInt32LE(0x24c) - 4);
  const image = execFileSync('xz', ['-dc'], { input: payload, maxBuffer: 1 << 28 });
  return makeAside(target, (path) => writeFileSync(path, image));
}

/** Built once for each state of the init script. */
function ensureInitramfs(dir: string, release: string): string {
  const init = readFileSync(join(sourceDir, 'init'));
  const digest = createHash('sha256').update(init).digest('hex').slice(0, 12);
  const target = join(dir, `initramfs-${digest}`);
  if (existsSync(target)) return target;
  return makeAside(target, (image, aside) => {
    const root = join(aside, 'root');
    mkdirSync(join(root, 'bin'), { recursive: true });
    mkdirSync(join(root, 'modules'));
    copyFileSync(busybox(), join(root, 'bin', 'busybox'));
    writeFileSync(join(root, 'init'), init, { mode: 0o755 });
    const modules = bootModules(dir, release);
    for (const path of modules) copyFileSync(path, join(root, 'modules', basename(path)));
    const order = modules.map((path) => `${basename(path)}\n`).join('');
    writeFileSync(join(root, 'modules', 'order'), order);
    execFileSync('/bin/sh', ['-c', `find . | cpio --quiet -o -H newc > "${image}"`], { cwd: root });
  });
}

/** Files of the boot modules, dependencies first. */
function bootModules(dir: string, release: string): string[] {
  const paths = new Set<string>();
  for (const name of BOOT_MODULES) {
    const lines = execFileSync('modprobe', ['-d', dir, '-S', release, '--show-depends', name], {
      encoding: 'utf8',
    });
    for (const match of lines.matchAll(/^insmod (\S+)/gm)) paths.add(match[1] ?? '');
  }
  return [...paths];
}

function busybox(): string {
  for (const path of ['/bin/busybox', '/usr/bin/busybox']) if (existsSync(path)) return path;
  throw new Error('busybox-static is installed, but there is no /bin/busybox');
}

/**
 * Makes a file or folder beside its place and renames it, so that a second run at the same time
 * sees all of it or nothing.
 */
function makeAside(target: string, make: (path: string, aside: string) => void): string {
  const aside = mkdtempSync(join(cacheDir, 'tmp-'));
  try {
    const made = join(aside, 'made');
    make(made, aside);
    renameSync(made, target);
  } catch (error) {
    // Another run was faster; its result is as good.
    if (!existsSync(target)) throw error;
  } finally {
    rmSync(aside, { recursive: true, force: true });
  }
  return target;
}
