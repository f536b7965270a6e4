/**
 * Multicast groups (IBTA 10.5), with the datagram queue pairs that receive packets to each. The
 * port is a member of a group as long as one of them is.
 */
import {
  type Gid,
  ipFromGid,
  isIpv4Gid,
  isMulticastGid,
  type MulticastOptions,
  type PacketPort,
  QpState,
  SpiError,
} from '../../../core/spi/index.js';
import type { ReceivedPacket } from '../common/received-packet.js';
import { dethSrcQpn } from '../wire/extended-headers.js';
import { DETH_OFFSET_OF } from '../../../core/spi/wire/packet-layout.js';
import type { SoftQueuePair } from '../queue-pair/queue-pair.js';

interface Group {
  readonly gid: Gid;
  /** The options of each member. */
  readonly members: Map<SoftQueuePair, MulticastOptions>;
}

const LISTENS = (1 << QpState.RTR) | (1 << QpState.RTS) | (1 << QpState.SQD) | (1 << QpState.SQE);

export class MulticastTable {
  /** By the port's number. */
  private readonly groups = new Map<number, Group>();

  constructor(private readonly port: PacketPort) {}

  /** The port can join groups. */
  get possible(): boolean {
    return this.port.joinGroup !== undefined;
  }

  /** Attaching twice is once; how the queue pair is a member may change by it. */
  attach(qp: SoftQueuePair, gid: Gid, options: MulticastOptions = {}): void {
    if (options.sendOnly === true) {
      this.checkGroup(gid);
      return;
    }
    const number = this.find(gid) ?? this.join(gid);
    this.groups.get(number)!.members.set(qp, options);
  }

  detach(qp: SoftQueuePair, gid: Gid): void {
    const number = this.find(gid);
    if (number === undefined || !this.groups.get(number)!.members.has(qp)) {
      throw new SpiError('EINVAL', `queue pair ${qp.qpn} is not attached to ${ipFromGid(gid)}`);
    }
    this.leave(number, qp);
  }

  /** The queue pair ends. */
  detachAll(qp: SoftQueuePair): void {
    for (const [number, { members }] of this.groups) if (members.has(qp)) this.leave(number, qp);
  }

  /** A datagram to a group, for each of its members; how many there were. */
  deliver(number: number, rx: ReceivedPacket): number {
    const group = this.groups.get(number);
    if (group === undefined) return 0;
    rx.destination = group.gid;
    let count = 0;
    for (const [qp, { loopback = true }] of group.members) {
      if ((LISTENS & (1 << qp.state)) === 0) continue;
      count += 1;
      if (loopback || !this.isFrom(qp, rx)) qp.receive(rx);
    }
    return count;
  }

  /** A queue pair number means something with one of our addresses only. */
  private isFrom(qp: SoftQueuePair, rx: ReceivedPacket): boolean {
    const deth = rx.offset + DETH_OFFSET_OF[rx.opcode]!;
    return dethSrcQpn(rx.view, deth) === qp.qpn && this.port.gids.some((gid) => isSource(rx, gid));
  }

  private find(gid: Gid): number | undefined {
    const address = ipFromGid(gid);
    for (const [number, group] of this.groups) if (ipFromGid(group.gid) === address) return number;
    return undefined;
  }

  /** @returns the place of the own address that the group is joined at */
  private checkGroup(gid: Gid): number {
    if (!isMulticastGid(gid)) {
      const groups = '224.0.0.0/4, ff00::/8';
      throw new SpiError('EINVAL', `${ipFromGid(gid)} is not the address of a group (${groups})`);
    }
    const local = this.port.gids.findIndex((each) => isIpv4Gid(each) === isIpv4Gid(gid));
    if (local < 0) throw new SpiError('ENETUNREACH', `${ipFromGid(gid)}: no address of its family`);
    return local;
  }

  private join(gid: Gid): number {
    const local = this.checkGroup(gid);
    if (!this.port.joinGroup) throw new SpiError('EOPNOTSUPP', 'the port joins no groups');
    const number = this.port.joinGroup(gid, local);
    this.groups.set(number, { gid: Uint8Array.from(gid), members: new Map() });
    return number;
  }

  private leave(number: number, qp: SoftQueuePair): void {
    const { members } = this.groups.get(number)!;
    members.delete(qp);
    if (members.size > 0) return;
    this.groups.delete(number);
    this.port.leaveGroup?.(number);
  }
}

function isSource({ source0, source1, source2, source3 }: ReceivedPacket, gid: Gid): boolean {
  const view = new DataView(gid.buffer, gid.byteOffset, gid.byteLength);
  return [source0, source1, source2, source3].every((word, i) => view.getUint32(4 * i) === word);
}
