/**
 * The announcement: the first bytes of the private data of a connection request and of its answer.
 * Each side announces the versions that it supports, and the receives that it has posted.
 */
import { checkInteger } from '../../spi/checks/index.js';
import { emit, layout, parse, uint } from './field-table.js';
import { breach } from './protocol-error.js';

/** The supported versions of the protocol: the lowest, and the highest. */
export const CHANNEL_VERSIONS = { lowest: 1, highest: 1 } as const;

export const ANNOUNCEMENT_BYTES = 20;
/** One buffer for messages, and the reserved one. */
export const MIN_BUFFERS = 2;
export const MAX_BUFFERS = 0xffff;
/** A frame's header, and as much again. */
export const MIN_BUFFER_BYTES = 16;
export const MAX_BUFFER_BYTES = 2 ** 30;
export const MAX_MESSAGE_BYTES = 2 ** 32 - 1;

/** "DATc". */
const MAGIC = 0x44415463;

const ANNOUNCEMENT = layout('announcement', ANNOUNCEMENT_BYTES, {
  /** Tells a channel from any other protocol. */
  magic: uint(0, 4, MAGIC, MAGIC),
  /** Versions that the sender speaks. */
  lowestVersion: uint(4, 1, 1),
  highestVersion: uint(5, 1, 1),
  /** Receives that the sender has posted, the reserved one included. */
  buffers: uint(6, 2, MIN_BUFFERS, MAX_BUFFERS),
  /** Bytes of each of them: the longest frame. */
  bufferBytes: uint(8, 4, MIN_BUFFER_BYTES, MAX_BUFFER_BYTES),
  /** The longest message that the sender takes. */
  maxMessageBytes: uint(12, 4, 1, MAX_MESSAGE_BYTES),
});

/** Limits of what a side accepts. */
export interface ChannelLimits {
  /** Receives that it has posted, the reserved one included: 2 to 65,535. */
  readonly buffers: number;
  /** Bytes of each of them, the 8 of a frame's header included: 16 to 2^30. */
  readonly bufferBytes: number;
  /** The longest message that it takes, in bytes: 1 to 2^32 - 1. */
  readonly maxMessageBytes: number;
}

/** @throws RangeError naming field, value and limit */
export function announcementOf(limits: ChannelLimits): Uint8Array {
  const { buffers, bufferBytes, maxMessageBytes } = limits;
  const data = new Uint8Array(ANNOUNCEMENT_BYTES);
  const { lowest: lowestVersion, highest: highestVersion } = CHANNEL_VERSIONS;
  emit(
    ANNOUNCEMENT,
    { magic: MAGIC, lowestVersion, highestVersion, buffers, bufferBytes, maxMessageBytes },
    data,
  );
  return data;
}

export interface Announced extends ChannelLimits {
  /** The highest version that both sides support. */
  readonly version: number;
}

/**
 * The peer's announcement.
 * @param data private data; what follows the announcement is the consumer's
 * @throws ChannelProtocolError when it announces no channel, no version that is spoken here, or
 * what cannot be; it names value and limit
 */
export function readAnnouncement(data: Uint8Array): Announced {
  const fields = parse(ANNOUNCEMENT, data);
  const { lowestVersion, highestVersion, buffers, bufferBytes, maxMessageBytes } = fields;
  const { lowest, highest } = CHANNEL_VERSIONS;
  checkInteger(
    'announcement.highestVersion',
    highestVersion,
    Math.max(lowest, lowestVersion),
    255,
    breach,
  );
  checkInteger('announcement.lowestVersion', lowestVersion, 1, highest, breach);
  return { version: Math.min(highest, highestVersion), buffers, bufferBytes, maxMessageBytes };
}
