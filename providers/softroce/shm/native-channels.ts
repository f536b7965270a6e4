/** Channels of the native port, with limits and errors that name the problem. */
import { type Gid, SpiError } from '../../../core/spi/index.js';
import type { ChannelOffer, ChannelPort, PeerHalf } from './channel-port.js';
import type { ShmOptions } from './shm-options.js';

/** Addresses of a device. */
const MAX_GIDS = 64;
/** Slot number for a device that is one process. */
const ANY_SLOT = -1;

/** The native port's calls for channels. */
export interface NativeChannelCalls {
  /** As of a ChannelPort. @throws Error with the `code` of the system */
  offerChannel(slots: number, bounceBytes: number, peerBytes: number): ChannelOffer;
  /** @throws Error with code EINVAL or EEXIST */
  attachChannel(
    channel: number,
    generation: bigint,
    memoryFd: number,
    memoryBytes: number,
    wakeFd: number,
    gids: Uint8Array,
    udpPort: number,
    slot: number,
  ): void;
  closeChannel(channel: number): void;
  channelTo(gid: Uint8Array, udpPort: number, slot: number): number;
  useSegment(channel: number, segment: number): void;
  unmapSegment(channel: number, segment: number): void;
  mapSegment(channel: number, segment: number, descriptor: number, bytes: number): void;
}

export class NativeChannels implements ChannelPort {
  onClosed: (channel: number, reason: string) => void = () => undefined;
  /** Channels that have not been closed. */
  private readonly open = new Set<number>();
  private readonly attached = new Set<number>();

  constructor(
    private readonly native: NativeChannelCalls,
    private readonly options: ShmOptions,
  ) {}

  offer(): ChannelOffer {
    const { maxChannels, ringSlots, bounceBytes, peerBytes } = this.options;
    if (this.open.size >= maxChannels) {
      const hint = `raise shm.maxChannels, which is ${String(maxChannels)}`;
      throw new SpiError('ENOMEM', `${String(maxChannels)} channels are open already`, { hint });
    }
    const offer = named('a channel', () =>
      this.native.offerChannel(ringSlots, bounceBytes, peerBytes),
    );
    this.open.add(offer.channel);
    return offer;
  }

  attach(channel: number, peer: PeerHalf): void {
    const { generation, memoryFd, memoryBytes, wakeFd, gids, udpPort, slot } = peer;
    // None is as wrong as too many: the port refuses it, and closes the descriptors.
    const some = gids.length > MAX_GIDS ? [] : gids;
    const gidBytes = new Uint8Array(16 * some.length);
    some.forEach((gid, i) => gidBytes.set(gid, 16 * i));
    named("the peer's half of a channel", () =>
      this.native.attachChannel(
        channel,
        generation,
        memoryFd,
        memoryBytes,
        wakeFd,
        gidBytes,
        udpPort,
        slot ?? ANY_SLOT,
      ),
    );
    this.attached.add(channel);
  }

  isAttached(channel: number): boolean {
    return this.attached.has(channel);
  }

  close(channel: number): void {
    this.attached.delete(channel);
    if (this.open.delete(channel)) this.native.closeChannel(channel);
  }

  /** The port has ended it, and has told the connections that used it. */
  ended(channel: number, reason: string): void {
    this.attached.delete(channel);
    this.open.delete(channel);
    this.onClosed(channel, reason);
  }

  channelTo(gid: Gid, udpPort: number, slot: number | undefined): number {
    return this.native.channelTo(gid, udpPort, slot ?? ANY_SLOT);
  }

  useSegment(channel: number, segment: number): void {
    this.native.useSegment(channel, segment);
  }

  mapSegment(channel: number, segment: number, descriptor: number, bytes: number): void {
    named(`segment ${String(segment)}`, () =>
      this.native.mapSegment(channel, segment, descriptor, bytes),
    );
  }

  unmapSegment(channel: number, segment: number): void {
    this.native.unmapSegment(channel, segment);
  }
}

/** @throws SpiError with the code that the native side gives, and what it was about */
function named<T>(what: string, action: () => T): T {
  try {
    return action();
  } catch (cause) {
    const { code = 'EIO', message } = cause as { code?: string; message: string };
    throw new SpiError(code as SpiError['code'], `${what}: ${message}`, { cause });
  }
}
