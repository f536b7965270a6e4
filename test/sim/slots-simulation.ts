/**
 * Processes that share an address of a simulated fabric, with a peer that they are connected to,
 * both ways; at one message, between them or on the wire, one or two of them are killed. What must
 * hold then, whoever it was and whenever: the others and their connections go on, the connections
 * of the killed end at the peer, what it listened on can be had again, and nothing is left.
 */
import assert from 'node:assert/strict';
import { silentLogger } from '../../core/spi/index.js';
import { type Ia, openIa } from '../../core/index.js';
import { connect, type Connection, listen, type Listener } from '../../core/flow/index.js';
import { Fabric, mock, type MockNode, SeededRandom } from '../../providers/mock/index.js';
import { ProcessHost } from '../../providers/mock/process-host.js';
import {
  emitMessage,
  parseMessage,
  type SlotsMessage,
} from '../../providers/shared-address/messages.js';

const SHARED = '10.0.0.1';
const PEER = '10.0.0.2';
const PEER_PORT = 8000;
/** Of each process, its number is added. */
const FIRST_PORT = 7000;
const FLOW = { keepAliveMs: 0, receives: { buffers: 4, bufferBytes: 64 } };
const CONNECT = { ...FLOW, timeoutMs: 60_000 };
/** Longer than what a killed process leaves is about, and than its slot rests: virtual seconds. */
const SETTLED_US = 30_000_000;
const TRY_AGAIN_US = 200_000;
/** In which processes come: about as long as what they say then takes. */
const ARRIVALS_US = 2_000;

export interface SlotsOptions {
  readonly seed: number;
  /** Which message it is at, from 1 on; absent: nothing is killed. */
  readonly killAt?: number;
}

export interface SlotsReport {
  /** Messages between processes, and packets that have come. */
  readonly messages: number;
  /** What the message was that processes were killed at; absent where none was. */
  readonly killedAt: SlotsMessage['kind'] | 'packet' | undefined;
  /** Names of the processes that were killed. */
  readonly killed: readonly string[];
  /** Whether one of them was the broker. */
  readonly killedBroker: boolean;
}

class Member {
  ia: Ia | undefined;
  listener: Listener | undefined;
  /** Of the process: from the peer, and to it. */
  readonly conns: Connection[] = [];
  isKilled = false;
  /** It leaves at once, and sees to nothing that others leave. */
  isVisiting = false;
  /** Others of the group were left, when it was killed, that tell its peers. */
  isSurvived = false;

  constructor(
    readonly name: string,
    readonly port: number,
  ) {}
}

export class SlotsSimulation {
  private readonly fabric: Fabric;
  private readonly random: SeededRandom;
  private readonly members: Member[];
  private readonly peerConns = new Map<Connection, Member>();
  private messages = 0;
  private killedAt: SlotsReport['killedAt'];
  private killedBroker = false;
  private isSettled = false;
  private peer: Ia | undefined;

  constructor(private readonly options: SlotsOptions) {
    const { seed } = options;
    this.random = new SeededRandom(seed);
    this.fabric = new Fabric({ seed, autoRun: true });
    const count = 2 + this.random.below(3);
    this.members = Array.from({ length: count }, (_, i) => new Member(`p${i}`, FIRST_PORT + i));
  }

  /** @throws AssertionError */
  async run(): Promise<SlotsReport> {
    const { fabric, system } = this;
    system.tap = (from, to, bytes) => this.onMessage(kindOf(bytes), [from.process, to.process]);
    fabric.tap = (event) => {
      if (event === 'delivered') this.onMessage('packet', []);
    };
    const peer = await openIa(mock({ fabric, address: PEER }));
    this.peer = peer;
    const peerListener = await listen(peer, { ...FLOW, port: PEER_PORT });
    void this.echoAll(peerListener);
    await Promise.all([...this.members.map((member) => this.live(member)), this.beStranger()]);
    await this.sleep(SETTLED_US);
    this.isSettled = true;
    const killed = this.members.filter(({ isKilled }) => isKilled);
    this.checkGroup();
    await this.checkLiving();
    await this.checkPeer();
    await this.replace(killed);
    this.checkGroup();
    await this.close();
    return {
      messages: this.messages,
      killedAt: this.killedAt,
      killed: killed.map(({ name }) => name),
      killedBroker: this.killedBroker,
    };
  }

