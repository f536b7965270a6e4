/**
 * Unreliable datagram queue pair, QP1 (GSI) among them: one packet a message, checked by Q_Key
 * (IBTA 9.8.3). A send completes when the port has taken its packet. A datagram that does not fit
 * the receive posted is dropped and the receive stays: any host may send to QP1.
 */
import {
  type Gid,
  GRH_LENGTH,
  GSI_QKEY,
  type MulticastOptions,
  QpState,
  QpType,
  type QueuePairInit,
  RQE,
  SpiError,
  SQE,
  WcFlags,
  WcOpcode,
  WcStatus,
  WrFlags,
  GSI_QPN,
} from '../../../core/spi/index.js';
import {
  BTH_FLAG,
  BTH_LENGTH,
  bthPad,
  bthSolicited,
  writeBth,
} from '../../../core/spi/wire/bth.js';
import { TRANSPORT, UD_BASE, UD } from '../../../core/spi/wire/opcode.js';
import { IMMDT_OFFSET_OF } from '../../../core/spi/wire/packet-layout.js';
import { packetOpcode, REQUEST_BIT, REQUEST_BITS } from '../../../core/spi/wire/request-opcodes.js';
import type { ReceivedPacket } from '../common/received-packet.js';
import { MEMORY_CHECK } from '../memory/memory.js';
import { segmentBytes, SegmentCursor } from '../memory/segment-cursor.js';
import type { Hca } from '../hca.js';
import { SoftQueuePair, requestBytes } from '../queue-pair/queue-pair.js';
import { UnacknowledgedSends } from '../queue-pair/unacknowledged-sends.js';
import { type ReceiveSource, segmentCount } from '../srq/receive-source.js';
import {
  dethQkey,
  dethSrcQpn,
  immdtValue,
  writeDeth,
  DETH_LENGTH,
} from '../wire/extended-headers.js';
import { PSN_MASK, psnNext } from '../wire/psn.js';
import type { SoftAddressHandle } from './address-handle.js';

/**
 * The 40-byte area in front of every received datagram (IBTA 11.4.1.2; RoCEv2: the IP header). The
 * port hands on the addresses only, so the header is made from them: IPv6 whole, IPv4 in the last
 * 20 bytes with a right checksum, by which consumers tell the two apart.
 */
const UDP = 17;
const UDP_HEADER = 8;
const ICRC = 4;
const IPV4_HEADER = 20;
const HOP_LIMIT = 64;

/** Writes the area for a packet that was sent to `destination`. */
function writeGrhArea(area: Uint8Array, rx: ReceivedPacket, destination: Gid): void {
  const view = new DataView(area.buffer, area.byteOffset, GRH_LENGTH);
  area.fill(0, 0, GRH_LENGTH);
  const payload = rx.payloadOffset - rx.offset + rx.payloadLength + (-rx.payloadLength & 3);
  const udpLength = UDP_HEADER + payload + ICRC;
  if (rx.isIpv6) {
    view.setUint32(0, 0x60000000);
    view.setUint16(4, udpLength);
    view.setUint8(6, UDP);
    view.setUint8(7, HOP_LIMIT);
    view.setUint32(8, rx.source0);
    view.setUint32(12, rx.source1);
    view.setUint32(16, rx.source2);
    view.setUint32(20, rx.source3);
    area.set(destination, 24);
    return;
  }
  view.setUint8(20, 0x45);
  view.setUint16(22, IPV4_HEADER + udpLength);
  view.setUint16(26, 0x4000);
  view.setUint8(28, HOP_LIMIT);
  view.setUint8(29, UDP);
  view.setUint32(32, rx.source3);
  for (let i = 0; i < 4; i++) area[36 + i] = destination[12 + i] ?? 0;
  view.setUint16(30, ipv4Checksum(view, 20));
}

/** RFC 1071 over the 20 bytes at `at`, whose checksum field is zero. */
function ipv4Checksum(view: DataView, at: number): number {
  let sum = 0;
  for (let i = 0; i < IPV4_HEADER; i += 2) sum += view.getUint16(at + i);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return ~sum & 0xffff;
}

const PRIVILEGED_QKEY = 0x80000000;

export class UdQueuePair extends SoftQueuePair {
  override readonly transport = TRANSPORT.ud;
  private psn = 0;
  private qkey = 0;
  private readonly sends: UnacknowledgedSends;
  private readonly cursor = new SegmentCursor();
  private readonly grhArea = new Uint8Array(GRH_LENGTH);

