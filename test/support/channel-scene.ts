/** Connections of mock that are made for channels. */
import { acceptChannel, type ChannelOptions, offerChannel } from '../../core/flow/channel/index.js';
import { connect, type Connection, listen } from '../../core/flow/index.js';
import { type FlowWorld, PORT, SERVER } from './flow-scene.js';

/** Both ends, that of the client first. */
export async function channelConns(
  world: FlowWorld,
  options: ChannelOptions,
  privateData?: Uint8Array,
): Promise<[Connection, Connection]> {
  const listener = await listen(world.server, { port: PORT, ...acceptChannel(options) });
  const offer = offerChannel(options, privateData);
  return Promise.all([
    connect(world.client, { address: SERVER, port: PORT, ...offer }),
    listener.accept(),
  ]);
}
