/**
 * Errors between a program and the kernel's RDMA, in sentences: what failed, and what to do about
 * it. docs/verbs.md lists them with their remedies.
 */
import { SpiError } from '../../../core/spi/index.js';

const PACKAGES = 'apt-get install libibverbs1 librdmacm1 libibumad3 ibverbs-providers';
/** The kernel's half, for the same reader. */
const MODULES = 'modprobe -a ib_uverbs rdma_ucm ib_umad';

/** A shared library that could not be loaded, and what the loader said. */
export interface MissingLibrary {
  readonly name: string;
  readonly problem: string;
}

/** @param missing not empty */
export function librariesMissing(missing: readonly MissingLibrary[]): SpiError {
  const list = missing.map(({ name, problem }) => `${name} (${problem})`).join(', ');
  return new SpiError(
    'ENODEV',
    `the verbs provider needs ${list}; install it: "${PACKAGES}"; the kernel's part: "${MODULES}"`,
  );
}

/** The addon itself is not there: no prebuild for this platform, and none was built. */
export function addonMissing(problem: string): SpiError {
  return new SpiError(
    'ENODEV',
    `the native part of the verbs provider cannot be loaded: ${problem}; ` +
      `it is for Linux (build it with "npm run build:native", which needs a C++ compiler)`,
  );
}

/** sysfs has the device, ibv_get_device_list has not. */
export function userDriverMissing(device: string): SpiError {
  return new SpiError(
    'ENODEV',
    `libibverbs has no driver for ${device}: "apt-get install ibverbs-providers"`,
  );
}

export function noDevices(): SpiError {
  return new SpiError(
    'ENODEV',
    'this machine has no RDMA device: /sys/class/infiniband is empty; load the driver of the ' +
      'adapter, or make a software device: "modprobe rdma_rxe" and ' +
      '"rdma link add rxe0 type rxe netdev eth0"',
  );
}

/** A file of /dev/infiniband, as the file system has it. */
export interface DeviceNode {
  readonly path: string;
  /** Kernel module that makes it. */
  readonly module: string;
  /** Absent when the file is not there. */
  readonly facts?: {
    /** Permission bits. */
    readonly mode: number;
    readonly owner: string;
    readonly group: string;
  };
  /** The user of this process: name and groups. */
  readonly user: string;
  readonly groups: readonly string[];
}

/**
 * Why a file of /dev/infiniband does not open.
 * @param code the errno's name: EACCES, EPERM, ENOENT or another
 */
export function deviceNodeRefused(code: string, node: DeviceNode): SpiError {
  const { path, module, facts, user, groups } = node;
  if (facts === undefined) {
    const text = `${path} is not there: load its kernel module, "modprobe ${module}"`;
    return new SpiError('ENODEV', text);
  }
  const mode = facts.mode.toString(8).padStart(4, '0');
  const what = `${path} (mode ${mode}, owner ${facts.owner}, group ${facts.group})`;
  if (code !== 'EACCES' && code !== 'EPERM') {
    return new SpiError('EIO', `${what} cannot be opened: ${code}`);
  }
  const who = `${user}, in ${groups.length === 1 ? 'group' : 'groups'} ${groups.join(', ')}`;
  return new SpiError(code, `${what} does not open for ${who}; ${accessRemedy(path, facts)}`);
}

function accessRemedy(path: string, { mode, group }: NonNullable<DeviceNode['facts']>): string {
  const isOpenToGroup = (mode & 0o060) === 0o060 && group !== 'root';
  if (isOpenToGroup) return `join the group: "usermod -aG ${group} $USER", and log in again`;
  const isOpenToAll = (mode & 0o006) === 0o006;
  if (isOpenToAll) return 'the container or the security module forbids it: pass the device in';
  const kernel = path.replace(/^.*\/|\d+$/g, '');
  return (
    `let a group have it, in a rule of udev: ` +
    `KERNEL=="${kernel}*", GROUP="rdma", MODE="0660"; or run as root`
  );
}

/** Locked memory of the process: limit and use. */
export interface LockedMemory {
  /** RLIMIT_MEMLOCK; Infinity for none. */
  readonly limitBytes: number;
  /** Pinned or locked by anything in this process. */
  readonly lockedBytes: number;
}

/**
 * ENOMEM of a registration. Registered memory is pinned, and counts against RLIMIT_MEMLOCK.
 * @param registeredBytes what this device has registered already
 */
export function registrationOutOfMemory(
  requestBytes: number,
  registeredBytes: number,
  { limitBytes, lockedBytes }: LockedMemory,
): SpiError {
  const request = `cannot pin ${sizeText(requestBytes)} for registration`;
  const already = `${sizeText(registeredBytes)} are registered on this device already`;
  if (limitBytes === Infinity) {
    return new SpiError(
      'ENOMEM',
      `${request}: ${already}; RLIMIT_MEMLOCK is unlimited, so the machine is out of memory, or ` +
        'the device out of regions',
    );
  }
  const locked = Math.max(lockedBytes, registeredBytes);
  return new SpiError(
    'ENOMEM',
    `${request}: the limit of locked memory (RLIMIT_MEMLOCK, "ulimit -l") is ` +
      `${sizeText(limitBytes)}, of which ${sizeText(locked)} are in use; ${already}; raise it: ` +
      `"ulimit -l unlimited", "* - memlock unlimited" in /etc/security/limits.conf, or ` +
      `LimitMEMLOCK=infinity in the service's unit`,
  );
}

/** Memory that must not be registered, and why (docs/spi.md, Buffers). */
export type MemoryProblem = 'pooled' | 'resizable' | 'detached' | 'empty' | 'registered';

const MEMORY_SENTENCES: Readonly<Record<MemoryProblem, string>> = {
  pooled:
    "is a slice of Node's shared pool, whose neighbours belong to other code; use " +
    'device.allocate() or Buffer.allocUnsafeSlow()',
  resizable: 'is resizable: its pages may vanish under the adapter; use a fixed length',
  detached: 'is detached: its ArrayBuffer was transferred; register before transferring',
  empty: 'has 0 bytes: a region has at least 1',
  registered:
    'is registered, and the adapter may write into it: deregister it (lmr.free()) before ' +
    'transferring its ArrayBuffer',
};

export function memoryRefused(problem: MemoryProblem): SpiError {
  return new SpiError('EINVAL', `memory ${MEMORY_SENTENCES[problem]}`);
}

/** `64 KiB`, `1.5 MiB`, `100 bytes`. */
export function sizeText(bytes: number): string {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
  const unit = Math.min(Math.floor(Math.log2(Math.max(bytes, 1)) / 10), units.length - 1);
  const value = bytes / 1024 ** unit;
  return `${Number.isInteger(value) ? String(value) : value.toFixed(1)} ${units[unit] ?? ''}`;
}