  constructor(hca: Hca, qpn: number, init: QueuePairInit, receives?: ReceiveSource) {
    super(hca, qpn, init, receives);
    this.sends = new UnacknowledgedSends(this);
  }

  // --- receiving --------------------------------------------------------------------------------

  override receive(rx: ReceivedPacket): void {
    const { counters } = this.hca;
    const deth = rx.offset + BTH_LENGTH;
    if (!this.hca.pkeyAllowed(rx)) counters.drops.badPkey += 1;
    else if (dethQkey(rx.view, deth) !== this.qkey) counters.drops.badQkey += 1;
    else if (rx.payloadLength > this.hca.port.mtuBytes) counters.drops.badLength += 1;
    else if (!this.takeReceive()) {
      counters.drops[this.type === QpType.GSI ? 'gsiOverflow' : 'noReceive'] += 1;
    } else this.accept(rx, dethSrcQpn(rx.view, deth));
  }

  /** A receive is at hand; when the datagram does not fit, the next one may. */
  private accept(rx: ReceivedPacket, sourceQpn: number): void {
    const { hca, receives } = this;
    const { words, maxSge } = receives;
    const segments = segmentCount(words, this.receiveEntry);
    const first = this.receiveEntry + RQE.SEGMENTS;
    const bytes = GRH_LENGTH + rx.payloadLength;
    if (segments <= maxSge && segmentBytes(words, first, segments) < bytes) {
      hca.counters.drops.bufferTooSmall += 1;
      this.putBackReceive();
      return;
    }
    const status = segments <= maxSge ? this.scatter(rx, first, segments) : WcStatus.LOC_QP_OP_ERR;
    if (status !== WcStatus.SUCCESS) {
      hca.counters.localErrors += 1;
      this.completeReceive(status, WcOpcode.RECV, 0, 0, 0, 0);
      this.toError();
      return;
    }
    let flags: number = WcFlags.GRH;
    if (bthSolicited(rx.view, rx.offset)) flags |= WcFlags.SOLICITED;
    const immediateAt = IMMDT_OFFSET_OF[rx.opcode]!;
    if (immediateAt !== 0) flags |= WcFlags.WITH_IMM;
    const immediate = immediateAt === 0 ? 0 : immdtValue(rx.view, rx.offset + immediateAt);
    this.completeReceive(WcStatus.SUCCESS, WcOpcode.RECV, flags, bytes, immediate, sourceQpn);
    (receives.completionQueue ?? this.receiveCq).tellSourcePort(rx.sourcePort);
  }

  /** The GRH area is written here, the payload is placed by the port; a completion status. */
  private scatter(rx: ReceivedPacket, first: number, segments: number): number {
    const { hca, cursor, receives } = this;
    cursor.start(receives.words, first, segments);
    writeGrhArea(this.grhArea, rx, rx.destination);
    if (cursor.write(hca.memory, receives.domain, this.grhArea) !== MEMORY_CHECK.OK) {
      return WcStatus.LOC_PROT_ERR;
    }
    const verdict = cursor.scatter(
      hca.memory,
      receives.domain,
      rx.payloadLength,
      rx.payloadOffset,
      hca.placements,
    );
    return verdict === MEMORY_CHECK.OK ? WcStatus.SUCCESS : WcStatus.LOC_PROT_ERR;
  }

  // --- multicast --------------------------------------------------------------------------------

  attachMulticast(group: Gid, options?: MulticastOptions): void {
    this.checkDatagram();
    this.hca.multicast.attach(this, group, options);
  }

  detachMulticast(group: Gid): void {
    this.checkDatagram();
    this.hca.multicast.detach(this, group);
  }

  private checkDatagram(): void {
    if (this.destroyed || this.type !== QpType.UD) {
      throw new SpiError('EINVAL', `queue pair ${this.qpn} is destroyed, or the port's own`);
    }
  }

  override destroy(): void {
    if (this.destroyed) return;
    this.hca.multicast.detachAll(this);
    super.destroy();
  }

  // --- sending ----------------------------------------------------------------------------------

  override transmitRequests(budget: number): boolean {
    const { tx } = this.hca;
    const segments = this.maxSendSge + 1;
    for (let left = budget; this.state === QpState.RTS && this.fetched !== this.visible; left--) {
      if (left === 0 || !tx.hasRoom(segments)) return true;
      const status = this.plannedFault() ?? this.sendNext();
      if (status === WcStatus.SUCCESS) continue;
      this.stopSending(status);
      return false;
    }
    return false;
  }

