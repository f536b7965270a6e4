/** A channel as web streams: a chunk is a message, both ways. */
import type { Channel } from './channel.js';

export interface WebStreams {
  readonly readable: ReadableStream<Uint8Array>;
  readonly writable: WritableStream<Uint8Array>;
}

/**
 * The only reader and writer of the channel from now on. Closing `writable` ends this side's
 * messages; cancelling `readable` or aborting `writable` closes the channel.
 */
export function toWebStreams(channel: Channel): WebStreams {
  const readable = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          controller.enqueue(await channel.receive());
        } catch (error) {
          if (!channel.hasEnded) throw error;
          controller.close();
        }
      },
      cancel: () => channel.close(),
    },
    // Takes a message only when the reader asks for one.
    { highWaterMark: 0 },
  );
  const writable = new WritableStream<Uint8Array>({
    write: (chunk) => channel.send(chunk),
    close: () => channel.end(),
    abort: () => channel.close({ timeoutMs: 0 }),
  });
  return { readable, writable };
}
