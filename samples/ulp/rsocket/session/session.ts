/**
 * One side of a connection, sans-IO: it is told about bytes received, read and sent, and says what
 * may be sent. It holds no bytes.
 */
import {
  argumentOf,
  checkEnd,
  type ConnectionData,
  Control,
  immediateOf,
  IOMAP_BYTES,
  type IomapEntry,
  Operation,
  operationOf,
  type RemoteRegion,
  RsocketProtocolError,
  TARGET_BYTES,
} from '../wire/index.js';
import { ControlSlots } from './controls.js';
import { ReceiveWindow } from './receive-window.js';
import { SendWindow } from './send-window.js';
import {
  mayRead,
  mayWrite,
  SESSION_TRANSITIONS,
  type SessionInput,
  type SessionState,
} from './states.js';

// Areas that the two sides have published to each other (riomap, riowrite of librdmacm).

/** Areas that the peer has published, by slot. */
class PeerIomaps {
  private readonly entries: (IomapEntry | undefined)[];

  /** @param slots that this side has announced */
  constructor(slots: number) {
    this.entries = new Array<IomapEntry | undefined>(slots).fill(undefined);
  }

  /** @throws RsocketProtocolError for a slot that was not announced */
  checkSlot(slot: number): void {
    const { length } = this.entries;
    if (slot < length) return;
    throw new RsocketProtocolError(
      'iomap slot',
      slot,
      length === 0 ? 'none' : `0 to ${length - 1}`,
    );
  }

  /** @throws RsocketProtocolError for an area that passes the end of all addresses */
  set(slot: number, entry: IomapEntry): void {
    checkEnd('iomap', entry.region);
    this.entries[slot] = entry;
  }

  /** The area that has this offset in it. */
  find(offset: bigint): IomapEntry | undefined {
    return this.entries.find(
      (entry) =>
        entry !== undefined &&
        offset >= entry.offset &&
        offset < entry.offset + BigInt(entry.region.length),
    );
  }
}

/** A publication that waits for a credit. */
interface OwnIomap {
  readonly slot: number;
  readonly entry: IomapEntry;
}

/** Areas that this side publishes. */
class OwnIomaps {
  private readonly taken = new Set<number>();
  private readonly waiting: OwnIomap[] = [];

  /** @param slots that the peer has announced */
  constructor(readonly slots: number) {}

  /** @returns the slot; undefined if all are in use */
  publish(entry: IomapEntry): number | undefined {
    for (let slot = 0; slot < this.slots; slot++) {
      if (this.taken.has(slot)) continue;
      this.taken.add(slot);
      this.waiting.push({ slot, entry });
      return slot;
    }
    return undefined;
  }

  /** Withdraws an area: its slot may be used again. */
  withdraw(slot: number): void {
    this.taken.delete(slot);
    const at = this.waiting.findIndex((own) => own.slot === slot);
    if (at >= 0) this.waiting.splice(at, 1);
  }

  get hasWaiting(): boolean {
    return this.waiting.length > 0;
  }

  /** The oldest waiting publication, which is sent now. */
  take(): OwnIomap | undefined {
    return this.waiting.shift();
  }
}

export interface SessionOptions {
  /** Bytes of each half of the receive buffer. */
  readonly halfBytes: number;
  /** Messages that may wait here: 1 to 65535. */
  readonly credits: number;
  /** Areas that the peer may publish, as announced. */
  readonly iomapSlots: number;
}

/**
 * The target list, which the peer writes. An entry is read when the message after it has arrived.
 */
export interface TargetList {
  target(slot: number): RemoteRegion;
  iomap(slot: number): IomapEntry;
}

/** A message without stream data, to be sent now. */
export type Outgoing =
  | {
      readonly type: 'target';
      readonly immediate: number;
      /** The peer's slot. */
      readonly slot: number;
      /** Offset of the half in the receive buffer. */
      readonly offset: number;
      readonly controlSlot: number;
    }
  | { readonly type: 'control'; readonly immediate: number; readonly controlSlot: number }
  | {
      readonly type: 'iomap';
      readonly immediate: number;
      readonly slot: number;
      readonly entry: IomapEntry;
    };

