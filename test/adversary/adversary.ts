/**
 * An adversary on the path: it sees every packet, changes, adds, keeps, sends again and reflects,
 * and computes the ICRC anew, so that nothing it does is found out by a checksum. Its only limit is
 * the scene's: connections that are spared get nothing that they would have to believe.
 */
import { gidFromIp } from '../../core/spi/index.js';
import { icrcPacket, writeIcrc } from '../../providers/hca/wire/icrc.js';
import type { Fabric, SeededRandom } from '../../providers/mock/index.js';
import { Flow, ICRC_BYTES, type WirePacket } from '../../providers/mock/wire-packet.js';
import { cmMessageAt, type Draft, type Edit, EDITS } from './edits.js';
import type { Overheard } from './fields.js';

/** What the adversary may do, and what it knows. */
export interface Scene {
  readonly fabric: Fabric;
  /** Addresses that packets may be given as their source; the first one is no port. */
  readonly sources: readonly string[];
  /** Whether a live packet between two addresses may be taken. */
  mayTake(from: string, to: string, draft: Draft): boolean;
  /** Whether a packet that is not the sender's own may be sent. */
  maySend(from: string, to: string, draft: Draft): boolean;
  /** What it knows of a node, and of the queue pair that a packet names. */
  overheard(address: string, draft: Draft): Omit<Overheard, 'random'>;
}

/** A packet that went by, to be used again. */
interface Kept {
  readonly bytes: Uint8Array;
  readonly flow: Flow;
}

type Action = (packet: WirePacket) => void;

const KEPT = 256;
const WORDS = 64;
const REPLAY_MEAN_US = [20, 2_000, 200_000] as const;
const DELAY_MEAN_US = 300;
/** Of packets with a wrong ICRC after all: they must count for nothing. */
const WRONG_ICRC_PERCENT = 1;
const TOTAL_WEIGHT = EDITS.reduce((sum, { weight }) => sum + weight, 0);

export class Adversary {
  /** Packets that were not their sender's as they are, or not at that time, or from there. */
  forged = 0;
  active = true;
  /** How often it did what. */
  readonly counts = new Map<string, number>();
  private readonly send: (packet: WirePacket) => void;
  private readonly kept: Kept[] = [];
  /** Communication ids, queue pair numbers and the like, from CM messages. */
  private readonly words: number[] = [];
  private readonly flows = new Map<string, Flow>();
  private readonly actions: readonly (readonly [number, string, Action])[] = [
    [26, 'changed', (packet) => this.change(packet)],
    [24, 'added', (packet) => this.add(packet)],
    [10, 'sent again', (packet) => this.replay(packet)],
    [8, 'reflected', (packet) => this.reflect(packet)],
    [8, 'from another source', (packet) => this.fromElsewhere(packet)],
    [10, 'swapped', (packet) => this.swap(packet)],
    [4, 'duplicated', (packet) => this.duplicate(packet)],
    [4, 'delayed', (packet) => this.delay(packet)],
    [2, 'dropped', (packet) => this.scene.fabric.pool.release(packet)],
  ];
  private readonly weight = this.actions.reduce((sum, [weight]) => sum + weight, 0);

  /** @param percent of the packets that it does something about */
  constructor(
    readonly scene: Scene,
    private readonly random: SeededRandom,
    private readonly percent: number,
  ) {
    const { fabric } = scene;
    this.send = fabric.transmit.bind(fabric);
    fabric.transmit = (packet) => this.take(packet);
  }

  private take(packet: WirePacket): void {
    if (!this.active) return this.send(packet);
    this.listen(packet);
    const { random } = this;
    if (!random.percent(this.percent)) return this.send(packet);
    const { from, to } = packet.flow;
    if (!this.scene.mayTake(from, to, packet)) {
      // What it must let pass it can still copy, for others or from elsewhere.
      if (random.percent(80)) this.fromElsewhere(packet);
      else this.swap(packet);
      return;
    }
    let left = random.below(this.weight);
    for (const [weight, name, action] of this.actions) {
      left -= weight;
      if (left >= 0) continue;
      this.count(name);
      action(packet);
      return;
    }
  }

  /** Keeps some packets, and the words of CM messages. */
  private listen(packet: WirePacket): void {
    const { random } = this;
    const cm = cmMessageAt(packet);
    if (cm) {
      for (const at of [0, 4]) this.words[random.below(WORDS)] = packet.view.getUint32(cm.at + at);
      // Half of what it keeps are these: there are few of them among the packets.
      if (random.percent(50)) this.keep(packet, random.below(KEPT / 2));
    } else if (random.percent(10)) this.keep(packet, KEPT / 2 + random.below(KEPT / 2));
  }

  private keep(packet: WirePacket, at: number): void {
    const { flow, buffer, length } = packet;
    this.kept[at] = { flow, bytes: buffer.slice(0, length) };
  }

  // --- what it does -----------------------------------------------------------------------------

  private change(packet: WirePacket): void {
    const copy = this.scene.fabric.pool.copy(packet);
    this.edit(copy);
    if (!this.forge(copy)) this.send(packet);
    else this.scene.fabric.pool.release(packet);
  }

  private add(packet: WirePacket): void {
    const copy = this.scene.fabric.pool.copy(packet);
    this.edit(copy);
    if (this.random.percent(50)) {
      this.forge(copy);
      this.send(packet);
    } else {
      this.send(packet);
      this.forge(copy);
    }
  }

