/**
 * The process that the others of a shared device find by its name. It gives out slots, forwards
 * packets and cleans up after a killed process (rows of slot-table.ts). Any of them can be the
 * broker: its state is in the shared table, and every process has the sockets.
 */
import type { ConnectionRecord, HandedPacket } from '../../core/spi/index.js';
import { dropClaims } from './claims.js';
import { connectionsOf, dropConnections } from './connections.js';
import type { GroupHost, Link } from './group-host.js';
import { type Hello, MAX_SLOTS, NO_SLOT, parseMessage, type SlotsMessage } from './messages.js';
import { Outbox } from './outbox.js';
import type { Places } from './slot-sockets.js';
import { slotOf } from './steering.js';
import {
  type BrokerSlotState,
  SHOWN_STATE,
  SLOT_TABLE,
  type SlotAction,
  type SlotInput,
} from './slot-table.js';
import { type SlotState, TABLE_BYTES, type TableMemory } from './table-layout.js';

/** As long as the longest timewait of a CM (IBTA 12.9.8.4; plugins/cm). */
const REST_US = 8_600_000;
/** Times of DREQs for connections of a killed process: one may be lost. */
const DISCONNECT_AT_US: readonly number[] = [0, 500_000, 2_000_000];
/** A process that is connected says HELLO at once. */
const HELLO_US = 1_000_000;
const MAX_STRANGERS = 64;
/** Messages of one link that are looked at before others have their turn. */
const MESSAGES_A_TURN = 64;
/** First interval of checks that an unconnected process is alive; it doubles each time. */
const FIRST_LOOK_US = 5_000;
const LAST_LOOK_US = 1_000_000;
/** A process that has just been given a slot, of a broker that was killed, may not have read it. */
const LOOK_AFTER_TAKEOVER_US = 500_000;

/** Misdelivered packets after which the steering is attached again. */
const MISDELIVERED_TO_STEER = 64;
/** Least interval of attaching it again, to limit the load whatever the cause. */
const STEER_AGAIN_US = 1_000_000;

interface Client {
  readonly link: Link;
  readonly outbox: Outbox;
  /** NO_SLOT before HELLO. */
  slot: number;
  leaving: boolean;
  stopTimer: (() => void) | undefined;
  /** Sockets that a process has shown before it said HELLO. */
  shown: {
    readonly slot: number;
    readonly first: number;
    readonly descriptors: readonly number[];
  }[];
}

export interface BrokerInit {
  readonly host: GroupHost;
  readonly table: TableMemory;
  readonly tableDescriptor: number;
  readonly places: Places;
  /** The slot of this process. */
  readonly slot: number;
}

export class Broker {
  private readonly states: BrokerSlotState[] = [];
  private readonly clients = new Set<Client>();
  private readonly bySlot = new Map<number, Client>();
  /** Slots that are free and have sockets, the longest first. */
  private readonly vacant: number[] = [];
  private readonly timers = new Set<() => void>();
  private misdelivered = 0;
  private steeredUs = -Infinity;
  private closed = false;

  constructor(private readonly init: BrokerInit) {
    const { table, slot: own } = init;
    for (let slot = 0; slot < MAX_SLOTS; slot++) {
      const shown = table.stateOf(slot);
      this.states.push(shown === 'USED' && slot !== own ? 'ABSENT' : shown);
      if (shown === 'RESTING') this.restOf(slot);
      else if (slot !== own && shown === 'USED') this.lookAfter(slot, LOOK_AFTER_TAKEOVER_US);
      else if (shown === 'FREE' && this.isGivenOut(slot)) this.vacant.push(slot);
      if (shown !== 'USED' && slot !== own && slot < init.places.count) this.finish(slot, shown);
    }
    table.setState(own, 'USED');
  }

  /** A process that has found the name. */
  onLink(link: Link): void {
    const { host } = this.init;
    const strangers = [...this.clients].filter(({ slot }) => slot === NO_SLOT).length;
    if (this.closed || strangers >= MAX_STRANGERS) {
      link.close();
      return;
    }
    const outbox = new Outbox(host, link);
    const client: Client = {
      link,
      outbox,
      slot: NO_SLOT,
      leaving: false,
      stopTimer: undefined,
      shown: [],
    };
    client.stopTimer = host.startTimer(HELLO_US, () => this.drop(client));
    this.clients.add(client);
    link.watch(() => this.readFrom(client));
  }

  /** @returns false where it cannot be handed over: it is lost */
  forward(slot: number, packet: HandedPacket): boolean {
    const client = this.bySlot.get(slot);
    if (client !== undefined) this.noteStray(slot, packet);
    return client?.outbox.sendNow({ kind: 'PACKET', slot, packet }) ?? false;
  }

