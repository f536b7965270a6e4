/** Options of a bind, their checks, and their words in a send queue. */
import { DatError, type DatSubtype } from '../../errors/index.js';
import { Access, SQE } from '../../spi/index.js';
import {
  accessOf,
  CompletionFlags,
  flagNames,
  MemPrivileges,
  PRIVILEGE_MASK,
  REMOTE_PRIVILEGES,
  VaType,
} from '../common/constants.js';
import type { Ep } from '../endpoint/ep.js';
import { checkBits, checkOneOf, checkOptions, checkValue } from '../../errors/guards.js';
import { instanceOf } from '../../spi/checks/index.js';
import { checkHandle } from '../common/handle.js';
import { notSupported } from '../common/unsupported.js';
import { Lmr } from '../memory/lmr.js';
import type { Rmr } from './rmr.js';
import { hasLostMemory, LmrSegment, lostMemory } from '../memory/segment.js';

/** Options of `rmr.bind`, besides the memory and the endpoint. */
export interface RmrBindOptions {
  /**
   * Bit set of MemPrivileges: REMOTE_READ (default), REMOTE_WRITE, REMOTE_ATOMIC. Local ones are
   * accepted and ignored: the region has them.
   */
  readonly privileges?: number;
  /** Comes back in the event: an integer from 0 to 2^53 - 1; default 0. */
  readonly cookie?: number;
  /** CompletionFlags: SUPPRESS, BARRIER_FENCE, UNSIGNALLED. */
  readonly flags?: number;
  /** VaType.ZB: addresses begin at 0; only for a window of one endpoint. Default VaType.VA. */
  readonly vaType?: number;
}

const OPTIONS = ['privileges', 'cookie', 'flags', 'vaType'];
const { LOCAL_READ, LOCAL_WRITE, REMOTE_READ, REMOTE_WRITE, REMOTE_ATOMIC } = MemPrivileges;
/** Created once: many a small request includes a bind. */
const PRIVILEGES_EXPECTED = `a bit set of ${flagNames(MemPrivileges, PRIVILEGE_MASK)}`;
const VA_TYPES = Object.values(VaType);
const U32 = 2 ** 32;
const SEGMENT = instanceOf(LmrSegment, 'an LmrSegment, from lmr.segment()');

/** Checked, with defaults filled in. @throws DatError */
export function checkBindOptions(
  operation: string,
  rmr: Rmr,
  segment: LmrSegment | undefined,
  ep: Ep,
  options: RmrBindOptions,
): { privileges: number; cookie: number; flags: number; zeroBased: boolean } {
  const given: RmrBindOptions = options;
  checkOptions(operation, options, OPTIONS);
  const { privileges = REMOTE_READ, vaType = VaType.VA } = given;
  const { cookie = 0, flags = CompletionFlags.DEFAULT } = given;
  checkBits(operation, 'privileges', privileges, PRIVILEGE_MASK, PRIVILEGES_EXPECTED);
  checkOneOf(operation, 'vaType', vaType, VA_TYPES);
  checkZone(operation, `endpoint ${ep.id}`, rmr, ep, privileges);
  const zeroBased = vaType === VaType.ZB;
  if (zeroBased && rmr.scope !== 'EP') {
    const hint = 'use ia.createRmrForEp()';
    throw notSupported(operation, 'only the window of one endpoint can be zero-based', hint);
  }
  if (segment !== undefined || operation === 'rmr.bind') {
    checkBindSegment(operation, rmr, segment, privileges);
  }
  return { privileges: privileges & REMOTE_PRIVILEGES, cookie, flags, zeroBased };
}

function checkBindSegment(operation: string, rmr: Rmr, segment: unknown, privileges: number): void {
  checkValue(operation, 'segment', segment, SEGMENT);
  const { lmr } = segment;
  checkHandle(operation, Lmr, 'LMR', lmr, rmr.core);
  checkZone(operation, `memory region ${lmr.id}`, rmr, lmr, privileges);
  if (lmr.isZeroBased) {
    const hint = 'register the memory once more: ia.createLmr(lmr, …)';
    throw notSupported(operation, 'a zero-based region takes no windows', hint);
  }
  if (hasLostMemory(segment)) throw lostMemory(operation, segment);
  for (const [remote, local, subtype] of NEEDS) {
    if ((privileges & remote) === 0 || (lmr.privileges & local) !== 0) continue;
    throw new DatError('DAT_PRIVILEGES_VIOLATION', {
      subtype,
      operation,
      message:
        `${flagNames(MemPrivileges, remote)} needs ${flagNames(MemPrivileges, local)} ` +
        `of memory region ${lmr.id}`,
      hint: 'register the memory with those privileges, or ask for fewer',
      value: privileges,
    });
  }
}

const NEEDS: readonly (readonly [number, number, DatSubtype])[] = [
  [REMOTE_READ, LOCAL_READ, 'DAT_PRIVILEGES_RDMA_READ'],
  [REMOTE_WRITE, LOCAL_WRITE, 'DAT_PRIVILEGES_RDMA_WRITE'],
  [REMOTE_ATOMIC, LOCAL_WRITE, 'DAT_PRIVILEGES_RDMA_WRITE'],
];

function checkZone(
  operation: string,
  what: string,
  rmr: Rmr,
  other: Pick<Lmr, 'pz'>,
  privileges: number,
): void {
  if (other.pz === rmr.pz) return;
  const write = (privileges & (REMOTE_WRITE | REMOTE_ATOMIC)) !== 0;
  throw new DatError('DAT_PROTECTION_VIOLATION', {
    subtype: write ? 'DAT_PROTECTION_RDMA_WRITE' : 'DAT_PROTECTION_RDMA_READ',
    operation,
    message: `${what} belongs to protection zone ${other.pz.id}, the window to ${rmr.pz.id}`,
    hint: 'make both in one protection zone',
    value: other,
  });
}

/** The words of a BIND_MW entry from REMOTE_ADDRESS_LO on; without a segment it unbinds. */
export function bindWords(
  window: number,
  segment: LmrSegment | undefined,
  privileges: number,
  zeroBased: boolean,
  rkey: number,
): Uint32Array {
  const words = new Uint32Array(SQE.BIND_RKEY - SQE.REMOTE_ADDRESS_LO + 1);
  const put = (word: number, value: number): void => {
    words[word - SQE.REMOTE_ADDRESS_LO] = value;
  };
  put(SQE.BIND_WINDOW, window);
  put(SQE.BIND_RKEY, rkey);
  if (segment === undefined) return words;
  put(SQE.REMOTE_ADDRESS_LO, segment.addressLo);
  put(SQE.REMOTE_ADDRESS_HI, segment.addressHi);
  put(SQE.BIND_LENGTH_LO, segment.lengthBytes % U32);
  put(SQE.BIND_LENGTH_HI, Math.floor(segment.lengthBytes / U32));
  put(SQE.BIND_REGION_LKEY, segment.lmr.lmrContext);
  const remote = accessOf(privileges) & ~Access.LOCAL_WRITE;
  put(SQE.BIND_ACCESS, zeroBased ? remote | Access.ZERO_BASED : remote);
  return words;
}
