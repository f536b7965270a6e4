/**
 * A process of the same user that has met a port and lies: its half of a channel, where it writes
 * any word at any time.
 */
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { SocketPort } from '../../providers/softroce/port/port-options.js';
import { channelsOf, copies } from '../support/joined-ports.js';
import { bytesOf } from '../../plugins/testing/port/harness.js';
import { type Gid, RX } from '../../core/spi/index.js';

const path = join(import.meta.dirname, '../../../build/native/shared-half.node');
const { sharedHalf } = createRequire(import.meta.url)(path) as {
  sharedHalf: (bytes: number) => [descriptor: number, memory: ArrayBuffer];
};

/** The layout of half.h. */
const AT = { PRODUCER: 64, TAKEN: 128, CONSUMED: 132, ARMED: 192, WANTED: 256, SLOTS: 4096 };
const MAGIC = 0x316d68736c706164n;
const SLOTS = 64;
const SLOT_BYTES = 64;
const BOUNCE_BYTES = 2 << 20;
const BYTES = AT.SLOTS + SLOTS * SLOT_BYTES + BOUNCE_BYTES;
/** The most that a packet may have: 48 of headers, 1 MiB and its pad. */
const MOST = 48 + (1 << 20) + 3;

/** xorshift32: the same seed gives the same lies. */
export function lies(seed: number): (below: number) => number {
  let state = seed | 1;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

export class HostileHalf {
  channel = -1;
  slots = 0;
  private produced = 0;
  private readonly descriptor: number;
  private readonly memory: ArrayBuffer;
  private readonly view: DataView;

  constructor(
    private readonly victim: SocketPort,
    private readonly gid: Gid,
    private readonly udpPort: number,
    private readonly random: (below: number) => number,
  ) {
    [this.descriptor, this.memory] = sharedHalf(BYTES);
    this.view = new DataView(this.memory);
  }

  /** Meets the victim, anew if the channel has ended. */
  meet(): void {
    if (this.channel >= 0 && channelsOf(this.victim).isAttached(this.channel)) return;
    const channels = channelsOf(this.victim);
    const offer = channels.offer();
    this.channel = offer.channel;
    const generation = BigInt(this.random(2 ** 32));
    new Uint8Array(this.memory, 0, AT.SLOTS).fill(0);
    this.produced = 0;
    this.view.setBigUint64(0, MAGIC, true);
    this.view.setUint32(8, 1, true);
    this.view.setUint32(12, SLOTS, true);
    this.view.setBigUint64(16, BigInt(BOUNCE_BYTES), true);
    this.view.setBigUint64(24, generation, true);
    // The victim's own end of a socket will do: it is woken, and never dies.
    const [memoryFd = -1, wakeFd = -1] = copies([this.descriptor, offer.wakeFd]);
    const { gid, udpPort } = this;
    const gids = [gid];
    channels.attach(offer.channel, {
      generation,
      memoryFd,
      memoryBytes: BYTES,
      wakeFd,
      gids,
      udpPort,
      slot: undefined,
    });
  }

  /** Says that it is reading all that it was ever sent, and stays there. */
  stall(): void {
    this.view.setUint32(AT.TAKEN, 1 << 20, true);
  }

  /** Writes a burst: slots that are nearly right, and now and then a word of the head. */
  lie(): void {
    const { random, view } = this;
    for (let n = random(8); n >= 0; n--) this.slot();
    view.setUint32(AT.PRODUCER, this.produced, true);
    if (random(16) === 0) {
      const at = [AT.PRODUCER, AT.TAKEN, AT.CONSUMED, AT.ARMED, AT.WANTED, 12, 16][random(7)]!;
      view.setUint32(at, random(2 ** 32), true);
    }
  }

  private slot(): void {
    const { random, view } = this;
    const at = AT.SLOTS + SLOT_BYTES * (this.produced++ % SLOTS);
    this.slots += 1;
    const payload = [0, 1, 256, 257, 4096, 1 << 20][random(6)]!;
    const headerBytes = 12 + 4 * random(10);
    const opcode = [0x04, 0x0a, 0x10, 0x64, random(256)][random(5)]!;
    view.setUint8(at, 1);
    view.setUint8(at + 1, headerBytes);
    view.setUint16(at + 2, 0);
    view.setUint32(at + 4, payload, true);
    view.setBigUint64(at + 8, BigInt(random(BOUNCE_BYTES - payload + 1)), true);
    for (let i = 16; i < SLOT_BYTES; i++) view.setUint8(at + i, random(256));
    view.setUint8(at + 16, opcode);
    view.setUint8(at + 17, (-payload & 3) << 4);
    // One in three has something wrong somewhere.
    if (random(3) === 0) view.setUint8(at + random(18), random(256));
  }
}

/** Takes in what has come, as an HCA would, and holds what it is told to what may be. */
export function takeIn(port: SocketPort): number {
  const count = port.receive();
  for (let i = 0; i < count; i++) {
    const words = port.rxPackets.subarray(i * RX.WORDS, (i + 1) * RX.WORDS);
    const [offset, length, body] = [words[RX.OFFSET]!, words[RX.LENGTH]!, words[RX.BODY]!];
    assert.ok(length >= 12 && length <= MOST && length % 4 === 0, `length ${length}`);
    assert.ok(offset + (body === 0 ? length : 48) <= port.rxArena.length, `offset ${offset}`);
    assert.ok(body === 0 || body >= port.rxArena.length, `body ${body}`);
    assert.ok(words[RX.LOCAL_GID_INDEX]! < port.gids.length);
    assert.equal(bytesOf(port, words).length, length);
  }
  port.release?.();
  return count;
}
