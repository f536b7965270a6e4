/** Programs over the sockets of `dapl/ulp/socket`, with rsockets beneath. */
import { rsocket } from 'dapl/ulp/rsocket';
import { createConnection, createServer, type RdmaServer } from 'dapl/ulp/socket';
import { AdapterProgram } from './adapter.js';
import type { Job, Link, Program } from './link.js';
import { connected, SocketLink } from './sockets.js';

export class RsocketProgram extends AdapterProgram implements Program {
  private server: RdmaServer | undefined;

  async listen(_job: Job, take: (link: Link) => void): Promise<number> {
    const protocol = rsocket(await this.open());
    const server = createServer({ protocol }, (socket) => take(new SocketLink(socket)));
    this.server = server;
    await new Promise<void>((resolve, reject) => {
      server.on('error', reject).listen(0, resolve);
    });
    return server.address()!.port;
  }

  async connect(_job: Job, port: number): Promise<Link> {
    const protocol = rsocket(await this.open());
    return connected(createConnection({ protocol, host: this.remote, port }));
  }

  override async close(): Promise<void> {
    this.server?.close();
    await super.close();
  }
}
