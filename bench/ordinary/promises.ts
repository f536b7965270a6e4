/** Programs in promises: connections of `dapl/easy` as README has them, and channels over them. */
import { type Connection, connect, listen, type Listener } from 'dapl/easy';
import type { Job, Link, Program } from './link.js';

/** Receive buffers are as long without a word. */
const DEFAULT_BYTES = 16_384;

/** Each side has an address of its own. */
const PORT = 7000;

/** How messages go over a connection. */
export interface Way {
  offer(): object;
  accept(): object;
  link(conn: Connection): Link;
}

const RAW: Way = {
  offer: () => ({}),
  accept: () => ({}),
  link: (conn) => ({
    send: (message) => conn.send(message),
    receive: async () => (await conn.receive()).bytes,
    close: () => conn.close(),
  }),
};

export interface EasyOptions {
  /** Default: a message is a send. */
  readonly way?: Way | undefined;
  /** Through shared memory, as without a word; else over UDP, by the own address. */
  readonly isShared: boolean;
  readonly polling?: 'event' | 'adaptive' | undefined;
}

export class EasyProgram implements Program {
  private listener: Listener | undefined;
  private conn: Connection | undefined;
  private readonly way: Way;

  constructor(
    private readonly options: EasyOptions,
    private readonly local: string,
    private readonly remote: string,
  ) {
    this.way = options.way ?? RAW;
  }

  async listen(job: Job, take: (link: Link) => void): Promise<number> {
    const options = { ...(await this.common(job)), ...this.way.accept() };
    const listener = await listen({ address: this.local, port: PORT, ...options });
    this.listener = listener;
    const accept = async (): Promise<void> => {
      for await (const conn of listener) {
        this.conn = conn;
        take(this.way.link(conn));
      }
    };
    accept().catch((error: unknown) => process.stderr.write(`${String(error)}\n`));
    return PORT;
  }

  async connect(job: Job, port: number): Promise<Link> {
    const options = { ...(await this.common(job)), ...this.way.offer() };
    this.conn = await connect({ address: this.remote, port, ...options });
    return this.way.link(this.conn);
  }

  counters(): Readonly<Record<string, number>> | undefined {
    // The adapter goes with the last connection.
    return this.conn?.isOpen ? this.conn.ia.deviceCounters() : undefined;
  }

  async close(): Promise<void> {
    await this.listener?.close();
  }

  private async common({ bytes }: Job): Promise<object> {
    const { isShared, way, polling } = this.options;
    return {
      ...(bytes > DEFAULT_BYTES && way === undefined && { receives: { bufferBytes: bytes } }),
      ...(polling !== undefined && { polling }),
      ...(!isShared && { provider: await overUdp(this.local) }),
    };
  }
}

async function overUdp(local: string): Promise<object> {
  const { softroce } = await import('dapl/providers/softroce');
  return softroce({ addresses: [local], shm: false });
}
