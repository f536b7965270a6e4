/**
 * Plans which packets leave as one segmented datagram (a train): runs to one path and slot, of
 * equal sizes, of which the last may be shorter. The planner itself is native, since it runs for
 * every packet (native/packets/train_planner.cc). This calls it as a pure function.
 */
import type { NativeAddon } from '../../providers/softroce/port/native-addon.js';

export interface PlannedPacket {
  readonly path: number;
  /** The process behind the address that receives it; default 0. */
  readonly slot?: number;
  /** BTH to ICRC. */
  readonly sizeBytes: number;
}

export interface Train {
  /** Index of the first packet. */
  readonly first: number;
  readonly count: number;
  /** Size of every packet but the last. */
  readonly segmentBytes: number;
}

export interface TrainLimits {
  readonly maxSegments: number;
  readonly maxBytes: number;
}

/** Limits of current Linux kernels: UDP_MAX_SEGMENTS, and what an IPv4 datagram holds. */
export const LINUX_TRAIN_LIMITS: TrainLimits = { maxSegments: 128, maxBytes: 65507 };

export function planTrains(
  addon: NativeAddon,
  packets: readonly PlannedPacket[],
  limits: TrainLimits = LINUX_TRAIN_LIMITS,
): Train[] {
  const paths = Uint32Array.from(packets, ({ path }) => path);
  const slots = Uint32Array.from(packets, ({ slot = 0 }) => slot);
  const sizes = Uint32Array.from(packets, ({ sizeBytes }) => sizeBytes);
  const out = new Uint32Array(3 * packets.length);
  const count = addon.planTrains(paths, slots, sizes, limits.maxSegments, limits.maxBytes, out);
  return Array.from({ length: count }, (_, i) => {
    const [first = 0, packetCount = 0, segmentBytes = 0] = out.subarray(3 * i, 3 * i + 3);
    return { first, count: packetCount, segmentBytes };
  });
}
