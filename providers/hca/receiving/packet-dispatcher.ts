/** Finds the queue pair of a received packet. Checks in the same order as the kernel's rxe. */
import {
  type DeviceShare,
  type Gid,
  GROUP_BIT,
  GSI_QPN,
  type HandedPacket,
  isIpv4Gid,
  QpState,
  RX,
  RxFlags,
} from '../../../core/spi/index.js';
import { bthDestQpn, bthPsn, QPN_MULTICAST } from '../../../core/spi/wire/bth.js';
import { OPCODE_BIT, TRANSPORT } from '../../../core/spi/wire/opcode.js';
import {
  BITS_OF,
  checkPacket,
  HEADER_LENGTH_OF,
  PACKET_CHECK,
  payloadLength,
} from '../../../core/spi/wire/packet-layout.js';
import type { DropReason } from '../common/counters.js';
import { ReceivedPacket } from '../common/received-packet.js';
import type { Hca } from '../hca.js';
import type { SoftQueuePair } from '../queue-pair/queue-pair.js';

/** The drop counter of each verdict of the wire's `checkPacket`. */
const DROP_OF_CHECK: Readonly<Record<number, DropReason>> = {
  [PACKET_CHECK.tooShort]: 'tooShort',
  [PACKET_CHECK.unknownOpcode]: 'unknownOpcode',
  [PACKET_CHECK.badTransportVersion]: 'badTransportVersion',
  [PACKET_CHECK.truncated]: 'truncated',
  [PACKET_CHECK.misaligned]: 'misaligned',
};

const bit = (...states: readonly number[]): number =>
  states.reduce((mask, state) => mask | (1 << state), 0);
/** States that accept requests, and those that accept responses. */
const TAKES_REQUESTS = bit(QpState.RTR, QpState.RTS, QpState.SQD, QpState.SQE);
const TAKES_RESPONSES = bit(QpState.RTS, QpState.SQD);

export class PacketDispatcher {
  private readonly rx = new ReceivedPacket();
  private rxArena: Uint8Array | undefined;
  /** The last burst has payload outside the arena, placed or to be placed. */
  leftInPlace = false;
  /** Packets of the burst that are for QP1: where their words begin. */
  private readonly forGsi: number[] = [];
  /** The packet being processed was handed over by another process. */
  private isHanded = false;

  constructor(private readonly hca: Hca) {}

  /** Dispatches the packets of the port's last `receive`: data first, then those for QP1. */
  dispatch(count: number): void {
    this.lookAtArena();
    this.leftInPlace = false;
    for (let i = 0; i < count; i++) this.dispatchOne(i * RX.WORDS);
    if (this.forGsi.length > 0) this.dispatchToGsi();
  }

  /**
   * Management datagrams have no connection that would wait for them, and any host may send any
   * number of them: in a burst they come last. How many have a turn is the MAD module's to say
   * (plugins/mad/gsi-port.ts).
   */
  private dispatchToGsi(): void {
    const { forGsi, hca } = this;
    for (let i = 0; i < forGsi.length; i++) {
      const at = forGsi[i]!;
      if (hca.share !== undefined && this.isStray(hca.share, at)) continue;
      const opcode = this.rx.view.getUint8(hca.port.rxPackets[at + RX.OFFSET]!);
      this.deliver(at, opcode, hca.queuePairs.find(GSI_QPN));
    }
    forGsi.length = 0;
  }

  /** The last packet that was for one of our queue pairs was a request. */
  get tookRequest(): boolean {
    return isRequest(this.rx.opcode);
  }

  private lookAtArena(): void {
    const arena = this.hca.port.rxArena;
    if (arena === this.rxArena) return;
    this.rxArena = arena;
    this.rx.view = new DataView(arena.buffer, arena.byteOffset, arena.byteLength);
  }

  private dispatchOne(at: number): void {
    const { rx, hca } = this;
    const { counters } = hca;
    const words = hca.port.rxPackets;
    const offset = words[at + RX.OFFSET]!;
    const length = words[at + RX.LENGTH]!;
    const verdict = checkPacket(rx.view, offset, length);
    if (verdict !== PACKET_CHECK.ok) {
      counters.drops[DROP_OF_CHECK[verdict]!] += 1;
      return;
    }
    const opcode = rx.view.getUint8(offset);
    const destination = words[at + RX.LOCAL_GID_INDEX]!;
    if (destination >= GROUP_BIT) {
      this.dispatchToGroup(at, opcode);
      return;
    }
    const qpn = bthDestQpn(rx.view, offset);
    if (qpn === GSI_QPN) this.forGsi.push(at);
    else this.deliver(at, opcode, hca.queuePairs.find(qpn));
  }

  private deliver(at: number, opcode: number, qp: SoftQueuePair | undefined): void {
    const { rx, hca } = this;
    const { counters } = hca;
    if (qp === undefined) this.onUnknownQpn(at);
    else if (qp.transport !== opcode >>> 5) counters.drops.wrongTransport += 1;
    else if ((statesFor(opcode) & (1 << qp.state)) === 0) counters.drops.wrongState += 1;
    else {
      this.describe(at, opcode);
      rx.destination = hca.port.gids[rx.localGidIndex]!;
      qp.receive(rx);
    }
  }

