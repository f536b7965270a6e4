/** Where iSCSI initiators connect to over TCP. */
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import type { TargetNode } from '../../session/target/index.js';
import { bracketed } from './iser-portal.js';
import { TcpMover } from './tcp-mover.js';

export class TcpPortal {
  private constructor(
    readonly name: string,
    private readonly server: Server,
  ) {}

  /** @throws the system's error for an address that cannot be listened on */
  static async listen(target: TargetNode, address: string, port: number): Promise<TcpPortal> {
    const server = createServer((socket) => meet(target, socket));
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen({ host: address, port, ipv6Only: true }, resolve);
    });
    const bound = server.address() as AddressInfo;
    const name = `${bracketed(bound.address)}:${bound.port}`;
    target.addPortal(name, false);
    return new TcpPortal(name, server);
  }

  /** Listens no more; connections live on. */
  async closeListener(): Promise<void> {
    this.server.close();
  }

  /** Resolves when all connections have gone. */
  async whenIdle(): Promise<void> {
    await new Promise<void>((resolve) => {
      if (this.server.listening) resolve();
      else
        this.server.getConnections((_error, count) =>
          count === 0 ? resolve() : this.server.once('close', resolve),
        );
    });
  }
}

function meet(target: TargetNode, socket: Socket): void {
  const portal = `${bracketed(socket.localAddress ?? '')}:${socket.localPort ?? 0}`;
  new TcpMover(target, socket, portal);
}
