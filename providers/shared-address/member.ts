/**
 * A process that shares a device: joins its group, or starts it (rows of member-table.ts). It keeps
 * its slot, even if others end. When the broker is gone, one of the remaining processes takes the
 * name, and no slot changes.
 */
import { type HandedPacket, SpiError } from '../../core/spi/index.js';
import { Broker } from './broker.js';
import { dropClaims } from './claims.js';
import { dropConnections } from './connections.js';
import type { GroupHost, Link } from './group-host.js';
import {
  MEMBER_TABLE,
  type MemberAction,
  type MemberInput,
  type MemberState,
} from './member-table.js';
import {
  MAX_HANDED_BYTES,
  MAX_SLOTS,
  NO_SLOT,
  parseMessage,
  type SlotMessage,
  type SlotsMessage,
} from './messages.js';
import { Outbox } from './outbox.js';
import { Places } from './slot-sockets.js';
import { TABLE_BYTES, TableMemory } from './table-layout.js';

/** First wait for another process to become broker; it doubles each time. */
const FIRST_SEEK_US = 2_000;
const LAST_SEEK_US = 100_000;
/** The time that a new process waits for one with a slot to become broker and to answer. */
const JOIN_US = 5_000_000;
const MESSAGES_A_TURN = 64;

/** Resources of a process that has joined. */
export interface Membership {
  readonly slot: number;
  readonly table: TableMemory;
  /** Sockets of the slot, one for each address, which stay the group's. */
  readonly descriptors: readonly number[];
}

/** @param error why there is no slot */
export type OnJoined = (membership: Membership | undefined, error: SpiError | undefined) => void;

export class GroupMember {
  state: MemberState = 'IDLE';
  private readonly places: Places;
  private slot = NO_SLOT;
  private table: TableMemory | undefined;
  private tableDescriptor: number | undefined;
  private life: { close(): void } | undefined;
  private link: Link | undefined;
  private outbox: Outbox | undefined;
  private broker: Broker | undefined;
  private listener: { close(): void } | undefined;
  private error: SpiError | undefined;
  private stopTimers: (() => void)[] = [];
  private stopSeeking: (() => void) | undefined;
  private seekUs = FIRST_SEEK_US;
  private told = false;
  /** The addresses have sockets of a group whose name no process has. */
  private isNameFree = false;

  /** @param onJoined called once, never from inside `start` */
  constructor(
    private readonly host: GroupHost,
    private readonly onJoined: OnJoined,
  ) {
    this.places = new Places(host);
  }

  start(): void {
    this.dispatch('start');
  }

  /** Ours is given back, the others go on. Idempotent. */
  close(): void {
    this.dispatch('close');
  }

  /** @returns false where it is lost: it is too long, or there is no way to that process now */
  handOver(slot: number, packet: HandedPacket): boolean {
    if (packet.bytes.length > MAX_HANDED_BYTES || slot >= MAX_SLOTS) return false;
    if (this.broker !== undefined) return this.broker.forward(slot, packet);
    if (this.state !== 'MEMBER') return false;
    return this.outbox?.sendNow({ kind: 'PACKET', slot, packet }) ?? false;
  }

  private get hasSlot(): boolean {
    return this.slot !== NO_SLOT;
  }

  private dispatch(input: MemberInput): void {
    const found = MEMBER_TABLE[this.state][input];
    if (found === undefined) return;
    this.state = found.next;
    for (const action of found.actions) this.actions[action]();
  }

  private fail(error: unknown): void {
    this.error = error instanceof SpiError ? error : systemError(error);
    this.dispatch('failed');
  }

  private readonly actions: Readonly<Record<MemberAction, () => void>> = {
    seek: () => this.seek(),
    seekLater: () => {
      this.stopSeeking = this.host.startTimer(this.seekUs, () => this.seek());
      this.seekUs = Math.min(2 * this.seekUs, LAST_SEEK_US);
    },
    letGo: () => {
      if (!this.hasSlot) this.places.close();
    },
    hello: () => this.hello(),
    preside: () => this.preside(),
    startTimer: () => {
      this.stopTimers.push(
        this.host.startTimer(JOIN_US, () => {
          this.error = this.isNameFree ? otherGroup() : noAnswer();
          this.dispatch('timedOut');
        }),
      );
    },
    stopTimer: () => {
      for (const stop of this.stopTimers) stop();
      this.stopTimers = [];
    },
    tellJoined: () => {
      this.seekUs = FIRST_SEEK_US;
      if (this.error === undefined && !this.told) this.tell();
    },
    tellFailed: () => this.tell(),
    goodbye: () => {
      this.outbox?.sendNow({ kind: 'GOODBYE', slot: this.slot });
    },
    resign: () => this.resign(),
    release: () => this.release(),
  };