  private get system() {
    return this.fabric.systemOf([SHARED]);
  }

  private get living(): Member[] {
    return this.members.filter(({ isKilled }) => !isKilled);
  }

  private onMessage(kind: NonNullable<SlotsReport['killedAt']>, between: readonly string[]): void {
    this.messages++;
    if (this.isSettled || this.messages !== this.options.killAt) return;
    const names = this.members.map(({ name }) => name).filter((name) => this.hasCome(name));
    const near = between.filter((name) => names.includes(name));
    if (names.length === 0) return;
    const victims = new Set([this.pick(near.length > 0 && this.random.percent(80) ? near : names)]);
    if (this.random.percent(25)) victims.add(this.pick(names));
    for (const name of victims) this.kill(name);
    this.killedAt = kind;
    for (const member of this.members) {
      if (victims.has(member.name))
        member.isSurvived = this.members.some((each) => this.isIn(each));
    }
  }

  private pick(names: readonly string[]): string {
    const name = names[this.random.below(names.length)];
    assert.ok(name);
    return name;
  }

  private kill(name: string): void {
    const { system } = this;
    const member = this.members.find((each) => each.name === name);
    assert.ok(member);
    const host = system.processes.get(name);
    assert.ok(host);
    member.isKilled = true;
    if (system.listener?.host.process === name) this.killedBroker = true;
    const node = this.nodeOf(member);
    // The device may not be open yet, and the one of an earlier visit is closed.
    if (node?.group?.host === host) node.kill();
    else host.kill();
  }

  private hasCome(name: string): boolean {
    return this.system.processes.has(name);
  }

  /** Has a slot, and will see to what others leave. */
  private isIn({ isKilled, isVisiting, name }: Member): boolean {
    const host = this.system.processes.get(name);
    if (isVisiting) return false;
    return !isKilled && host !== undefined && [...this.system.lives.values()].includes(host);
  }

  private nodeOf({ name }: Member): MockNode | undefined {
    return this.fabric.node(SHARED, name);
  }

  /** A process comes, listens, connects to the peer, and the peer to it. */
  private async live(member: Member): Promise<void> {
    await this.sleep(this.random.below(ARRIVALS_US));
    try {
      if (this.random.percent(40)) await this.comeAndGo(member);
      if (member.isKilled) return;
      await this.begin(member);
    } catch (error) {
      // A killed process has no say, and the peer is told that it is gone.
      if (!member.isKilled) throw error;
    }
  }

  private async comeAndGo(member: Member): Promise<void> {
    const { fabric, system } = this;
    const { name } = member;
    member.isVisiting = true;
    const ia = await openIa(mock({ fabric, address: SHARED, process: name }));
    await ia.close('abrupt');
    system.processes.delete(name);
    member.isVisiting = false;
    await this.sleep(this.random.below(ARRIVALS_US));
  }

  /** A process says that it has a slot that is not its own: it is refused. */
  private async beStranger(): Promise<void> {
    await this.sleep(2 * ARRIVALS_US + this.random.below(ARRIVALS_US));
    const host = new ProcessHost(this.system, 'stranger', this.random, silentLogger);
    const link = host.connect();
    try {
      link?.send(emitMessage({ kind: 'HELLO', slot: 200, nodeGuid: 1n }), []);
    } catch {
      // The broker is killed at just this message.
    }
    await this.sleep(TRY_AGAIN_US);
    host.kill();
  }

