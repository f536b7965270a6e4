/**
 * A link around a real socket port: what it receives is lost at random, by a seed, or comes as a
 * link of that rate and delay would deliver it. It is a PacketPort like any other.
 */
import { type Gid, type PacketPortHandlers, PLACE, RX } from '../../core/spi/index.js';
import { monotonicClock } from '../../providers/host/index.js';
import { OVERHEAD_BYTES } from '../../providers/mock/link.js';
import { SeededRandom } from '../../plugins/faults/grammar/seeded-random.js';
import type { SocketPort } from '../../providers/softroce/port/port-options.js';
import type { LossyLink } from './models.js';

/** Packets on the way at most, and room for one of them. */
const CELLS = 1024;
const CELL_BYTES = 4608;
const ICRC_BYTES = 4;
const TWO_32 = 2 ** 32;
/** Nearer arrivals are waited for turn by turn of the event loop: a timeout is late by more. */
const TURN_BELOW_US = 1500;

export class LossyPort implements SocketPort {
  readonly gids: readonly Gid[];
  readonly mtuBytes: number;
  readonly counters;
  readonly rxArena = new Uint8Array(CELLS * CELL_BYTES);
  readonly rxPackets: Uint32Array;
  readonly placements: Uint32Array;
  readonly txPackets: Uint32Array;
  readonly txSegments: Uint32Array;
  /** Packets that the link has lost. */
  lost = 0;
  /** The descriptors of packets on the way, by cell, and when they arrive. */
  private readonly held = new Uint32Array(CELLS * RX.WORDS);
  private readonly arriveUs = new Float64Array(CELLS);
  private head = 0;
  private tail = 0;
  private busyUntilUs = 0;
  private readonly regions = new Map<number, Uint8Array>();
  private handlers: PacketPortHandlers | undefined;
  private wake: (() => void) | undefined;
  private readonly random: SeededRandom;

  constructor(
    private readonly inner: SocketPort,
    private readonly link: LossyLink,
    private readonly lossPercent: number,
    seed: number,
  ) {
    this.random = new SeededRandom(seed);
    this.gids = inner.gids;
    this.mtuBytes = Math.min(inner.mtuBytes, link.payloadBytes);
    this.counters = inner.counters;
    this.rxPackets = new Uint32Array(inner.rxPackets.length);
    this.placements = inner.placements;
    this.txPackets = inner.txPackets;
    this.txSegments = inner.txSegments;
  }

  receive(): number {
    const nowUs = monotonicClock.now();
    for (let count = this.inner.receive(); count > 0; count = this.inner.receive()) {
      for (let i = 0; i < count; i++) this.take(i * RX.WORDS, nowUs);
    }
    const most = this.rxPackets.length / RX.WORDS;
    let count = 0;
    while (this.head < this.tail && count < most) {
      const cell = this.head % CELLS;
      if (this.arriveUs[cell]! > nowUs) break;
      const at = cell * RX.WORDS;
      this.rxPackets.set(this.held.subarray(at, at + RX.WORDS), count * RX.WORDS);
      this.head += 1;
      count += 1;
    }
    this.waitForNext(nowUs);
    return count;
  }

  /** Puts a packet on the link, unless it is lost. A link that is full loses it. */
  private take(at: number, nowUs: number): void {
    const { inner, link, held, tail } = this;
    const { rxPackets } = inner;
    const length = rxPackets[at + RX.LENGTH]!;
    const bytes = length + ICRC_BYTES + OVERHEAD_BYTES;
    this.busyUntilUs = Math.max(nowUs, this.busyUntilUs) + (bytes * 8e6) / link.bitsPerSecond;
    if (this.random.percent(this.lossPercent) || tail - this.head >= CELLS) {
      this.lost += 1;
      return;
    }
    const cell = tail % CELLS;
    this.tail += 1;
    this.arriveUs[cell] = this.busyUntilUs + link.roundTripUs / 2;
    const from = rxPackets[at + RX.OFFSET]!;
    // The pad and what else the descriptor counts lie within the cell.
    this.rxArena.set(inner.rxArena.subarray(from, from + length), cell * CELL_BYTES);
    held.set(rxPackets.subarray(at, at + RX.WORDS), cell * RX.WORDS);
    held[cell * RX.WORDS + RX.OFFSET] = cell * CELL_BYTES;
  }

  private waitForNext(nowUs: number): void {
    if (this.wake || this.head === this.tail) return;
    const inUs = this.arriveUs[this.head % CELLS]! - nowUs;
    const go = (): void => {
      this.wake = undefined;
      this.handlers?.onReadable();
    };
    if (inUs < TURN_BELOW_US) {
      const immediate = setImmediate(go);
      this.wake = () => clearImmediate(immediate);
    } else {
      const timeout = setTimeout(go, Math.floor(inUs / 1000) - 1);
      this.wake = () => clearTimeout(timeout);
    }
  }

  place(count: number): void {
    const { placements, rxArena } = this;
    for (let at = 0; at < count * PLACE.WORDS; at += PLACE.WORDS) {
      const from = placements[at + PLACE.SOURCE]!;
      const to = placements[at + PLACE.OFFSET_LO]! + placements[at + PLACE.OFFSET_HI]! * TWO_32;
      const payload = rxArena.subarray(from, from + placements[at + PLACE.LENGTH]!);
      this.regions.get(placements[at + PLACE.REGION]!)!.set(payload, to);
    }
  }

  send(from: number, to: number): number {
    return this.inner.send(from, to);
  }

  addRegion(memory: ArrayBufferLike, byteOffset: number, byteLength: number): number {
    const region = this.inner.addRegion(memory, byteOffset, byteLength);
    this.regions.set(region, new Uint8Array(memory, byteOffset, byteLength));
    return region;
  }

  removeRegion(region: number): void {
    this.regions.delete(region);
    this.inner.removeRegion(region);
  }

  addPath(gid: Gid, localGidIndex: number): number {
    return this.inner.addPath(gid, localGidIndex);
  }

  removePath(path: number): void {
    this.inner.removePath(path);
  }

  watch(handlers: PacketPortHandlers): void {
    this.handlers = handlers;
    this.inner.watch(handlers);
  }

  setProcessHold(alive: boolean): void {
    this.inner.setProcessHold(alive);
  }

  close(): Promise<void> {
    this.wake?.();
    return this.inner.close();
  }
}