  /**
   * Notes a misdelivered packet. Packets for a slot reach its sockets, unless another program of
   * the user has changed the system's steering; no call tells whose steering is in use.
   */
  private noteStray(slot: number, { bytes }: HandedPacket): void {
    const { host, places, slot: own } = this.init;
    if (slotOf(bytes, own) !== slot || ++this.misdelivered < MISDELIVERED_TO_STEER) return;
    const now = host.nowUs();
    if (now - this.steeredUs < STEER_AGAIN_US) return;
    const isFirst = this.steeredUs === -Infinity;
    this.misdelivered = 0;
    this.steeredUs = now;
    const sockets = places.of(own);
    try {
      if (sockets) host.steer(own, sockets);
      if (isFirst) host.note('packets came to wrong processes: the steering is attached again', {});
    } catch (error) {
      host.note('packets come to wrong processes of a shared device', { error });
    }
  }

  close(): void {
    this.closed = true;
    for (const stop of this.timers) stop();
    this.timers.clear();
    for (const client of [...this.clients]) this.forget(client);
  }

  private readFrom(client: Client): void {
    for (let i = 0; i < MESSAGES_A_TURN && this.clients.has(client); i++) {
      let came: ReturnType<Link['receive']>;
      try {
        came = client.link.receive();
      } catch {
        came = null;
      }
      if (came === undefined) return;
      if (came === null) {
        this.drop(client);
        return;
      }
      const message = parseMessage(came.bytes, came.descriptors.length);
      if (message === undefined || !this.take(client, message, came.descriptors)) {
        this.init.host.closeDescriptors(came.descriptors);
        this.init.host.note('a process of a shared device said what may not be said', {
          slot: client.slot,
        });
        this.drop(client);
      }
    }
  }

  /** @returns false for what may not be said */
  private take(client: Client, message: SlotsMessage, descriptors: readonly number[]): boolean {
    const isStranger = client.slot === NO_SLOT;
    switch (message.kind) {
      case 'PLACE':
        if (!isStranger || client.shown.length > 4) return false;
        client.shown.push({ slot: message.slot, first: message.first, descriptors });
        return true;
      case 'HELLO':
        if (!isStranger) return false;
        this.onHello(client, message);
        return true;
      case 'PACKET':
        if (isStranger) return false;
        if (message.slot === this.init.slot) {
          this.noteStray(message.slot, message.packet);
          this.init.host.deliver(message.packet);
        } else {
          this.forward(message.slot, message.packet);
        }
        return true;
      case 'GOODBYE':
        if (message.slot !== client.slot) return false;
        client.leaving = true;
        return true;
      default:
        return false;
    }
  }

  private onHello(client: Client, hello: Hello): void {
    client.stopTimer?.();
    client.stopTimer = undefined;
    // Cleans up first after processes that died before this one came, so that it finds ports free.
    for (const other of [...this.clients]) if (other !== client) this.readFrom(other);
    if (!this.clients.has(client)) return;
    const { host, table, tableDescriptor, places } = this.init;
    let slot: number | undefined;
    try {
      slot = hello.slot === NO_SLOT ? this.grant() : this.takeBack(client, hello);
    } catch (error) {
      host.note('no sockets for another process of a shared device', { error });
      this.refuse(client, 'failed');
      return;
    }
    this.closeShown(client);
    if (slot === undefined) {
      this.refuse(client, hello.slot === NO_SLOT ? 'full' : 'unknown');
      return;
    }
    client.slot = slot;
    this.bySlot.set(slot, client);
    places.sendAllTo(client.outbox);
    const { nodeGuid } = table;
    const answer = { kind: 'SLOT', slot, nodeGuid, tableBytes: TABLE_BYTES } as const;
    client.outbox.send(answer, [tableDescriptor]);
  }

  /** Finishes the work of a broker that was killed while it cleaned up after a process. */
  private finish(slot: number, shown: SlotState): void {
    for (const action of ['silence', 'dropClaims', 'disconnect'] as const) {
      this.actions[action](slot);
    }
    if (shown === 'FREE') this.actions.forget(slot);
  }

  /** @returns undefined where all are taken or rest */
  private grant(): number | undefined {
    const slot = this.vacant.shift() ?? this.makePlace();
    if (slot !== undefined) this.dispatch(slot, 'granted');
    return slot;
  }

  private makePlace(): number | undefined {
    const { host, places } = this.init;
    const slot = places.count;
    if (slot >= MAX_SLOTS) return undefined;
    places.put(slot, 0, host.bindPlace());
    for (const { slot: other, outbox } of this.clients) {
      if (other !== NO_SLOT) places.sendTo(outbox, slot);
    }
    return slot;
  }

