/** What `verbs()` takes, checked. */
import { type PollingMode, SpiError } from '../../../core/spi/index.js';

/** Paths of shared libraries, where they are not to be found by name. */
export interface LibraryPaths {
  /** libibverbs.so.1 */
  readonly verbs?: string;
  /** librdmacm.so.1 */
  readonly rdmacm?: string;
  /** What stands in for the files /dev/infiniband/umad*: for tests. */
  readonly umad?: string;
}

export interface VerbsOptions {
  /**
   * Name of an RDMA device (`mlx5_0`, `rxe0`), or of a network interface (`eth0`). Not with
   * `address`; with neither, the first device that can be used.
   */
  readonly device?: string;
  /**
   * An IP address: of our own, or of a peer, to which the routing table then knows the way. It
   * decides device, port and GID.
   */
  readonly address?: string;
  /** Port of `device`, from 1; default the first one that is active. */
  readonly port?: number;
  /** Place in the port's GID table; default the best: RoCE v2 over IPv4 where there is one. */
  readonly gidIndex?: number;
  /**
   * How completions are awaited where the EVD says 'event', its default: 'event' (default) sleeps
   * until the device wakes us, 'adaptive' polls for a while after activity.
   */
  readonly polling?: 'event' | 'adaptive';
  readonly libraries?: LibraryPaths;
}

const KNOWN = ['device', 'address', 'port', 'gidIndex', 'polling', 'libraries'];
const LIBRARIES = ['verbs', 'rdmacm', 'umad'];
const POLLING: readonly PollingMode[] = ['event', 'adaptive'];
/** `port_num` and the GID index are a byte each in verbs. */
const MAX_BYTE = 255;

/** @throws SpiError('EINVAL') naming the option, its value, and what it may be */
export function checkOptions(given: unknown = {}): VerbsOptions {
  if (typeof given !== 'object' || given === null) throw refused('options', given, 'an object');
  for (const key of Object.keys(given)) {
    if (!KNOWN.includes(key)) throw refused('option', key, `one of ${KNOWN.join(', ')}`);
  }
  const options = given as Readonly<Record<string, unknown>>;
  const { device, address, port, gidIndex, polling, libraries } = options;
  checkText('device', device);
  checkText('address', address);
  checkNumber('port', port, 1);
  checkNumber('gidIndex', gidIndex, 0);
  if (polling !== undefined && !POLLING.some((mode) => mode === polling)) {
    throw refused('polling', polling, `one of ${POLLING.join(', ')}`);
  }
  checkLibraries(libraries);
  return given;
}

function checkLibraries(libraries: unknown): void {
  if (libraries === undefined) return;
  if (typeof libraries !== 'object' || libraries === null) {
    throw refused('libraries', libraries, 'an object of paths');
  }
  for (const [name, path] of Object.entries(libraries)) {
    if (!LIBRARIES.includes(name)) throw refused('library', name, `one of ${LIBRARIES.join(', ')}`);
    checkText(`libraries.${name}`, path);
  }
}

function checkText(name: string, value: unknown): void {
  if (value === undefined || (typeof value === 'string' && value !== '')) return;
  throw refused(name, value, 'a string that is not empty');
}

function checkNumber(name: string, value: unknown, min: number): void {
  if (value === undefined) return;
  if (Number.isInteger(value) && Number(value) >= min && Number(value) <= MAX_BYTE) return;
  throw refused(name, value, `a whole number from ${min} to ${MAX_BYTE}`);
}

function refused(name: string, value: unknown, expected: string): SpiError {
  const text = JSON.stringify(value) ?? String(value);
  return new SpiError('EINVAL', `${name} ${text} must be ${expected}`);
}
