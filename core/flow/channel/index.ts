/**
 * `dapl/flow/channel`: messages of any length with credits over a connection of `dapl/flow`. See
 * docs/channel.md.
 */
export { ANNOUNCEMENT_BYTES, CHANNEL_VERSIONS, type ChannelLimits } from './announcement.js';
export { Channel, channel, type ChannelData, peerPrivateDataOf } from './channel.js';
export { toDuplex } from './duplex.js';
export { acceptChannel, type ChannelOptions, offerChannel } from './limits.js';
export { ChannelProtocolError } from './protocol-error.js';
export { toWebStreams, type WebStreams } from './web-streams.js';
