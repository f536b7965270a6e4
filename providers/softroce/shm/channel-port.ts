/** Channels of a port, as the meeting of two devices needs them. */
import type { Gid } from '../../../core/spi/index.js';

export interface ChannelPort {
  /**
   * Makes our half of a channel. Its descriptors are the port's until `attach` or `close`.
   * @throws SpiError('ENOMEM') beyond the limits of channels or of the system
   */
  offer(): ChannelOffer;
  /**
   * Maps the peer's half and opens the channel. Takes both descriptors, also when it throws.
   * @throws SpiError('EINVAL') memory that is not sealed, or not what it says; ('EEXIST') another
   * channel leads to the process
   */
  attach(channel: number, peer: PeerHalf): void;
  isAttached(channel: number): boolean;
  /** Connections that use it fail at once. Idempotent. */
  close(channel: number): void;
  /**
   * The channel that leads to an address, or -1; one whose peer is dead is none.
   * @param slot of the process there that is meant; undefined is whichever has the address
   */
  channelTo(gid: Gid, udpPort: number, slot: number | undefined): number;
  /** Called once when a channel ends by the peer. */
  onClosed: (channel: number, reason: string) => void;
  /** The peer has mapped our segment: packets may name it from now on. */
  useSegment(channel: number, segment: number): void;
  /**
   * Maps a segment of the peer's. Takes the descriptor, also when it throws.
   * @throws SpiError('EINVAL') memory that is not sealed, or a number taken; ('ENOMEM') limits
   */
  mapSegment(channel: number, segment: number, descriptor: number, bytes: number): void;
  unmapSegment(channel: number, segment: number): void;
}

export interface ChannelOffer {
  readonly channel: number;
  /** Generation of this half: 64 random bits, which its memory contains, too. */
  readonly generation: bigint;
  readonly memoryFd: number;
  readonly memoryBytes: number;
  /** The peer's end of our wake-up descriptor. */
  readonly wakeFd: number;
}

export interface PeerHalf {
  readonly generation: bigint;
  readonly memoryFd: number;
  readonly memoryBytes: number;
  readonly wakeFd: number;
  readonly gids: readonly Gid[];
  readonly udpPort: number;
  /** The slot of the process, if others share its addresses. */
  readonly slot: number | undefined;
}