  private plannedFault(): number | undefined {
    const { sendFault } = this.hca;
    if (sendFault === undefined) return undefined;
    const { sendRing } = this;
    return sendFault(this, sendRing.words[sendRing.wordOf(this.fetched) + SQE.CONTROL]! & 0xff);
  }

  /** Sends the request at `fetched`; a completion status. */
  private sendNext(): number {
    const { sendRing, hca } = this;
    const { words } = sendRing;
    const at = sendRing.wordOf(this.fetched);
    const control = words[at + SQE.CONTROL]!;
    const opcode = control & 0xff;
    const known = (REQUEST_BITS[opcode]! & REQUEST_BIT.ud) !== 0;
    const address = hca.addressHandles.find(words[at + SQE.ADDRESS_HANDLE]!);
    if (!known || address?.domain !== this.domain) return WcStatus.LOC_QP_OP_ERR;
    const length = requestBytes(this, at, hca.port.mtuBytes);
    return length < 0 ? -length : this.sendPacket(at, control, length, address);
  }

  private sendPacket(
    at: number,
    control: number,
    length: number,
    address: SoftAddressHandle,
  ): number {
    const { sendRing, hca } = this;
    const { tx } = hca;
    const { words } = sendRing;
    const opcode = packetOpcode(control & 0xff, true, true) + UD_BASE;
    const immediateAt = IMMDT_OFFSET_OF[opcode]!;
    const solicited = (control & (WrFlags.SOLICITED << 8)) !== 0 ? BTH_FLAG.solicited : 0;
    const flags = solicited | bthPad(length);
    const header = tx.open(address.path, opcode, flags, words[at + SQE.REMOTE_QPN]!, this.psn);
    if (length > 0 && (control & (WrFlags.INLINE << 8)) !== 0) {
      this.addInlinePayload(this.fetched, 0, length);
    } else if (length > 0) {
      this.cursor.start(words, at + SQE.SEGMENTS, (control >>> 16) & 0xff);
      const verdict = this.cursor.gather(hca.memory, this.domain, length, tx);
      if (verdict !== MEMORY_CHECK.OK) {
        tx.abort();
        return WcStatus.LOC_PROT_ERR;
      }
    }
    const deth = header + BTH_LENGTH;
    writeDeth(tx.view, deth, this.outgoingQkey(words[at + SQE.REMOTE_QKEY]!), this.qpn);
    if (immediateAt !== 0) {
      tx.view.setUint32(header + immediateAt, words[at + SQE.IMMEDIATE_OR_INVALIDATE]!);
    }
    this.psn = psnNext(this.psn);
    this.sends.add(this.fetched, length);
    this.fetched = (this.fetched + 1) >>> 0;
    sendRing.consumer = this.fetched;
    return WcStatus.SUCCESS;
  }

  /** A privileged Q_Key stands for the sender's own (IBTA 10.2.5); QP1 has but one. */
  private outgoingQkey(requested: number): number {
    if (this.type === QpType.GSI) return GSI_QKEY;
    return requested >= PRIVILEGED_QKEY ? this.qkey : requested;
  }

  override onPacketsTaken(taken: number): void {
    this.sends.complete(taken, this.fetched);
  }

  // --- state ------------------------------------------------------------------------------------

  protected override enter(to: QpState): void {
    this.qkey = this.type === QpType.GSI ? GSI_QKEY : this.memory.qkey;
    if (to === QpState.RESET) this.discardQueues();
    if (to === QpState.RTS && this.state === QpState.RTR) {
      this.psn = this.memory.sendPsn & PSN_MASK;
    }
  }
}

/**
 * The packet of a MAD from QP1 to QP1, for use when no queue can send it any more: from the BTH on;
 * a MAD needs no pad. Its PSN is 0: datagrams have no order.
 */
export function gsiPacket(mad: Uint8Array): Uint8Array {
  const packet = new Uint8Array(BTH_LENGTH + DETH_LENGTH + mad.length);
  const view = new DataView(packet.buffer);
  writeBth(view, 0, UD.sendOnly, 0, GSI_QPN, 0);
  writeDeth(view, BTH_LENGTH, GSI_QKEY, GSI_QPN);
  packet.set(mad, BTH_LENGTH + DETH_LENGTH);
  return packet;
}
