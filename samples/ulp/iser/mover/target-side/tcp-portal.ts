/** A portal for iSCSI initiators over TCP. */
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import type { TargetNode } from '../../session/target-side/index.js';
import { bracketed } from './iser-portal.js';
import { TcpMover } from './tcp-mover.js';

export class TcpPortal {
  private constructor(
    readonly name: string,
    private readonly server: Server,
  ) {}

  /** @throws the system's error if it cannot listen on the address */
  static async listen(target: TargetNode, address: string, port: number): Promise<TcpPortal> {
    const server = createServer((socket) => meet(target, socket));
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen({ host: address, port, ipv6Only: true }, resolve);
    });
    const bound = server.address() as AddressInfo;
    const name = `${bracketed(bound.address)}:${bound.port}`;
    // An initiator cannot connect to "any address": it is told the one that it has found.
    if (!WILDCARDS.has(bound.address)) target.addPortal(name, false);
    return new TcpPortal(name, server);
  }

  /** Stops listening; open connections continue. */
  async closeListener(): Promise<void> {
    this.server.close();
  }
}

const WILDCARDS: ReadonlySet<string> = new Set(['0.0.0.0', '::']);

function meet(target: TargetNode, socket: Socket): void {
  const portal = `${bracketed(socket.localAddress ?? '')}:${socket.localPort ?? 0}`;
  new TcpMover(target, socket, portal);
}