  private replay(packet: WirePacket): void {
    this.send(packet);
    const { random } = this;
    const kept = this.pick();
    if (!kept) return;
    const copy = this.restore(kept, kept.flow);
    if (random.percent(30)) this.edit(copy);
    this.later(random.exponential(random.pick(REPLAY_MEAN_US)), () => this.forge(copy));
  }

  /** To its sender, in the name of the destination or of the sender itself. */
  private reflect(packet: WirePacket): void {
    const { from, to, sourcePort } = packet.flow;
    const copy = this.scene.fabric.pool.copy(packet);
    copy.flow = this.flow(this.random.percent(80) ? to : from, from, sourcePort);
    if (this.random.percent(70)) this.aimBack(copy, from);
    if (this.random.percent(30)) this.edit(copy);
    this.send(packet);
    this.forge(copy);
  }

  private fromElsewhere(packet: WirePacket): void {
    const { random } = this;
    const { to, sourcePort } = packet.flow;
    const copy = this.scene.fabric.pool.copy(packet);
    const { sources } = this.scene;
    const source = random.percent(60) ? (sources[0] ?? '') : random.pick(sources);
    copy.flow = this.flow(source, to, sourcePort);
    if (random.percent(50)) this.edit(copy);
    // Before the live one it is in sequence; behind it, a repetition.
    if (random.percent(60)) {
      this.forge(copy);
      this.send(packet);
    } else {
      this.send(packet);
      this.forge(copy);
    }
  }

  /** What another connection has sent, under this one's queue pair and sequence numbers. */
  private swap(packet: WirePacket): void {
    const kept = this.pick();
    if (!kept) return this.send(packet);
    const copy = this.restore(kept, this.random.percent(70) ? packet.flow : kept.flow);
    if (copy.length >= 12 && packet.length >= 12) {
      copy.buffer.set(packet.buffer.subarray(5, 12), 5);
      // Requests of another transport would be dropped unread: keep the operation, swap that.
      if (this.random.percent(50)) {
        copy.buffer[0] = ((packet.buffer[0] ?? 0) & 0xe0) | ((copy.buffer[0] ?? 0) & 0x1f);
      }
    }
    if (this.random.percent(50)) {
      this.forge(copy);
      this.send(packet);
    } else {
      this.send(packet);
      this.forge(copy);
    }
  }

  private duplicate(packet: WirePacket): void {
    const copy = this.scene.fabric.pool.copy(packet);
    this.send(packet);
    this.later(this.random.exponential(DELAY_MEAN_US), () => this.forge(copy));
  }

  private delay(packet: WirePacket): void {
    this.later(this.random.exponential(DELAY_MEAN_US), () => this.send(packet));
  }

  // --- how --------------------------------------------------------------------------------------

  private pick(): Kept | undefined {
    return this.kept[this.random.below(KEPT)];
  }

  private restore({ bytes }: Kept, flow: Flow): WirePacket {
    const packet = this.scene.fabric.pool.take(flow, bytes.length);
    packet.buffer.set(bytes);
    return packet;
  }

  /** Gives a reflected packet a queue pair of its sender. */
  private aimBack(packet: WirePacket, address: string): void {
    const { queuePairs } = this.scene.overheard(address, packet);
    if (queuePairs.length === 0 || packet.length < 12) return;
    const qpn = this.random.pick(queuePairs);
    packet.view.setUint32(4, ((packet.buffer[4] ?? 0) << 24) | qpn);
  }

  private edit(packet: WirePacket): void {
    const { random } = this;
    const x = { random, ...this.scene.overheard(packet.flow.to, packet) };
    for (let edits = random.percent(75) ? 1 : random.between(2, 3); edits > 0; edits--) {
      // Most kinds are for few packets only: what there is nothing for costs another draw.
      for (let tries = 20; tries > 0; tries--) {
        const edit = this.pickEdit();
        if (packet.length < 16 || !edit.apply(packet, x, this.words)) continue;
        this.count(`edit ${edit.name}`);
        break;
      }
    }
  }

  private pickEdit(): Edit {
    let left = this.random.below(TOTAL_WEIGHT);
    const found = EDITS.find(({ weight }) => (left -= weight) < 0);
    return found ?? (EDITS[0] as Edit);
  }

  /** Sends a packet with the right ICRC; false, and it is gone, when that is not allowed. */
  private forge(packet: WirePacket): boolean {
    const { fabric } = this.scene;
    const { from, to, header } = packet.flow;
    if (!this.active || !this.scene.maySend(from, to, packet)) {
      this.count('withheld');
      fabric.pool.release(packet);
      return false;
    }
    const end = packet.length - ICRC_BYTES;
    if (end >= 12) {
      const icrc = icrcPacket(header.begin(packet.length), packet.buffer, 0, end);
      const wrong = this.random.percent(WRONG_ICRC_PERCENT) ? 1 : 0;
      writeIcrc(packet.view, end, (icrc ^ wrong) >>> 0);
    }
    this.forged++;
    this.send(packet);
    return true;
  }

  private later(us: number, task: () => void): void {
    const { clock } = this.scene.fabric;
    clock.at(clock.now() + us, task);
  }

  private flow(from: string, to: string, sourcePort: number): Flow {
    const key = `${from} ${to} ${sourcePort}`;
    let flow = this.flows.get(key);
    if (!flow) {
      flow = new Flow(gidFromIp(from), gidFromIp(to), sourcePort, 4791);
      this.flows.set(key, flow);
    }
    return flow;
  }

  private count(name: string): void {
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
  }
}
