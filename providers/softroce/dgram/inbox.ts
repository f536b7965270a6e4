/** The receiving half of the dgram port: datagrams as they come, packets when asked for. */
import type { RemoteInfo } from 'node:dgram';
import { type Gid, gidFromIp, gidWords, isIpv4Gid, RX, RxFlags } from '../../../core/spi/index.js';
import { BTH_BYTES, FlowIcrc, ICRC_BYTES } from './flow-icrc.js';
import { HostNumbers, PeerNumbers, solveIdentification } from './identification.js';
import { MAX_PACKET_BYTES, PORT_CAPACITY, type SocketPortCounters } from '../port/port-options.js';

/** Datagrams that wait for `receive`, at most; more are dropped and counted. */
const MAX_WAITING = 1024;
const MAX_SENDERS = 1024;

interface Sender {
  readonly gid: Gid;
  readonly port: number;
  readonly localIndex: number;
  readonly flow: FlowIcrc;
  readonly numbers: PeerNumbers;
}

interface Waiting {
  readonly data: Uint8Array;
  readonly sender: Sender;
}

export class DgramInbox {
  private readonly senders = new Map<string, Sender>();
  private readonly hosts = new Map<string, HostNumbers>();
  private waiting: Waiting[] = [];

  constructor(
    private readonly udpPort: number,
    private readonly counters: SocketPortCounters,
  ) {}

  get isEmpty(): boolean {
    return this.waiting.length === 0;
  }

  clear(): void {
    this.waiting = [];
  }

  /**
   * @param localIndex as in RX.LOCAL_GID_INDEX
   * @param local the address or the group that it was sent to
   * @returns true if there is something to receive now
   */
  put(data: Uint8Array, from: RemoteInfo, localIndex: number, local: Gid): boolean {
    const misshapen = data.length < BTH_BYTES + ICRC_BYTES || data.length % 4 !== 0;
    if (misshapen || data.length > MAX_PACKET_BYTES) {
      this.counters.malformed++;
      return false;
    }
    if (this.waiting.length === MAX_WAITING) {
      this.counters.droppedDatagrams++;
      return false;
    }
    this.waiting.push({ data, sender: this.senderOf(from, localIndex, local) });
    this.counters.receivedTrains++;
    return true;
  }

  /** Moves waiting packets whose ICRC is right to the arena. @returns how many */
  take(arena: Uint8Array, descriptors: Uint32Array): number {
    let packets = 0;
    let used = 0;
    let taken = 0;
    for (const { data, sender } of this.waiting) {
      if (packets === PORT_CAPACITY.RX_PACKETS || used + data.length > arena.length) break;
      taken++;
      arena.set(data, used);
      const flags = this.check(arena.subarray(used, used + data.length), sender);
      if (flags < 0) continue;
      const at = packets++ * RX.WORDS;
      descriptors[at + RX.OFFSET] = used;
      descriptors[at + RX.LENGTH] = data.length - ICRC_BYTES;
      descriptors[at + RX.FLAGS] = flags;
      descriptors[at + RX.LOCAL_GID_INDEX] = sender.localIndex;
      descriptors.set(gidWords(sender.gid), at + RX.SOURCE_GID);
      descriptors[at + RX.SOURCE_PORT] = sender.port;
      used += (data.length + 7) & ~7;
    }
    this.waiting = taken === this.waiting.length ? [] : this.waiting.slice(taken);
    this.counters.receivedPackets += packets;
    return packets;
  }

  /** @returns RxFlags, or -1 when the ICRC is wrong */
  private check(datagram: Uint8Array, sender: Sender): number {
    const bytes = datagram.length - ICRC_BYTES;
    const made = sender.flow.icrc(datagram.subarray(0, bytes));
    const view = new DataView(datagram.buffer, datagram.byteOffset + bytes);
    const difference = (made ^ view.getUint32(0, true)) >>> 0;
    const ipv4 = isIpv4Gid(sender.gid);
    if (ipv4) {
      const id = difference === 0 ? 0 : solveIdentification(difference, bytes);
      if (id >= 0 && sender.numbers.admit(id, performance.now())) {
        if (id === 0) return 0;
        this.counters.recoveredId++;
        return RxFlags.RECOVERED_ID;
      }
    } else if (difference === 0) {
      return RxFlags.IPV6;
    }
    this.counters.badIcrc++;
    return -1;
  }

  private senderOf(from: RemoteInfo, localIndex: number, to: Gid): Sender {
    const key = `${String(localIndex)} ${String(from.port)} ${from.address}`;
    let sender = this.senders.get(key);
    if (!sender) {
      if (this.senders.size === MAX_SENDERS) {
        this.senders.clear();
        this.hosts.clear();
      }
      const gid = gidFromIp(from.address.replace(/%.*/, ''));
      const local = { gid: to, port: this.udpPort };
      const flow = new FlowIcrc({ gid, port: from.port }, local);
      const numbers = new PeerNumbers(this.hostOf(`${String(localIndex)} ${from.address}`));
      sender = { gid, port: from.port, localIndex, flow, numbers };
      this.senders.set(key, sender);
    }
    return sender;
  }

  private hostOf(key: string): HostNumbers {
    const host = this.hosts.get(key) ?? new HostNumbers();
    this.hosts.set(key, host);
    return host;
  }
}
