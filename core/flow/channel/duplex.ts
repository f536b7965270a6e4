/**
 * A channel as a stream of bytes: node:stream's Duplex. Each write is a message, but the reader
 * does not see message boundaries.
 */
import { leaveUnhandled } from '../../spi/index.js';
import { Duplex } from 'node:stream';

import type { Channel } from './channel.js';

type Done = (error?: Error | null) => void;

function settle(promise: Promise<void>, done: Done): void {
  promise.then(
    () => done(),
    (error: unknown) => done(error as Error),
  );
}

/** Bytes, in messages that the peer takes. */
async function writeAll(channel: Channel, bytes: Uint8Array): Promise<void> {
  const { maxMessageBytes } = channel;
  for (let at = 0; at < bytes.length; at += maxMessageBytes) {
    await channel.send(bytes.subarray(at, at + maxMessageBytes));
  }
}

/** Hands the next bytes to the stream, or their end. */
async function readNext(channel: Channel, stream: Duplex): Promise<void> {
  try {
    let message = await channel.receive();
    // A chunk of no bytes would not ask for the next one.
    while (message.length === 0) message = await channel.receive();
    stream.push(message);
  } catch (error) {
    if (channel.hasEnded) stream.push(null);
    else stream.destroy(error as Error);
  }
}

/** The only reader and writer of the channel from now on. Destroying it closes the channel. */
export function toDuplex(channel: Channel): Duplex {
  return new Duplex({
    read() {
      leaveUnhandled(readNext(channel, this));
    },
    write(chunk: Uint8Array, _encoding, done) {
      settle(writeAll(channel, chunk), done);
    },
    final(done) {
      settle(channel.end(), done);
    },
    destroy(error, done) {
      settle(channel.close(error === null ? {} : { timeoutMs: 0 }), () => done(error));
    },
  });
}
