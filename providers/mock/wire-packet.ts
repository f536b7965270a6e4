/** Packets on the simulated wire: the bytes of a UDP payload, and the flow they belong to. */
import { type Gid, ipFromGid, isMulticastGid } from '../../core/spi/index.js';
import { type PacketView, packetView } from '../../plugins/faults/grammar/packet-faults.js';
import { PseudoHeader } from '../hca/wire/icrc.js';

/** The longest headers of the port contract, the largest path MTU, and the ICRC. */
export const MAX_PACKET_BYTES = 48 + 4096 + 4;
export const ICRC_BYTES = 4;
const BUFFER_BYTES = (MAX_PACKET_BYTES + 63) & ~63;
const MAX_POOLED = 4096;

/** Source and destination of packets. */
export interface PacketFlow {
  /** IP addresses in text. */
  readonly from: string;
  readonly to: string;
  readonly source: Gid;
  readonly destination: Gid;
  readonly sourcePort: number;
  readonly isMulticast: boolean;
}

/** The view of a packet for a tap. The bytes are the fabric's: copy those that you keep. */
export interface TappedPacket {
  /** A buffer from the pool: the packet is its first `length` bytes, BTH to ICRC. */
  readonly buffer: Uint8Array;
  readonly view: DataView;
  readonly length: number;
  readonly flow: PacketFlow;
}

/** Source and destination of packets, with the IP and UDP headers that the ICRC covers. */
export class Flow implements PacketFlow {
  readonly from: string;
  readonly to: string;
  readonly header: PseudoHeader;
  readonly isMulticast: boolean;

  /** @throws RangeError when the addresses are not of one family */
  constructor(
    readonly source: Gid,
    readonly destination: Gid,
    readonly sourcePort: number,
    destinationPort: number,
  ) {
    this.from = ipFromGid(source);
    this.to = ipFromGid(destination);
    this.isMulticast = isMulticastGid(destination);
    this.header = new PseudoHeader().setFlow(source, destination, sourcePort, destinationPort);
  }
}

export interface WirePacket extends TappedPacket {
  length: number;
  flow: Flow;
}

/** The view of a packet for fault rules and traces. */
export function viewOf({ view, buffer, length, flow }: TappedPacket): PacketView {
  return packetView(view, buffer.subarray(0, length), flow.from, flow.to);
}

/** Keeps buffers of delivered packets for the next ones. */
export class PacketPool {
  private readonly free: WirePacket[] = [];
  /** Packets handed out and not given back: those on the wire and in the ports' queues. */
  inUse = 0;

  take(flow: Flow, length: number): WirePacket {
    this.inUse++;
    const packet = this.free.pop() ?? newPacket(flow);
    packet.flow = flow;
    packet.length = length;
    return packet;
  }

  copy(packet: WirePacket): WirePacket {
    const twin = this.take(packet.flow, packet.length);
    twin.buffer.set(packet.buffer.subarray(0, packet.length));
    return twin;
  }

  release(packet: WirePacket): void {
    this.inUse--;
    if (this.free.length < MAX_POOLED) this.free.push(packet);
  }
}

function newPacket(flow: Flow): WirePacket {
  const buffer = new Uint8Array(BUFFER_BYTES);
  return { buffer, view: new DataView(buffer.buffer), length: 0, flow };
}
