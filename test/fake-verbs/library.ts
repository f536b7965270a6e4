/**
 * The addon of test/native/verbs-rings over the fake libibverbs: its calls as they are, and errno
 * as SpiError.
 */
import { createRequire } from 'node:module';
import { constants } from 'node:os';
import { join } from 'node:path';
import { getSystemErrorName } from 'node:util';
import { SpiError, type SpiErrorCode } from '../../core/spi/spi-error.js';

type Memory = Uint8Array | Uint32Array;

/** Objects are numbers. Makers return one, or -errno; the others errno or 0. */
export interface Library {
  load(path: string): string | undefined;
  open(onNotify: (cq: number) => void, onEvent: (type: number, object: number) => void): number;
  close(): number;
  allocPd(): number;
  deallocPd(pd: number): number;
  /** `out` receives lkey, rkey and the iova's halves. */
  regMr(
    pd: number,
    memory: Memory,
    access: number,
    iova: bigint | undefined,
    out: Uint32Array,
  ): number;
  deregMr(mr: number): number;
  allocMw(pd: number, type: number): number;
  mwRkey(mw: number): number;
  deallocMw(mw: number): number;
  createCq(ring: Memory, entries: number, stride: number): number;
  resizeCq(cq: number, ring: Memory, entries: number, stride: number): number;
  destroyCq(cq: number): number;
  /** See objects.cc for the order. */
  createQp(...args: (number | Memory | undefined)[]): number;
  qpState(qp: number): number;
  modifyQp(qp: number, mask: number, attributes: Uint32Array): number;
  destroyQp(qp: number): number;
  createSrq(...args: (number | Memory)[]): number;
  limitSrq(srq: number, limit: number): number;
  destroySrq(srq: number): number;
  postSends(qp: number): number;
  postReceives(qp: number): number;
  postShared(srq: number): number;
  /** Readable completions, or -1. */
  poll(cq: number): number;
  arm(cqAndSolicited: number): number;
  setMode(mode: number): number;
  progress(limit: number): number;
  inject(name: string, nth: number, errno: number): number;
}

/** How the fake carries out what is posted: at once, when told to, or on a thread of its own. */
export const Mode = { IMMEDIATE: 0, MANUAL: 1, THREAD: 2 } as const;

const directory = join(import.meta.dirname, '../../../build/native');

/** One device a process is enough for the tests: the addon holds a single one. */
export function loadLibrary(): Library {
  const library = createRequire(import.meta.url)(join(directory, 'verbs-rings.node')) as Library;
  const missing = library.load(join(directory, 'fake-ibverbs.so'));
  if (missing !== undefined) throw new SpiError('ENODEV', `fake libibverbs: ${missing}`);
  return library;
}

/** @throws SpiError unless `errno` is 0 */
export function check(call: string, errno: number): void {
  if (errno === 0) return;
  const name = getSystemErrorName(-errno);
  throw new SpiError(name as SpiErrorCode, `${call}: ${name}`);
}

/** @throws SpiError when `made` is not the number of an object */
export function made(call: string, number: number): number {
  if (number <= 0) check(call, number === 0 ? constants.errno.EIO : -number);
  return number;
}
