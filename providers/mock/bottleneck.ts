/**
 * The port of a switch that leads to an address. All packets to that address go through it, at its
 * bandwidth; packets that do not fit into its queue are dropped (drop-tail).
 */
import { checkOptions, outOfRange, POSITIVE } from '../../core/spi/checks/index.js';
import { BANDWIDTH } from './link.js';

export interface BottleneckOptions {
  /** Bits a second, from 1 on. */
  readonly bandwidth: number;
  /** Bytes that may wait, the packet being sent included: above 0. */
  readonly queueBytes: number;
}

const BOTTLENECK = { bandwidth: BANDWIDTH, queueBytes: POSITIVE };

export class Bottleneck {
  /** Packets dropped for want of room. */
  dropped = 0;
  /** Bytes that have gone through. */
  passedBytes = 0;
  private busyUntilUs = 0;

  /** @internal @throws RangeError naming the option and its value */
  constructor(readonly options: BottleneckOptions) {
    checkOptions(options, BOTTLENECK, outOfRange);
  }

  /** @internal when a packet that arrives now has gone through; undefined when it is dropped. */
  passUs(nowUs: number, bytes: number): number | undefined {
    const { bandwidth, queueBytes } = this.options;
    const fromUs = Math.max(nowUs, this.busyUntilUs);
    const waitingBytes = ((fromUs - nowUs) * bandwidth) / 8e6;
    if (waitingBytes + bytes > queueBytes) {
      this.dropped += 1;
      return undefined;
    }
    this.passedBytes += bytes;
    this.busyUntilUs = fromUs + (bytes * 8e6) / bandwidth;
    return this.busyUntilUs;
  }
}
