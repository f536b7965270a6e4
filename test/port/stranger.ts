/** A plain UDP socket that sends to a port what it likes: right packets, wrong ones, no packets. */
import { createSocket, type Socket } from 'node:dgram';
import { type Gid, gidFromIp, ipFromGid, isIpv4Gid, isMulticastGid } from '../../core/spi/index.js';
import { PseudoHeader, icrcPacket } from '../../providers/hca/wire/icrc.js';

export class Stranger {
  private constructor(
    private readonly socket: Socket,
    private readonly to: Gid,
    private readonly udpPort: number,
  ) {}

  static async bind(address: string, to: Gid, udpPort: number): Promise<Stranger> {
    const socket = createSocket({ type: isIpv4Gid(to) ? 'udp4' : 'udp6', sendBufferSize: 1 << 20 });
    await new Promise<void>((resolve) => socket.bind(0, address, resolve));
    if (isMulticastGid(to)) socket.setMulticastInterface(address);
    return new Stranger(socket, to, udpPort);
  }

  get port(): number {
    return this.socket.address().port;
  }

  /** A datagram with the right ICRC, made with an IPv4 identification of the stranger's choice. */
  seal(packet: Uint8Array, identification = 0): Uint8Array {
    const source = gidFromIp(this.socket.address().address);
    const header = new PseudoHeader().setFlow(source, this.to, this.port, this.udpPort);
    const datagram = new Uint8Array(packet.length + 4);
    datagram.set(packet);
    const register = header.begin(datagram.length, identification);
    const icrc = icrcPacket(register, datagram, 0, packet.length);
    new DataView(datagram.buffer).setUint32(packet.length, icrc, true);
    return datagram;
  }

  send(datagram: Uint8Array): Promise<void> {
    return new Promise((resolve, reject) => {
      this.socket.send(datagram, this.udpPort, ipFromGid(this.to), (error) => {
        if (error) reject(error);
        else resolve();
      });
    });
  }

  close(): void {
    this.socket.close();
  }
}