  private tell(): void {
    const { error, table, slot } = this;
    if (this.told) {
      if (error !== undefined) this.host.onLost(error.message);
      return;
    }
    this.told = true;
    this.host.startTimer(0, () => {
      const descriptors = this.places.of(slot);
      if (error !== undefined) this.onJoined(undefined, error);
      else if (table && descriptors) this.onJoined({ slot, table, descriptors }, undefined);
    });
  }

  private seek(): void {
    this.stopSeeking = undefined;
    if (this.state !== 'SEEKING') return;
    try {
      const link = this.host.connect();
      if (link !== undefined) {
        this.use(link);
        this.dispatch('found');
      } else {
        this.stand();
      }
    } catch (error) {
      // A process that has a slot keeps it, whichever has the name now.
      if (this.hasSlot) this.dispatch('undecided');
      else this.fail(error);
    }
  }

  /** Under the name no other process begins a group, or ends one. */
  private stand(): void {
    const listener = this.host.listen((link) => {
      if (this.broker) this.broker.onLink(link);
      else link.close();
    });
    if (listener === undefined) {
      this.dispatch('undecided');
      return;
    }
    this.isNameFree = !this.hasSlot && this.isGroupThere(listener);
    if (this.isNameFree) {
      listener.close();
      this.dispatch('undecided');
      return;
    }
    this.listener = listener;
    this.dispatch('elected');
  }

  private isGroupThere(listener: { close(): void }): boolean {
    try {
      return this.host.isGroupThere();
    } catch (error) {
      listener.close();
      throw error;
    }
  }

  private preside(): void {
    const { host, places } = this;
    try {
      if (!this.hasSlot) this.begin();
      const home = places.of(this.slot);
      if (home === undefined || this.table === undefined) return;
      host.steer(this.slot, home);
      this.broker = new Broker({
        host,
        table: this.table,
        tableDescriptor: this.tableDescriptor ?? -1,
        places,
        slot: this.slot,
      });
    } catch (error) {
      this.fail(error);
    }
  }

  /** The first process of a group. */
  private begin(): void {
    const { host } = this;
    const { memory, descriptor } = host.createTable(TABLE_BYTES);
    this.tableDescriptor = descriptor;
    this.table = TableMemory.create(memory, host.randomGuid());
    this.places.put(0, 0, host.bindPlace());
    this.slot = 0;
    this.table.setState(0, 'USED');
    this.life = host.liveAs(0);
  }

  private hello(): void {
    const { outbox, places, slot, table } = this;
    if (outbox === undefined) return;
    if (this.hasSlot) places.sendTo(outbox, slot);
    outbox.send({ kind: 'HELLO', slot, nodeGuid: table?.nodeGuid ?? 0n });
  }

  private use(link: Link): void {
    this.isNameFree = false;
    this.link = link;
    this.outbox = new Outbox(this.host, link);
    link.watch(() => this.readFrom(link));
  }

  private readFrom(link: Link): void {
    for (let i = 0; i < MESSAGES_A_TURN && this.link === link; i++) {
      let came: ReturnType<Link['receive']>;
      try {
        came = link.receive();
      } catch {
        came = null;
      }
      if (came === undefined) return;
      const message = came && parseMessage(came.bytes, came.descriptors.length);
      if (came === null || !message || !this.take(message, came.descriptors)) {
        if (came) this.host.closeDescriptors(came.descriptors);
        if (this.link === link) this.dropLink();
        this.dispatch('linkLost');
      }
    }
  }

  private dropLink(): void {
    this.outbox?.close();
    this.outbox = undefined;
    this.link = undefined;
  }

