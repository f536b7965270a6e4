/** What the memory holds: words that count rounds, and behind them the numbers. */
import { type Ia, type Lmr, MemPrivileges, type Pz } from 'dapl';

/** In front of the numbers, a page: peers have no access to it. */
export const HEADER_BYTES = 4096;
export const MIB = 1 << 20;
/** Rounds that are complete, and those that have been added up. */
export const WRITTEN = 0;
export const READ = 1;

export interface SharedArray {
  /** Of WRITTEN and READ. */
  readonly rounds: Int32Array;
  readonly numbers: Float32Array;
  readonly lmr: Lmr;
}

/** The same memory for every process of the user that asks for that name. */
export function shareArray(ia: Ia, pz: Pz, name: string, mib: number): SharedArray {
  const lmr = ia.allocate(HEADER_BYTES + mib * MIB, {
    pz,
    shared: name,
    privileges: MemPrivileges.ALL,
  });
  const { buffer, byteOffset } = lmr.bytes;
  return {
    rounds: new Int32Array(buffer, byteOffset, 2),
    numbers: new Float32Array(buffer, byteOffset + HEADER_BYTES, (mib * MIB) / 4),
    lmr,
  };
}

/** What the writer puts at each place in a round, which a reader can tell from any other. */
export function numberAt(index: number, round: number): number {
  return (index % 1024) + round;
}

/** Of all numbers in a round; each is an integer, so the sum is exact. */
export function sumOf(count: number, round: number): number {
  return (count / 1024) * ((1023 * 1024) / 2) + count * round;
}
