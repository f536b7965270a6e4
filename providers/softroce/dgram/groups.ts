/** Multicast groups of the dgram port: a socket for each, bound to the group. */
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import { type Gid, GROUP_BIT, ipFromGid, isIpv4Gid, type Logger } from '../../../core/spi/index.js';
import { interfaceOf, scopedAddress, socketOptions } from './socket.js';
import { groupError } from '../port/port-errors.js';

/** Hop limit of datagrams to groups: that of the kernel's rdma_cm. */
const GROUP_HOPS = 64;

/** Receives the datagrams that arrive for a group. @param localIndex as in RX.LOCAL_GID_INDEX */
export type GroupDatagrams = (
  data: Uint8Array,
  from: RemoteInfo,
  localIndex: number,
  group: Gid,
) => void;

export class DgramGroups {
  private readonly sockets = new Map<number, Socket>();
  /** Numbers are not used again: what a sender's packets looked like is remembered by them. */
  private nextNumber = 0;
  private isHeld = false;

  constructor(
    private readonly gids: readonly Gid[],
    private readonly udpPort: number,
    private readonly onDatagram: GroupDatagrams,
    private readonly logger: Logger,
  ) {}

  /** @throws RangeError, SpiError as `groupError` */
  join(group: Gid, localGidIndex: number): number {
    const { udpPort } = this;
    const local = this.localGid(localGidIndex);
    const socket = createSocket({ ...socketOptions(group), reuseAddr: true });
    try {
      bindNow(socket, { address: groupAddress(group, local), port: udpPort, exclusive: true });
      socket.addMembership(ipFromGid(group), interfaceAddress(local));
    } catch (error) {
      socket.close();
      throw groupError(error, { group, local, udpPort });
    }
    const number = this.nextNumber++;
    const gid = Uint8Array.from(group);
    socket.on('message', (data, from) => this.onDatagram(data, from, GROUP_BIT + number, gid));
    socket.on('error', (error) => this.logger.warn(`UDP socket of a group: ${error.message}`));
    if (!this.isHeld) socket.unref();
    this.sockets.set(number, socket);
    return number;
  }

  leave(group: number): void {
    this.sockets.get(group)?.close();
    this.sockets.delete(group);
  }

  /** @throws SpiError('ENETUNREACH') where no route leads to the group */
  checkRoute(group: Gid, localGidIndex: number): void {
    const { udpPort } = this;
    const local = this.localGid(localGidIndex);
    const socket = createSocket(socketOptions(group));
    // Its errors arrive later; the result of connecting is known at once.
    socket.on('error', () => undefined);
    try {
      bindNow(socket, { address: scopedAddress(local, local), port: 0, exclusive: true });
      sendToGroupsFrom(socket, local);
      socket.connect(udpPort, groupAddress(group, local));
      socket.remoteAddress();
    } catch (error) {
      throw groupError(error, { group, local, udpPort });
    } finally {
      socket.close();
    }
  }

  setProcessHold(alive: boolean): void {
    this.isHeld = alive;
    for (const socket of this.sockets.values()) {
      if (alive) socket.ref();
      else socket.unref();
    }
  }

  close(): void {
    for (const number of [...this.sockets.keys()]) this.leave(number);
  }

  private localGid(index: number): Gid {
    const gid = this.gids[index];
    if (gid) return gid;
    throw new RangeError(`no local address ${String(index)}: there are ${this.gids.length}`);
  }
}

/**
 * Datagrams to groups leave at the interface of the address that the socket is bound to. Where that
 * cannot be had, a path to a group cannot either.
 */
export function prepareForGroups(socket: Socket, local: Gid): void {
  try {
    sendToGroupsFrom(socket, local);
  } catch {
    // An address of no interface may be a local one all the same, without groups.
  }
}

function sendToGroupsFrom(socket: Socket, local: Gid): void {
  socket.setMulticastInterface(interfaceAddress(local));
  socket.setMulticastTTL(GROUP_HOPS);
}

/** The interface of a local address, as node:dgram names it. @throws Error EADDRNOTAVAIL */
function interfaceAddress(local: Gid): string {
  return isIpv4Gid(local) ? ipFromGid(local) : `::%${nameOfInterface(local)}`;
}

/** @throws Error EADDRNOTAVAIL */
function nameOfInterface(local: Gid): string {
  const found = interfaceOf(local);
  if (found) return found.name;
  throw Object.assign(new Error('no interface has the address'), { code: 'EADDRNOTAVAIL' });
}

/** A group that only means something on a link has the interface in its address. */
function groupAddress(group: Gid, local: Gid): string {
  const text = ipFromGid(group);
  const scope = (group[1] ?? 0) & 0xf;
  if (isIpv4Gid(group) || scope > LINK_LOCAL_SCOPE) return text;
  return `${text}%${nameOfInterface(local)}`;
}

/** RFC 4291 2.7. */
const LINK_LOCAL_SCOPE = 2;

/** Addresses need no look-up, so the socket is bound, or not, when the call returns. */
function bindNow(socket: Socket, where: Parameters<Socket['bind']>[0] & object): void {
  let refused: Error | undefined;
  const onError = (error: Error): void => void (refused = error);
  socket.once('error', onError);
  socket.bind(where);
  socket.off('error', onError);
  if (refused !== undefined) throw refused;
}
