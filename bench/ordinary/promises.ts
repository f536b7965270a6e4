/** Programs in promises: connections of `dapl/easy` as README has them, and channels over them. */
import { type Connection, connect, listen, type Listener } from 'dapl/easy';
import type { Job, Link, Program } from './link.js';

/** Receive buffers are as long without a word. */
const DEFAULT_BYTES = 16_384;

/** Each side has an address of its own. */
const PORT = 7000;

export interface EasyOptions {
  readonly isChannel: boolean;
  /** Through shared memory, as without a word; else over UDP. */
  readonly isShared: boolean;
  readonly polling?: 'event' | 'adaptive';
  /** The client names its own address, for there are no others of loopback to choose from. */
  readonly isAddressed: boolean;
}

export class EasyProgram implements Program {
  private listener: Listener | undefined;
  private conn: Connection | undefined;

  constructor(
    private readonly options: EasyOptions,
    private readonly local: string,
    private readonly remote: string,
  ) {}

  async listen(job: Job, take: (link: Link) => void): Promise<number> {
    const { channel } = await this.module();
    const announced = this.options.isChannel ? channel.acceptChannel() : {};
    const common = await this.common(job);
    const listener = await listen({ address: this.local, port: PORT, ...common, ...announced });
    this.listener = listener;
    this.accept(listener, take).catch((error: unknown) =>
      process.stderr.write(`${String(error)}\n`),
    );
    return listener.port;
  }

  async connect(job: Job, port: number): Promise<Link> {
    const { channel } = await this.module();
    const announced = this.options.isChannel ? channel.offerChannel() : {};
    const common = await this.common(job);
    const conn = await connect({ address: this.remote, port, ...common, ...announced });
    this.conn = conn;
    return this.linkOf(conn);
  }

  counters(): Readonly<Record<string, number>> | undefined {
    return this.conn?.ia.deviceCounters();
  }

  async close(): Promise<void> {
    await this.listener?.close();
  }

  private async accept(listener: Listener, take: (link: Link) => void): Promise<void> {
    for await (const conn of listener) {
      this.conn = conn;
      take(await this.linkOf(conn));
    }
  }

  private async linkOf(conn: Connection): Promise<Link> {
    if (!this.options.isChannel) {
      return {
        send: (message) => conn.send(message),
        receive: async () => (await conn.receive()).bytes,
        close: () => conn.close(),
      };
    }
    const { channel } = await this.module();
    return channel.channel(conn);
  }

  /** Programs of connections do not load channels. */
  private async module(): Promise<{ channel: typeof import('dapl/flow/channel') }> {
    const none = {} as typeof import('dapl/flow/channel');
    return { channel: this.options.isChannel ? await import('dapl/flow/channel') : none };
  }

  private async common({ bytes }: Job): Promise<object> {
    const { isShared, isChannel, polling, isAddressed } = this.options;
    const isLong = bytes > DEFAULT_BYTES && !isChannel;
    return {
      ...(isLong && { receives: { bufferBytes: bytes } }),
      ...(polling !== undefined && { polling }),
      ...((!isShared || isAddressed) && { provider: await onAddress(this.local, isShared) }),
    };
  }
}

async function onAddress(local: string, isShared: boolean): Promise<object> {
  const { softroce } = await import('dapl/providers/softroce');
  return softroce({ addresses: [local], ...(!isShared && { shm: false }) });
}
