/**
 * One direction between two addresses: bandwidth, latency and faults. Probabilities are percent of
 * packets, 0 to 100, as in TigerBeetle's packet simulator; times are up to an hour.
 */
import { checkOptions, outOfRange, numberFrom } from '../../core/spi/checks/index.js';
import type { SeededRandom } from '../../plugins/faults/grammar/seeded-random.js';
import type { WirePacket } from './wire-packet.js';

export interface LinkOptions {
  /** Bits a second, from 1 on; Infinity for a link that takes no time to send. */
  readonly bandwidth: number;
  /** Latency in microseconds: at least `latencyMinUs`, on average `latencyMeanUs`. */
  readonly latencyMinUs: number;
  readonly latencyMeanUs: number;
  readonly lossPercent: number;
  readonly duplicatePercent: number;
  /** Packets that later ones overtake, by up to `reorderDelayUs`. */
  readonly reorderPercent: number;
  readonly reorderDelayUs: number;
  /** Packets in which one to three bits flip. */
  readonly corruptPercent: number;
  /** The longest delay between a packet and its duplicate. */
  readonly duplicateDelayUs: number;
  /** Limit of the backlog, in microseconds of sending; beyond it, the port accepts no more. */
  readonly maxBacklogUs: number;
}

/** A quiet 10 Gbit/s network: 10 us one way, nothing lost. */
export const defaultLink: LinkOptions = {
  bandwidth: 10e9,
  latencyMinUs: 8,
  latencyMeanUs: 10,
  lossPercent: 0,
  duplicatePercent: 0,
  reorderPercent: 0,
  reorderDelayUs: 200,
  corruptPercent: 0,
  duplicateDelayUs: 500,
  maxBacklogUs: 2000,
};

const HOUR_US = 3_600_000_000;
const MICROSECONDS = numberFrom(0, HOUR_US);
const PERCENT = numberFrom(0, 100);
export const BANDWIDTH = numberFrom(1, Infinity);
const LINK = {
  bandwidth: BANDWIDTH,
  latencyMinUs: MICROSECONDS,
  latencyMeanUs: MICROSECONDS,
  lossPercent: PERCENT,
  duplicatePercent: PERCENT,
  reorderPercent: PERCENT,
  reorderDelayUs: MICROSECONDS,
  corruptPercent: PERCENT,
  duplicateDelayUs: MICROSECONDS,
  maxBacklogUs: numberFrom(0, Infinity),
};

/** @throws RangeError that names the option, its value and its limits */
export function checkLink(options: Partial<LinkOptions>): void {
  checkOptions({ ...defaultLink, ...options }, LINK, outOfRange);
  const { latencyMinUs = 0, latencyMeanUs = latencyMinUs } = options;
  if (latencyMeanUs < latencyMinUs) {
    throw outOfRange('latencyMeanUs', latencyMeanUs, `at least ${latencyMinUs}, latencyMinUs`);
  }
}

/** Bytes that a link carries around each UDP payload: Ethernet, IP and UDP. */
export const OVERHEAD_BYTES = 66;

export class Link {
  options: LinkOptions = defaultLink;
  /** Packets are lost while true. */
  partitioned = false;
  /** Packets wait while true, and come in order when it ends. */
  clogged = false;
  readonly held: WirePacket[] = [];
  private busyUntilUs = 0;
  private lastDeliveryUs = 0;

  constructor(
    readonly from: string,
    readonly to: string,
  ) {}

  /** Microseconds of sending that wait before a packet offered now. */
  backlogUs(nowUs: number): number {
    return Math.max(0, this.busyUntilUs - nowUs);
  }

  /** Sends a packet of so many bytes behind all sent before; when it would arrive by itself. */
  deliveryUs(nowUs: number, bytes: number, random: SeededRandom): number {
    const { bandwidth, latencyMinUs, latencyMeanUs } = this.options;
    const sendUs = ((bytes + OVERHEAD_BYTES) * 8e6) / bandwidth;
    this.busyUntilUs = Math.max(nowUs, this.busyUntilUs) + sendUs;
    const latencyUs = latencyMinUs + random.exponential(latencyMeanUs - latencyMinUs);
    return this.busyUntilUs + latencyUs;
  }

  /** The arrival time of a packet that is not reordered: never before the one sent before it. */
  inOrder(deliveryUs: number): number {
    this.lastDeliveryUs = Math.max(this.lastDeliveryUs, deliveryUs);
    return this.lastDeliveryUs;
  }
}
