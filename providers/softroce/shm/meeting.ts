/**
 * Sets up a channel with one other device of this host: runs the rows of meeting-table.ts over a
 * Unix socket. Messages of the peer are checked before use. The socket stays open as long as the
 * channel, to exchange the segments of both arenas and to notice the peer's end.
 */
import { type Logger, SpiError } from '../../../core/spi/index.js';
import type { UnixMessage, UnixSocket } from '../../host/index.js';
import type { ChannelOffer, ChannelPort } from './channel-port.js';
import {
  emitMessage,
  type Hello,
  type MeetingMessage,
  parseMessage,
  type SegmentMessage,
  type SegmentWord,
} from './hello.js';
import { MEETING_TABLE, type MeetingInput, type MeetingState } from './meeting-table.js';

/** Messages of a peer that are handled in one turn of the event loop. */
const MAX_MESSAGES_A_TURN = 64;
const NO_CHANNEL = -1;

/** Memory of ours that peers may map. */
export interface ArenaSegment {
  readonly segment: number;
  /** Stays the arena's. */
  readonly descriptor: number;
  readonly bytes: number;
}

/** A device, or one of the processes that share it. */
export type Meeter = Pick<Hello, 'guid' | 'slot'>;

/** Services that a meeting needs from the device. */
export interface MeetingHost {
  readonly channels: ChannelPort;
  /** The device's own data for HELLO. */
  readonly self: Pick<Hello, 'slot' | 'guid' | 'udpPort' | 'gids'>;
  readonly logger: Logger;
  /** @throws Error where nothing listens, SpiError('EPERM') for another user's process */
  connectTo(peer: Meeter): UnixSocket;
  /** Calls back once, after the time that a meeting may take. @returns stops it */
  startTimer(onTimeout: () => void): () => void;
  segments(): readonly ArenaSegment[];
  /** Closes a descriptor that a socket has brought. */
  closeDescriptor(descriptor: number): void;
  /** Called when nothing is held for the peer any more. */
  onApart(meeting: Meeting): void;
}

/** A message that arrived with descriptors. */
interface Received {
  readonly hello: Hello;
  readonly descriptors: readonly number[];
}

export class Meeting {
  state: MeetingState = 'APART';
  channel = NO_CHANNEL;
  /** The socket of our call, or of the channel. */
  private socket: UnixSocket | undefined;
  /** A call that has come. */
  private caller: UnixSocket | undefined;
  private received: Received | undefined;
  private waiters: ((met: boolean) => void)[] = [];
  private cancelTimer: (() => void) | undefined;
  private readonly announced = new Set<number>();

  constructor(
    private readonly host: MeetingHost,
    readonly peer: Meeter,
  ) {}

  /** @param done told once; at once where it is known */
  want(done: (met: boolean) => void): void {
    this.waiters.push(done);
    this.dispatch('wanted');
  }

  /** The peer calls. */
  onCall(socket: UnixSocket, hello: Hello, descriptors: readonly number[]): void {
    this.caller = socket;
    this.received = { hello, descriptors };
    this.dispatch(isSmaller(this.peer, this.host.self) ? 'smallerCalls' : 'greaterCalls');
    this.dropReceived();
  }

  /** The channel has ended, or the device closes. */
  end(): void {
    this.dispatch('ended');
  }

  /** Tells the peer which segments have been added and removed. */
  announce(): void {
    if (this.state !== 'MET') return;
    const present = this.host.segments();
    const numbers = new Set(present.map(({ segment }) => segment));
    for (const { segment, descriptor, bytes } of present) {
      if (this.announced.has(segment)) continue;
      if (!this.send({ kind: 'SEGMENT', segment, bytes }, [descriptor])) return;
      this.announced.add(segment);
    }
    for (const segment of this.announced) {
      if (numbers.has(segment)) continue;
      if (!this.send({ kind: 'SEGMENT_GONE', segment })) return;
      this.announced.delete(segment);
    }
  }

  private dispatch(input: MeetingInput): void {
    const found = MEETING_TABLE[this.state][input];
    if (found === undefined) return;
    this.state = found.next;
    for (const action of found.actions) {
      try {
        this[action]();
      } catch (error) {
        this.host.logger.debug('no channel to a device of this host', { action, error });
        this.dispatch('failed');
        return;
      }
    }
    if (this.state === 'APART') this.host.onApart(this);
  }

  private call(): void {
    this.use(this.host.connectTo(this.peer));
    this.sayHello(this.offer());
  }

  /** The peer counts on the channel from READY on. */
  private answer(): void {
    const { caller } = this;
    this.caller = undefined;
    this.use(caller!);
    this.sayHello(this.offer());
    this.attach();
    this.send({ kind: 'READY' });
    this.announce();
  }

  private attach(): void {
    const { channels } = this.host;
    const { hello, descriptors } = this.received!;
    this.received = undefined;
    const [memoryFd, wakeFd] = descriptors as readonly [number, number];
    const { generation, memoryBytes, gids, udpPort, slot } = hello;
    const half = { generation, memoryFd, memoryBytes, wakeFd, gids, udpPort, slot };
    // The channel of a device that had the address before ends when it is looked at.
    for (const gid of gids) channels.channelTo(gid, udpPort, slot);
    channels.attach(this.channel, half);
  }