  private takeBack(client: Client, { slot, nodeGuid }: Hello): number | undefined {
    if (this.states[slot] !== 'ABSENT' || nodeGuid !== this.init.table.nodeGuid) return undefined;
    for (const shown of client.shown) {
      if (shown.slot === slot) this.init.places.put(slot, shown.first, shown.descriptors);
      else this.init.host.closeDescriptors(shown.descriptors);
    }
    client.shown = [];
    this.dispatch(slot, 'returned');
    return slot;
  }

  private refuse(client: Client, reason: 'full' | 'unknown' | 'failed'): void {
    client.outbox.send({ kind: 'REFUSED', reason });
    this.drop(client);
  }

  /** The link has ended, or is ended. */
  private drop(client: Client): void {
    const { slot, leaving } = client;
    this.forget(client);
    if (slot !== NO_SLOT) this.dispatch(slot, leaving ? 'left' : 'lost');
  }

  private forget(client: Client): void {
    if (!this.clients.delete(client)) return;
    client.stopTimer?.();
    this.closeShown(client);
    client.outbox.close();
    if (this.bySlot.get(client.slot) === client) this.bySlot.delete(client.slot);
  }

  private closeShown(client: Client): void {
    for (const { descriptors } of client.shown) this.init.host.closeDescriptors(descriptors);
    client.shown = [];
  }

  private dispatch(slot: number, input: SlotInput): void {
    const found = SLOT_TABLE[this.states[slot] ?? 'FREE'][input];
    if (found === undefined) return;
    this.states[slot] = found.next;
    this.init.table.setState(slot, SHOWN_STATE[found.next]);
    for (const action of found.actions) this.actions[action](slot);
    if (found.next === 'FREE' && this.isGivenOut(slot)) this.vacant.push(slot);
  }

  /**
   * False for numbers of slot 0, which stay unused: packets for them, and for no slot, go to the
   * broker.
   */
  private isGivenOut(slot: number): boolean {
    return slot !== 0 && this.init.places.of(slot) !== undefined;
  }

  private readonly actions: Readonly<Record<SlotAction, (slot: number) => void>> = {
    silence: (slot) => this.withPlace(slot, (sockets) => this.init.host.silence(sockets)),
    wake: (slot) => this.withPlace(slot, (sockets) => this.init.host.wake(sockets)),
    dropClaims: (slot) => dropClaims(this.init.table, slot),
    disconnect: (slot) => this.disconnect(connectionsOf(this.init.table, slot)),
    forget: (slot) => dropConnections(this.init.table, slot),
    startRest: (slot) => {
      this.init.table.setRestEndUs(slot, this.init.host.nowUs() + REST_US);
      this.restOf(slot);
    },
    lookAfter: (slot) => this.lookAfter(slot, 0),
  };

  private withPlace(slot: number, body: (sockets: readonly number[]) => void): void {
    const sockets = this.init.places.of(slot);
    if (sockets === undefined) return;
    try {
      body(sockets);
    } catch (error) {
      this.init.host.note('sockets of another process of a shared device', { slot, error });
    }
  }

  private disconnect(records: readonly ConnectionRecord[]): void {
    if (records.length === 0) return;
    const sendAll = (): void => records.forEach((record) => this.init.host.disconnect(record));
    for (const atUs of DISCONNECT_AT_US) {
      if (atUs === 0) sendAll();
      else this.after(atUs, sendAll);
    }
  }

  private restOf(slot: number): void {
    const { host, table } = this.init;
    // A broker that was killed in between may have written no end that can be.
    const left = table.restEndUs(slot) - host.nowUs();
    const restUs = left >= 0 && left <= REST_US ? left : REST_US;
    this.after(restUs, () => this.dispatch(slot, 'rested'));
  }

  private lookAfter(slot: number, delayUs: number): void {
    if (delayUs > 0) {
      this.after(delayUs, () => this.look(slot, FIRST_LOOK_US));
    } else {
      this.look(slot, FIRST_LOOK_US);
    }
  }

  private look(slot: number, nextUs: number): void {
    if (this.states[slot] !== 'ABSENT') return;
    if (this.init.host.isAlive(slot)) {
      this.after(nextUs, () => this.look(slot, Math.min(2 * nextUs, LAST_LOOK_US)));
    } else {
      this.dispatch(slot, 'died');
    }
  }

  private after(delayUs: number, body: () => void): void {
    const stop = this.init.host.startTimer(delayUs, () => {
      this.timers.delete(stop);
      body();
    });
    this.timers.add(stop);
  }
}