  /** @returns false for what may not be said */
  private take(message: SlotsMessage, descriptors: readonly number[]): boolean {
    switch (message.kind) {
      case 'PLACE':
        this.places.put(message.slot, message.first, descriptors);
        return true;
      case 'SLOT':
        return this.state === 'JOINING' && this.admit(message, descriptors[0] ?? -1);
      case 'REFUSED':
        if (this.state !== 'JOINING') return false;
        this.dropLink();
        this.fail(refusal(message.reason));
        return true;
      case 'PACKET':
        if (this.state !== 'MEMBER') return false;
        if (message.slot === this.slot) this.host.deliver(message.packet);
        return true;
      default:
        return false;
    }
  }

  private admit(message: SlotMessage, descriptor: number): boolean {
    const { host } = this;
    if (this.table !== undefined) {
      if (message.slot !== this.slot || message.nodeGuid !== this.table.nodeGuid) return false;
      host.closeDescriptors([descriptor]);
      this.dispatch('admitted');
      return true;
    }
    if (message.tableBytes !== TABLE_BYTES || this.places.of(message.slot) === undefined)
      return false;
    try {
      const table = TableMemory.open(host.mapTable(descriptor, message.tableBytes));
      if (table?.nodeGuid !== message.nodeGuid) throw scribbled();
      this.life = host.liveAs(message.slot);
      this.table = table;
    } catch (error) {
      host.closeDescriptors([descriptor]);
      this.dropLink();
      this.fail(error);
      return true;
    }
    this.tableDescriptor = descriptor;
    this.slot = message.slot;
    this.dispatch('admitted');
    return true;
  }

  /** Resigns as broker: the process that takes the name next finds nothing of ours. */
  private resign(): void {
    const { table, slot, host } = this;
    this.broker?.close();
    this.broker = undefined;
    if (table !== undefined && this.hasSlot) {
      const sockets = this.places.of(slot);
      if (sockets !== undefined) host.silence(sockets);
      dropClaims(table, slot);
      dropConnections(table, slot);
      table.setState(slot, 'FREE');
    }
  }

  private release(): void {
    this.stopSeeking?.();
    this.stopSeeking = undefined;
    this.dropLink();
    // Sockets before the name: the process that has the name next sees whether others are left.
    this.places.close();
    this.life?.close();
    if (this.tableDescriptor !== undefined) this.host.closeDescriptors([this.tableDescriptor]);
    this.tableDescriptor = undefined;
    this.listener?.close();
    this.listener = undefined;
  }
}

function systemError(cause: unknown): SpiError {
  const message = `a shared device could not be opened: ${String(cause)}`;
  const { code = '' } = cause as { code?: string };
  if (!['EMFILE', 'ENFILE', 'ENOMEM', 'ENOBUFS'].includes(code)) {
    return new SpiError('EIO', message, { cause });
  }
  const hint = 'raise the limit: ulimit -n';
  return new SpiError('ENOMEM', message, { cause, ...(code === 'EMFILE' && { hint }) });
}

function noAnswer(): SpiError {
  return new SpiError('ETIMEDOUT', 'the process that gives out slots does not answer', {
    hint: 'it may be stopped (SIGSTOP, a debugger): let it go on, or end it',
  });
}

/** The broker has answered, so it is well; what it gave is not what it has made. */
function scribbled(): SpiError {
  return new SpiError('EIO', 'a process that shares this device has overwritten its shared table', {
    hint:
      'the process that gives out slots does answer: end all that share the address, ' +
      'or take another address',
  });
}

/** The name is of all addresses in their order: a process with others is not found by it. */
function otherGroup(): SpiError {
  const message = 'processes that share one of the addresses do not share all, in this order';
  return new SpiError('EADDRINUSE', message, {
    hint: 'give the same addresses in the same order; or all that have them are stopped (SIGSTOP)',
  });
}

function refusal(reason: 'full' | 'unknown' | 'failed'): SpiError {
  switch (reason) {
    case 'full':
      return new SpiError('ENOMEM', `all ${MAX_SLOTS} slots of the shared device are in use`, {
        hint: 'a slot of a process that was killed rests for 9 seconds; or take another address',
      });
    case 'unknown':
      return new SpiError('EIO', 'the slot of this process is not its own any more');
    case 'failed':
      return new SpiError('ENOMEM', 'the process that gives out slots could not open sockets', {
        hint: 'see its log: it may have too many open files (ulimit -n)',
      });
  }
}