const CONTROL_OF = { SHUTDOWN: Control.SHUTDOWN, DISCONNECT: Control.DISCONNECT } as const;
const TARGET_SLOTS = 2;

export class Session {
  private current: SessionState = 'OPEN';
  private ending: keyof typeof CONTROL_OF | undefined = undefined;
  private peerIsGone = false;
  private readonly sending: SendWindow;
  private readonly receiving: ReceiveWindow;
  private readonly controls = new ControlSlots();
  private readonly own: OwnIomaps;
  private readonly peers: PeerIomaps;
  /** The peer's slot for the next half. */
  private granting = 1;

  constructor(options: SessionOptions, peer: ConnectionData) {
    const { halfBytes, credits, iomapSlots } = options;
    this.sending = new SendWindow(peer);
    this.receiving = new ReceiveWindow(halfBytes, credits);
    this.own = new OwnIomaps(peer.iomapSlots);
    this.peers = new PeerIomaps(iomapSlots);
  }

  get state(): SessionState {
    return this.current;
  }

  /** True if the peer neither writes nor reads any more. */
  get hasPeerLeft(): boolean {
    return this.peerIsGone;
  }

  /** True if the consumer may write. */
  get isWritable(): boolean {
    return mayWrite(this.current);
  }

  /** True if nothing can be read, now or later. */
  get hasEnded(): boolean {
    return !mayRead(this.current) && this.receiving.unread === 0;
  }

  /** Unread bytes: the number that is contiguous, and the offset. */
  get readable(): number {
    return this.receiving.readable;
  }

  get readOffset(): number {
    return this.receiving.readOffset;
  }

  /** Number of unread bytes. */
  get unread(): number {
    return this.receiving.unread;
  }

  /** Bytes that a DATA message may have now; 0 if it must wait. */
  get sendable(): number {
    return this.isWritable && !this.own.hasWaiting ? this.sending.bytes : 0;
  }

  /** Destination of those bytes, from `targetOffset` on. Valid if `sendable` is not 0. */
  get target(): RemoteRegion {
    return this.sending.entry;
  }

  get targetOffset(): number {
    return this.sending.offset;
  }

  /** Sends a DATA message of that many bytes, at most `sendable`. @returns its immediate data */
  sendData(bytes: number): number {
    this.sending.fill(bytes);
    return immediateOf(Operation.DATA, bytes);
  }

  /**
   * The next message to send before any data; the caller must send it. @param hasRoom true if an
   * iomap entry can be sent
   */
  next(hasRoom: boolean): Outgoing | undefined {
    return this.nextEnding() ?? this.nextTarget() ?? (hasRoom ? this.nextIomap() : undefined);
  }

  /** True if a half or credits are due: `next` has a message. */
  get isGrantDue(): boolean {
    return mayRead(this.current) && this.receiving.due !== undefined;
  }

  /** Takes a slot for a write of no bytes, as a keepalive. @returns false if there is no slot */
  probe(): boolean {
    if (this.current === 'OVER' || !this.controls.isFree) return false;
    this.controls.take();
    return true;
  }

  /** A message of type `target` or `control`, or a probe, was acknowledged. */
  controlSent(): void {
    this.controls.giveBack();
  }

  /** True if SHUTDOWN or DISCONNECT waits for a slot. */
  get isEnding(): boolean {
    return this.ending !== undefined;
  }

  /** The consumer has read bytes, at most `readable`. */
  read(bytes: number): void {
    this.receiving.read(bytes);
  }

  shutdown(): void {
    this.step('shutdown');
  }

  close(): void {
    this.step('close');
  }