  private refuse(): void {
    this.caller?.send(emitMessage({ kind: 'CROSSED' }), []);
    this.decline();
  }

  private decline(): void {
    this.caller?.close();
    this.caller = undefined;
  }

  private hangUp(): void {
    this.socket?.close();
    this.socket = undefined;
    this.announced.clear();
    if (this.channel !== NO_CHANNEL) this.host.channels.close(this.channel);
    this.channel = NO_CHANNEL;
  }

  private startTimer(): void {
    this.stopTimer();
    this.cancelTimer = this.host.startTimer(() => this.dispatch('timedOut'));
  }

  private stopTimer(): void {
    this.cancelTimer?.();
    this.cancelTimer = undefined;
  }

  private tellMet(): void {
    this.tell(true);
  }

  private tellApart(): void {
    this.tell(false);
  }

  private tell(met: boolean): void {
    const { waiters } = this;
    this.waiters = [];
    for (const waiter of waiters) waiter(met);
  }

  private offer(): ChannelOffer {
    const offer = this.host.channels.offer();
    this.channel = offer.channel;
    return offer;
  }

  private sayHello({ generation, memoryBytes, memoryFd, wakeFd }: ChannelOffer): void {
    const hello: Hello = { kind: 'HELLO', ...this.host.self, generation, memoryBytes };
    if (!this.send(hello, [memoryFd, wakeFd])) throw new SpiError('EIO', 'the socket is full');
  }

  /** False where the peer's queue is full, or the peer is gone, which is heard of anyway. */
  private send(message: MeetingMessage, descriptors: readonly number[] = []): boolean {
    try {
      return this.socket?.send(emitMessage(message), descriptors) ?? false;
    } catch {
      return false;
    }
  }

  private use(socket: UnixSocket): void {
    this.socket = socket;
    socket.watch(() => this.onReadable(socket));
  }

  private onReadable(socket: UnixSocket): void {
    for (let i = 0; i < MAX_MESSAGES_A_TURN && this.socket === socket; i++) {
      let came: UnixMessage | null | undefined;
      try {
        came = socket.take();
      } catch {
        came = null;
      }
      if (came === undefined) return;
      if (came === null || !this.hear(came)) this.dispatch('ended');
    }
  }

  /** False for what may not be said, or not now. */
  private hear({ bytes, descriptors }: UnixMessage): boolean {
    const message = parseMessage(bytes, descriptors.length);
    const isHeard = message !== undefined && HEARD[this.state]?.includes(message.kind) === true;
    if (!isHeard) {
      descriptors.forEach((descriptor) => this.host.closeDescriptor(descriptor));
      return false;
    }
    switch (message.kind) {
      case 'HELLO':
        this.received = { hello: message, descriptors };
        if (message.guid === this.peer.guid && message.slot === this.peer.slot) {
          this.dispatch('answered');
        }
        return this.dropReceived();
      case 'CROSSED':
        this.dispatch('crossed');
        return true;
      case 'READY':
        this.dispatch('ready');
        return true;
      default:
        return this.hearOfSegment(message, descriptors[0]);
    }
  }

  private hearOfSegment(message: SegmentMessage | SegmentWord, descriptor = -1): boolean {
    const { channels } = this.host;
    const { segment } = message;
    if (message.kind === 'SEGMENT_GONE') channels.unmapSegment(this.channel, segment);
    if (message.kind === 'SEGMENT_READY') {
      if (!this.announced.has(segment)) return false;
      channels.useSegment(this.channel, segment);
    }
    if (message.kind !== 'SEGMENT') return true;
    try {
      channels.mapSegment(this.channel, segment, descriptor, message.bytes);
    } catch (error) {
      // Beyond the limits it stays unmapped, and the peer copies.
      return error instanceof SpiError && error.code === 'ENOMEM';
    }
    this.send({ kind: 'SEGMENT_READY', segment });
    return true;
  }

  /** @returns true if nothing that had arrived was left */
  private dropReceived(): boolean {
    const { received } = this;
    this.received = undefined;
    received?.descriptors.forEach((descriptor) => this.host.closeDescriptor(descriptor));
    return received === undefined;
  }
}

/** Chooses the call that stays when two cross: both sides use the same order. */
function isSmaller(one: Meeter, other: Meeter): boolean {
  return one.guid === other.guid ? (one.slot ?? 0) < (other.slot ?? 0) : one.guid < other.guid;
}

/** The messages allowed in each state. */
const HEARD: Partial<Readonly<Record<MeetingState, readonly MeetingMessage['kind'][]>>> = {
  CALLING: ['HELLO', 'CROSSED'],
  MAPPED: ['READY'],
  MET: ['SEGMENT', 'SEGMENT_READY', 'SEGMENT_GONE'],
};
