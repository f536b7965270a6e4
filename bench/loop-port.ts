/**
 * A packet port that costs next to nothing: headers are handed to the peer in memory, payload is
 * not moved at all, so that what is measured is the software HCA.
 */
import {
  type Gid,
  gidEquals,
  gidWords,
  type GidWords,
  type PacketPort,
  type PacketPortCounters,
  PLACE,
  RX,
  TX,
  TX_SEGMENT,
} from '../core/spi/index.js';

const BURST = 512;
/** Room for the headers of one packet; the payload is only counted. */
const CELL = 64;
/** Cells before the end that payload lengths may reach past: nothing reads there. */
const WAITING = 8192;

export class LoopPort implements PacketPort {
  readonly gids: readonly Gid[];
  readonly mtuBytes = 4096;
  readonly counters: PacketPortCounters = {
    receivedPackets: 0,
    sentPackets: 0,
    malformed: 0,
    badIcrc: 0,
    recoveredId: 0,
    sendErrors: 0,
    tooLong: 0,
    icmpUnreachable: 0,
    icmpTooBig: 0,
  };
  readonly rxArena = new Uint8Array(WAITING * CELL);
  readonly rxPackets = new Uint32Array(BURST * RX.WORDS);
  readonly placements = new Uint32Array(BURST * PLACE.WORDS);
  readonly txPackets = new Uint32Array(BURST * TX.WORDS);
  readonly txSegments = new Uint32Array(2 * BURST * TX_SEGMENT.WORDS);
  peer: LoopPort | undefined;
  private readonly words = new Uint32Array(this.rxArena.buffer);
  private readonly lengths = new Uint32Array(WAITING);
  private source: GidWords | undefined;
  private head = 0;
  private tail = 0;
  private readonly paths: Gid[] = [];

  constructor(gid: Gid) {
    this.gids = [gid];
  }

  receive(): number {
    const count = Math.min(this.tail - this.head, BURST);
    this.source ??= gidWords(this.peer!.gids[0]!);
    const { source } = this;
    const { rxPackets } = this;
    for (let i = 0; i < count; i++) {
      const cell = (this.head + i) % WAITING;
      const at = i * RX.WORDS;
      rxPackets[at + RX.OFFSET] = cell * CELL;
      rxPackets[at + RX.LENGTH] = this.lengths[cell]!;
      rxPackets[at + RX.FLAGS] = 0;
      rxPackets[at + RX.LOCAL_GID_INDEX] = 0;
      rxPackets[at + RX.SOURCE_GID] = source[0];
      rxPackets[at + RX.SOURCE_GID + 1] = source[1];
      rxPackets[at + RX.SOURCE_GID + 2] = source[2];
      rxPackets[at + RX.SOURCE_GID + 3] = source[3];
    }
    this.head += count;
    this.counters.receivedPackets += count;
    return count;
  }

  place(_count: number): void {}

  send(from: number, to: number): number {
    const peer = this.peer!;
    for (let i = from; i < to; i++) {
      if (peer.tail - peer.head >= WAITING - BURST) return i;
      const at = i * TX.WORDS;
      const cell = peer.tail % WAITING;
      const target = cell * (CELL / 4);
      for (let w = 0; w < 12; w++) peer.words[target + w] = this.txPackets[at + TX.HEADER + w]!;
      let length = this.txPackets[at + TX.HEADER_LENGTH]!;
      const first = this.txPackets[at + TX.FIRST_SEGMENT]!;
      const count = this.txPackets[at + TX.SEGMENT_COUNT]!;
      for (let s = first; s < first + count; s++) {
        length += this.txSegments[s * TX_SEGMENT.WORDS + TX_SEGMENT.LENGTH]!;
      }
      peer.lengths[cell] = (length + 3) & ~3;
      peer.tail += 1;
      this.counters.sentPackets += 1;
    }
    return to;
  }

  addRegion(): number {
    return 0;
  }
  removeRegion(): void {}

  addPath(gid: Gid): number {
    const found = this.paths.findIndex((path) => gidEquals(path, gid));
    return found >= 0 ? found : this.paths.push(gid) - 1;
  }
  removePath(): void {}

  watch(): void {}
  setProcessHold(): void {}
  async close(): Promise<void> {}
}