  private onUnknownQpn(at: number): void {
    const { share, counters } = this.hca;
    if (share === undefined || !this.isStray(share, at)) counters.drops.unknownQpn += 1;
  }

  /** True if the packet is for another process of a shared device; hands it over then. */
  private isStray(share: DeviceShare, at: number): boolean {
    const { hca, isHanded } = this;
    const words = hca.port.rxPackets;
    const { rxArena } = hca.port;
    const offset = words[at + RX.OFFSET]!;
    const packet = rxArena.subarray(offset, offset + words[at + RX.LENGTH]!);
    const owner = share.ownerOf(packet);
    // A packet is handed over only once: two processes may see their lists differently.
    if (owner === share.slot || isHanded) return false;
    const isWhole = words[at + RX.BODY] === 0;
    if (isWhole && share.handOver(owner, handedAt(words, at, packet)))
      hca.counters.misdelivered += 1;
    else hca.counters.misdeliveredDrops += 1;
    return true;
  }

  /** A packet that another process has handed over, in place of a burst. */
  dispatchHanded({ bytes, sourceGid, sourcePort, localGidIndex }: HandedPacket): void {
    const { port } = this.hca;
    const { rxArena, rxPackets: words } = port;
    if (bytes.length > rxArena.length || localGidIndex >= port.gids.length) return;
    rxArena.set(bytes);
    words.fill(0, 0, RX.WORDS);
    words[RX.LENGTH] = bytes.length;
    words[RX.LOCAL_GID_INDEX] = localGidIndex;
    const source = new DataView(sourceGid.buffer, sourceGid.byteOffset, sourceGid.byteLength);
    for (let i = 0; i < 4; i++) words[RX.SOURCE_GID + i] = source.getUint32(4 * i);
    words[RX.SOURCE_PORT] = sourcePort;
    if (!isIpv4Gid(sourceGid)) words[RX.FLAGS] = RxFlags.IPV6;
    this.isHanded = true;
    this.dispatch(1);
    this.isHanded = false;
  }

  /**
   * Dispatches a datagram to a group: to QP 0xffffff (IBTA 9.6.1.1.3) and the queue pairs attached.
   */
  private dispatchToGroup(at: number, opcode: number): void {
    const { rx, hca } = this;
    const { counters } = hca;
    const words = hca.port.rxPackets;
    const forGroup = bthDestQpn(rx.view, words[at + RX.OFFSET]!) === QPN_MULTICAST;
    if (opcode >>> 5 !== TRANSPORT.ud) counters.drops.wrongTransport += 1;
    else {
      this.describe(at, opcode);
      const group = words[at + RX.LOCAL_GID_INDEX]! - GROUP_BIT;
      if (!forGroup || hca.multicast.deliver(group, rx) === 0) counters.drops.unknownQpn += 1;
    }
  }

  private describe(at: number, opcode: number): void {
    const { rx } = this;
    const words = this.hca.port.rxPackets;
    const offset = words[at + RX.OFFSET]!;
    rx.offset = offset;
    rx.opcode = opcode;
    rx.psn = bthPsn(rx.view, offset);
    const body = words[at + RX.BODY]!;
    if (body !== 0) this.leftInPlace = true;
    rx.payloadOffset = (body === 0 ? offset : body) + HEADER_LENGTH_OF[opcode]!;
    rx.payloadLength = payloadLength(rx.view, offset, words[at + RX.LENGTH]!);
    rx.localGidIndex = words[at + RX.LOCAL_GID_INDEX]!;
    rx.source0 = words[at + RX.SOURCE_GID]!;
    rx.source1 = words[at + RX.SOURCE_GID + 1]!;
    rx.source2 = words[at + RX.SOURCE_GID + 2]!;
    rx.source3 = words[at + RX.SOURCE_GID + 3]!;
    rx.sourcePort = words[at + RX.SOURCE_PORT]!;
    rx.isIpv6 = (words[at + RX.FLAGS]! & RxFlags.IPV6) !== 0;
  }
}

function isRequest(opcode: number): boolean {
  return (BITS_OF[opcode]! & OPCODE_BIT.request) !== 0;
}

function statesFor(opcode: number): number {
  return isRequest(opcode) ? TAKES_REQUESTS : TAKES_RESPONSES;
}

function handedAt(words: Uint32Array, at: number, bytes: Uint8Array): HandedPacket {
  const sourceGid: Gid = new Uint8Array(16);
  const source = new DataView(sourceGid.buffer);
  for (let i = 0; i < 4; i++) source.setUint32(4 * i, words[at + RX.SOURCE_GID + i]!);
  return {
    bytes,
    sourceGid,
    sourcePort: words[at + RX.SOURCE_PORT]!,
    localGidIndex: words[at + RX.LOCAL_GID_INDEX]!,
  };
}
