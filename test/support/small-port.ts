/** A packet port over another one with arrays of its own: as small as a port's may be. */
import {
  CLOCK,
  type ConfiguredModule,
  definePlugin,
  ForwardingPort,
  PACKET_PORT,
  type PacketPort,
  PLACE,
  RX,
  TX,
  TX_SEGMENT,
} from '../../core/spi/index.js';

export interface PortSizes {
  readonly rxArena: number;
  /** In words, as the arrays after it. */
  readonly rxPackets: number;
  readonly placements: number;
  readonly txPackets: number;
  readonly txSegments: number;
}

/** @param maxSge of the device over it */
export function leastSizes({ mtuBytes }: { mtuBytes: number }, maxSge: number): PortSizes {
  return {
    rxArena: 48 + mtuBytes,
    rxPackets: RX.WORDS,
    placements: PLACE.WORDS,
    txPackets: TX.WORDS,
    txSegments: (maxSge + 1) * TX_SEGMENT.WORDS,
  };
}

export class SmallPort extends ForwardingPort {
  override readonly rxArena: Uint8Array;
  override readonly rxPackets: Uint32Array;
  override readonly placements: Uint32Array;
  override readonly txPackets: Uint32Array;
  override readonly txSegments: Uint32Array;
  /** Of the last burst of the other port. */
  private received = 0;
  private next = 0;

  constructor(port: PacketPort, sizes: PortSizes) {
    super(port);
    this.rxArena = new Uint8Array(sizes.rxArena);
    this.rxPackets = new Uint32Array(sizes.rxPackets);
    this.placements = new Uint32Array(sizes.placements);
    this.txPackets = new Uint32Array(sizes.txPackets);
    this.txSegments = new Uint32Array(sizes.txSegments);
  }

  override receive(): number {
    if (this.next === this.received) {
      this.next = 0;
      this.received = this.port.receive();
    }
    if (this.next === this.received) return 0;
    const at = this.next++ * RX.WORDS;
    const words = this.port.rxPackets.subarray(at, at + RX.WORDS);
    const from = words[RX.OFFSET]!;
    this.rxPackets.set(words);
    this.rxPackets[RX.OFFSET] = 0;
    this.rxArena.set(this.port.rxArena.subarray(from, from + words[RX.LENGTH]!));
    return 1;
  }

  override place(count: number): void {
    const from = this.port.rxPackets[(this.next - 1) * RX.WORDS + RX.OFFSET]!;
    this.port.placements.set(this.placements);
    for (let i = 0; i < count; i++) this.port.placements[i * PLACE.WORDS + PLACE.SOURCE]! += from;
    this.port.place(count);
  }

  override send(from: number, to: number): number {
    this.port.txPackets.set(this.txPackets);
    this.port.txSegments.set(this.txSegments);
    return this.port.send(from, to);
  }
}

/** Puts it between a device and its own port. */
export function smallPort(sizesOf: (port: PacketPort) => PortSizes): ConfiguredModule<'port'> {
  const meta = {
    name: 'small',
    kind: 'port',
    sdkVersion: '2.0',
    requires: [],
    provides: [],
  } as const;
  const inject = { port: PACKET_PORT, clock: CLOCK };
  return definePlugin(
    { ...meta, inject },
    ({ port }) => new SmallPort(port, sizesOf(port)),
  )(undefined);
}
