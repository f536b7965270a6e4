/** Options of memory regions, and their checks. */
import { flagNames, MemPrivileges, PRIVILEGE_MASK, VaType } from '../common/constants.js';
import {
  checkBits,
  checkInteger,
  checkOneOf,
  checkOptions,
  checkValue,
  invalid,
} from '../../errors/guards.js';
import { BOOLEAN } from '../../spi/checks/index.js';
import { checkHandle } from '../common/handle.js';
import type { AdapterServices, AdapterState } from '../common/adapter-state.js';
import { Pz } from './pz.js';
import { checkSharedName } from './shared-memory.js';
import { Symbolic } from '../common/trace.js';

/** Options of every memory region. */
export interface LmrOptions {
  readonly pz: Pz;
  /** Bit set of MemPrivileges; default LOCAL_READ | LOCAL_WRITE: no access for peers. */
  readonly privileges?: number;
  /**
   * VaType.VA (default): peers see the region at a random, page-aligned address. VaType.ZB: at 0.
   */
  readonly vaType?: number;
}

/** Options of `ia.allocate`. */
export interface AllocateOptions extends LmrOptions {
  /**
   * A name, 1 to 40 bytes of UTF-8, by which processes of the user share the memory. The first
   * process gets zeros, others the same bytes, until the last one has freed it.
   */
  readonly shared?: string;
}

/** Options of `ia.createLmr`. */
export interface CreateLmrOptions extends LmrOptions {
  /**
   * DAT_MEM_TYPE_SHARED_VIRTUAL: the name under which adapters of this process share the memory, 1
   * to 40 bytes (DAT_LMR_COOKIE).
   */
  readonly sharedAs?: string | Uint8Array;
}

/** Options of `ia.mapFile`. */
export interface MapFileOptions extends LmrOptions {
  /** Default 0. */
  readonly offsetBytes?: number;
  /** 1 up to `buffer.constants.MAX_LENGTH`; default: up to the end of the file. */
  readonly lengthBytes?: number;
  /**
   * True (default): writes go to the file, which must be open for reading and writing. False:
   * changes stay private (copy on write).
   */
  readonly shared?: boolean;
}

/** Checked, with defaults filled in. */
export interface CheckedLmrOptions {
  readonly pz: Pz;
  readonly privileges: number;
  readonly zeroBased: boolean;
}

const { LOCAL_READ, LOCAL_WRITE } = MemPrivileges;
const DEFAULT_PRIVILEGES = LOCAL_READ | LOCAL_WRITE;
/** Longest name of shared memory; as long as DAT_LMR_COOKIE. */
const MOST_NAME_BYTES = 40;
const BASE = ['pz', 'privileges', 'vaType'];

/** @param more keys that the call takes besides those of LmrOptions */
export function checkLmrOptions(
  operation: string,
  core: AdapterState,
  options: LmrOptions,
  more: readonly string[] = [],
): CheckedLmrOptions {
  checkOptions(operation, options, [...BASE, ...more]);
  const { pz, privileges = DEFAULT_PRIVILEGES, vaType = VaType.VA } = options;
  checkHandle(operation, Pz, 'PZ', pz, core);
  const expected = `a bit set of ${flagNames(MemPrivileges, PRIVILEGE_MASK)}`;
  checkBits(operation, 'privileges', privileges, PRIVILEGE_MASK, expected);
  checkOneOf(operation, 'vaType', vaType, Object.values(VaType));
  return { pz, privileges, zeroBased: vaType === VaType.ZB };
}

/** The key of the shared memory's name, if there is one. */
export function checkSharedAs(operation: string, options: CreateLmrOptions): string | undefined {
  const { sharedAs } = options;
  return sharedAs === undefined ? undefined : checkSharedName(operation, sharedAs);
}

/** @throws DatError DAT_INVALID_PARAMETER */
export function checkShared(operation: string, { shared }: AllocateOptions): string | undefined {
  if (shared === undefined) return undefined;
  if (typeof shared === 'string' && isName(shared)) return shared;
  throw invalid(operation, 'shared', shared, 'a string of 1 to 40 bytes, without zeros');
}

function isName(name: string): boolean {
  const bytes = new TextEncoder().encode(name).length;
  return bytes >= 1 && bytes <= MOST_NAME_BYTES && !name.includes('\0');
}

/** @throws DatError DAT_INVALID_PARAMETER, DAT_MODEL_NOT_SUPPORTED */
export function checkFileOptions(
  operation: string,
  { maxRegionBytes }: AdapterServices,
  fd: unknown,
  { offsetBytes = 0, lengthBytes, shared = true }: MapFileOptions,
): { fd: number; offsetBytes: number; lengthBytes: number | undefined; shared: boolean } {
  checkInteger(operation, 'fd', fd, 0, 2 ** 31 - 1);
  checkInteger(operation, 'offsetBytes', offsetBytes, 0, Number.MAX_SAFE_INTEGER);
  if (lengthBytes !== undefined) {
    checkInteger(operation, 'lengthBytes', lengthBytes, 1, maxRegionBytes);
  }
  checkValue(operation, 'shared', shared, BOOLEAN);
  return { fd, offsetBytes, lengthBytes, shared };
}

/** The privileges that a call names, for its trace. */
export function privilegesText(
  options: { readonly privileges?: number } | undefined,
  byDefault: number = DEFAULT_PRIVILEGES,
): Symbolic {
  return new Symbolic(flagNames(MemPrivileges, options?.privileges ?? byDefault));
}