  /**
   * Handles a message.
   * @param writtenBytes of the message
   * @throws RsocketProtocolError: the connection must be ended
   */
  receive(immediate: number, writtenBytes: number, list: TargetList): void {
    if (this.current === 'OVER') return;
    const argument = argumentOf(immediate);
    const operation = operationOf(immediate);
    switch (operation) {
      case Operation.DATA:
        if (!mayRead(this.current)) {
          throw new RsocketProtocolError('data bytes', argument, 'none behind SHUTDOWN');
        }
        checkWritten(writtenBytes, argument);
        this.receiving.receiveData(argument);
        return;
      case Operation.TARGET:
        if (writtenBytes !== 0) {
          checkWritten(writtenBytes, TARGET_BYTES);
          this.sending.grant(list.target(this.sending.arrivingSlot));
        }
        this.sending.extend(argument);
        return;
      case Operation.IOMAP:
        this.peers.checkSlot(argument);
        checkWritten(writtenBytes, IOMAP_BYTES);
        this.receiving.receiveIomap();
        this.peers.set(argument, list.iomap(argument));
        return;
      case Operation.CONTROL:
        checkWritten(writtenBytes, 0);
        this.receiveControl(argument);
        return;
      default:
        throw new RsocketProtocolError('operation', operation, '0, 4, 6 or 7');
    }
  }

  /** Publishes an area. @returns its slot; undefined if the peer accepts no more */
  publish(entry: IomapEntry): number | undefined {
    return this.own.publish(entry);
  }

  withdraw(slot: number): void {
    this.own.withdraw(slot);
  }

  /** Number of areas that the peer accepts. */
  get iomapSlots(): number {
    return this.own.slots;
  }

  /** The peer's area that contains this offset. */
  findIomap(offset: bigint): IomapEntry | undefined {
    return this.peers.find(offset);
  }

  private receiveControl(argument: number): void {
    switch (argument) {
      case Control.DISCONNECT:
        this.step('peer DISCONNECT');
        return;
      case Control.SHUTDOWN:
        this.step('peer SHUTDOWN');
        return;
      case Control.KEEPALIVE:
        return;
      default:
        throw new RsocketProtocolError('control', argument, '0, 1 or 2');
    }
  }

  private step(input: SessionInput): void {
    const { next, send } = SESSION_TRANSITIONS[this.current][input];
    this.current = next;
    if (send !== undefined) this.ending = send;
    // The peer reads nothing more. After its SHUTDOWN it still waits for ours.
    else if (input === 'peer DISCONNECT') {
      this.ending = undefined;
      this.peerIsGone = true;
    }
  }

  private nextEnding(): Outgoing | undefined {
    const { ending } = this;
    if (ending === undefined || !this.controls.isFree) return undefined;
    this.ending = undefined;
    const immediate = immediateOf(Operation.CONTROL, CONTROL_OF[ending]);
    return { type: 'control', immediate, controlSlot: this.controls.take() };
  }

  /** A grant of a half or credits, as long as the peer can use them. */
  private nextTarget(): Outgoing | undefined {
    if (!mayRead(this.current) || !this.controls.isFree) return undefined;
    const { due } = this.receiving;
    if (due === undefined) return undefined;
    const offset = due === 'half' ? this.receiving.giveHalf() : undefined;
    const immediate = immediateOf(Operation.TARGET, this.receiving.giveCredits());
    const controlSlot = this.controls.take();
    if (offset === undefined) return { type: 'control', immediate, controlSlot };
    const slot = this.granting;
    this.granting = (slot + 1) % TARGET_SLOTS;
    return { type: 'target', immediate, slot, offset, controlSlot };
  }

  private nextIomap(): Outgoing | undefined {
    if (!this.isWritable || this.sending.messages === 0) return undefined;
    const own = this.own.take();
    if (own === undefined) return undefined;
    this.sending.spend();
    return { type: 'iomap', immediate: immediateOf(Operation.IOMAP, own.slot), ...own };
  }
}

function checkWritten(writtenBytes: number, expected: number): void {
  if (writtenBytes === expected) return;
  throw new RsocketProtocolError('written bytes', writtenBytes, `${expected}`);
}
