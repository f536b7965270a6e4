/** XRC in the addon (native/xrc.cc). Makers return a number, or -errno; the others errno or 0. */
import type { Memory, RingArguments } from './native-addon.js';

export interface XrcNative {
  /** @param file descriptor, or -1 for a private domain @param flags of open(2) */
  openXrcd(device: number, file: number, flags: number): number;
  closeXrcd(domain: number): number;
  createXrcSrq(
    pd: number,
    maxWr: number,
    maxSge: number,
    ...rest: [...RingArguments, ...RingArguments, Uint32Array, domain: number, cq: number]
  ): number;
  /** A record as of `createQp`. */
  createXrcInitiator(record: Uint32Array, ...sendRing: RingArguments): number;
  createXrcTarget(domain: number, out: Memory): number;
  openXrcTarget(domain: number, qpn: number, out: Memory): number;
}