  private async begin(member: Member): Promise<void> {
    const { fabric, peer } = this;
    assert.ok(peer);
    const process = member.name;
    member.ia = await openIa(mock({ fabric, address: SHARED, process }));
    member.listener = await listen(member.ia, { ...FLOW, port: member.port });
    void this.echoAll(member.listener);
    const to = connect(member.ia, { ...CONNECT, address: PEER, port: PEER_PORT });
    const from = connect(peer, { ...CONNECT, address: SHARED, port: member.port });
    // Each may fail by itself: none is left without its end.
    const [ours, theirs] = await Promise.allSettled([to, from]);
    if (ours.status === 'fulfilled') member.conns.push(ours.value);
    if (theirs.status === 'fulfilled') this.peerConns.set(theirs.value, member);
    for (const one of [ours, theirs]) if (one.status === 'rejected') throw one.reason;
    for (let i = 0; i < 4; i++) await this.exchange(member);
  }

  private async echoAll(listener: Listener): Promise<void> {
    for await (const conn of listener) void this.echo(conn);
  }

  private async echo(conn: Connection): Promise<void> {
    try {
      for await (const message of conn) await conn.send(message.bytes);
    } catch {
      // The other end says what has gone wrong.
    }
  }

  /** An echo on every connection of the process. */
  private async exchange(member: Member): Promise<void> {
    const theirs = [...this.peerConns].filter(([, each]) => each === member);
    for (const conn of [...member.conns, ...theirs.map(([each]) => each)]) {
      const bytes = Uint8Array.from({ length: 16 }, () => this.random.below(256));
      await conn.send(bytes);
      const message = await conn.receive({ timeoutMs: 5_000 });
      assert.deepEqual([...message.bytes], [...bytes], `what ${member.name} has sent comes back`);
    }
  }

  /** One process has the name; every slot is its own, and in its place. */
  private checkGroup(): void {
    const { living, system } = this;
    const slots = new Set<number>();
    for (const member of living) {
      const group = this.nodeOf(member)?.group;
      assert.ok(group, `${member.name} has joined`);
      const { slot } = group.share;
      assert.ok(!slots.has(slot), `slot ${slot} is one process's`);
      slots.add(slot);
      for (const socket of group.sockets) {
        assert.equal(socket.address.placeOf(socket), slot, `place of slot ${slot}`);
      }
      assert.equal(system.lives.get(slot), group.host, `name of slot ${slot}`);
    }
    const broker = system.listener?.host.process;
    assert.ok(living.length === 0 || living.some(({ name }) => name === broker), 'a broker');
  }

  private async checkLiving(): Promise<void> {
    for (const member of this.living) await this.exchange(member);
  }

  /** The connections of the killed have ended at the peer. */
  private async checkPeer(): Promise<void> {
    for (const [conn, member] of this.peerConns) {
      if (!member.isKilled) continue;
      const end = await Promise.race([
        conn.closed.then(
          () => 'ended',
          () => 'ended',
        ),
        this.sleep(TRY_AGAIN_US).then(() => 'open'),
      ]);
      if (member.isSurvived)
        assert.equal(end, 'ended', `the peer knows that ${member.name} is gone`);
      this.peerConns.delete(conn);
    }
  }

  /** Others come, and take the ports of the killed. */
  private async replace(killed: readonly Member[]): Promise<void> {
    for (const { name, port, ia } of killed) {
      const member = new Member(`${name}'`, port);
      this.members.push(member);
      await this.begin(member);
      await this.exchange(member);
      if (ia) await ia.close('abrupt');
    }
  }

  private async close(): Promise<void> {
    const { fabric, system, peer } = this;
    for (const { ia, isKilled } of this.members) if (ia && !isKilled) await ia.close('abrupt');
    await peer?.close('abrupt');
    await fabric.run({ untilIdle: true });
    assert.deepEqual(system.usage, { files: 0, sockets: 0, names: 0 });
    assert.equal(fabric.pool.inUse, 0, 'packets that nothing holds');
    assert.equal(fabric.isBound(SHARED), false);
  }

  private sleep(us: number): Promise<void> {
    const { clock } = this.fabric;
    return new Promise((resolve) => clock.at(clock.now() + us, resolve));
  }
}

function kindOf(bytes: Uint8Array): SlotsMessage['kind'] {
  // How many descriptors come with it is not seen here: none, or one at least.
  const message = parseMessage(bytes, 0) ?? parseMessage(bytes, 1);
  assert.ok(message, 'a message of the group');
  return message.kind;
}
