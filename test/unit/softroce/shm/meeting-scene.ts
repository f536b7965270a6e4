/** Two devices that meet: sockets whose messages a test delivers, and channels that only count. */
import assert from 'node:assert/strict';
import { closeSync, openSync } from 'node:fs';
import {
  type Gid,
  gidEquals,
  gidFromIp,
  silentLogger,
  type SpiError,
} from '../../../../core/spi/index.js';
import type { UnixListener, UnixMessage, UnixSocket } from '../../../../providers/host/index.js';
import type {
  ChannelOffer,
  ChannelPort,
  PeerHalf,
} from '../../../../providers/softroce/shm/channel-port.js';
import type { ArenaSegment } from '../../../../providers/softroce/shm/meeting.js';
import { type MeetingSockets, Meetings } from '../../../../providers/softroce/shm/meetings.js';

export const UDP_PORT = 4791;

/** Descriptors that a test has made, each an open file until something closes it. */
const newDescriptor = (): number => openSync('/dev/null', 'r');

class FakeSocket implements UnixSocket {
  other: FakeSocket | undefined;
  readonly waiting: (UnixMessage | null)[] = [];
  isOwnUser = true;
  private onReadable: (() => void) | undefined;
  private closed = false;

  send(bytes: Uint8Array, descriptors: readonly number[]): boolean {
    assert.ok(!this.closed, 'a message on a socket that is closed');
    // The taker closes what it gets, as the system gives it descriptors of its own.
    const copies = descriptors.map(newDescriptor);
    this.other?.waiting.push({ bytes, descriptors: copies });
    return true;
  }

  receive(): UnixMessage | undefined | null {
    const [first] = this.waiting;
    if (first !== null) this.waiting.shift();
    return first;
  }

  take(): UnixMessage | undefined | null {
    return this.receive();
  }

  identity(): { pid: number; uid: number; isOwnUser: boolean } {
    return { pid: 1, uid: this.isOwnUser ? 0 : 1, isOwnUser: this.isOwnUser };
  }

  watch(onReadable: () => void): void {
    this.onReadable = onReadable;
  }

  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.onReadable = undefined;
    this.other?.waiting.push(null);
    for (const message of this.waiting) message?.descriptors.forEach((each) => closeSync(each));
    this.waiting.length = 0;
  }

  get isReadable(): boolean {
    return !this.closed && this.waiting.length > 0 && this.onReadable !== undefined;
  }

  tell(): void {
    this.onReadable?.();
  }
}

/** What can happen next: a test chooses. */
export type Step = () => void;

export class FakeHost implements MeetingSockets {
  readonly sockets: FakeSocket[] = [];
  /** Of the processes behind names, for those who connect. */
  readonly foreign = new Set<string>();
  private readonly listeners = new Map<string, { waiting: FakeSocket[]; tell: () => void }>();

  listenUnix(name: string): UnixListener {
    if (this.listeners.has(name)) throw Object.assign(new Error(name), { code: 'EADDRINUSE' });
    const listener = { waiting: [] as FakeSocket[], tell: (): void => undefined };
    this.listeners.set(name, listener);
    return {
      accept: () => listener.waiting.shift(),
      watch: (onReadable) => (listener.tell = onReadable),
      close: () => void this.listeners.delete(name),
    };
  }

  connectUnix(name: string): FakeSocket {
    const listener = this.listeners.get(name);
    if (!listener) throw Object.assign(new Error(name), { code: 'ECONNREFUSED' });
    const [near, far] = [new FakeSocket(), new FakeSocket()];
    near.other = far;
    far.other = near;
    near.isOwnUser = !this.foreign.has(name);
    this.sockets.push(near, far);
    listener.waiting.push(far);
    return near;
  }

  closeDescriptor(descriptor: number): void {
    closeSync(descriptor);
  }

  steps(): Step[] {
    const accepts = [...this.listeners.values()].filter(({ waiting }) => waiting.length > 0);
    const readable = this.sockets.filter((socket) => socket.isReadable);
    return [
      ...accepts.map((listener) => () => listener.tell()),
      ...readable.map((socket) => () => socket.tell()),
    ];
  }

  /** Until nothing happens any more. */
  run(): void {
    for (let step: Step | undefined, i = 0; (step = this.steps()[0]); i++) {
      assert.ok(i < 1000, 'the devices come to rest');
      step();
    }
  }
}

class CountingChannels implements ChannelPort {
  onClosed: (channel: number, reason: string) => void = () => undefined;
  readonly attached = new Map<number, PeerHalf>();
  readonly offers: ChannelOffer[] = [];
  readonly mapped: string[] = [];
  /** What `attach`, or `mapSegment`, throws. */
  refusal: SpiError | undefined;
  private readonly given = new Set<number>();

  offer(): ChannelOffer {
    const channel = this.offers.length;
    const offer = {
      channel,
      generation: BigInt(channel + 1),
      memoryFd: newDescriptor(),
      memoryBytes: 4096,
      wakeFd: newDescriptor(),
    };
    this.offers.push(offer);
    this.given.add(channel);
    return offer;
  }

  attach(channel: number, peer: PeerHalf): void {
    closeSync(peer.memoryFd);
    closeSync(peer.wakeFd);
    if (this.refusal) throw this.refusal;
    assert.ok(this.given.has(channel), 'a channel that has been offered');
    this.attached.set(channel, peer);
  }

  isAttached(channel: number): boolean {
    return this.attached.has(channel);
  }

  close(channel: number): void {
    this.given.delete(channel);
    this.attached.delete(channel);
  }

  channelTo(gid: Gid, udpPort: number, slot?: number): number {
    for (const [channel, peer] of this.attached) {
      if (peer.slot !== slot) continue;
      if (peer.udpPort === udpPort && peer.gids.some((each) => gidEquals(each, gid)))
        return channel;
    }
    return -1;
  }

  useSegment(channel: number, segment: number): void {
    this.mapped.push(`use ${channel}:${segment}`);
  }

  mapSegment(channel: number, segment: number, descriptor: number, bytes: number): void {
    closeSync(descriptor);
    if (this.refusal) throw this.refusal;
    this.mapped.push(`map ${channel}:${segment} ${bytes}`);
  }

  unmapSegment(channel: number, segment: number): void {
    this.mapped.push(`unmap ${channel}:${segment}`);
  }

  /** Halves that are held. */
  get held(): number {
    return this.given.size;
  }
}

export class Side {
  readonly channels = new CountingChannels();
  readonly meetings: Meetings;
  readonly timers = new Set<() => void>();
  readonly segments: ArenaSegment[] = [];
  /** What each connection was told. */
  readonly told: boolean[] = [];
  readonly gid: Gid;

  constructor(
    readonly host: FakeHost,
    readonly guid: bigint,
    readonly address: string,
    readonly slot?: number,
  ) {
    this.gid = gidFromIp(address);
    this.meetings = new Meetings({
      sockets: host,
      channels: this.channels,
      self: { slot, udpPort: UDP_PORT, gids: [this.gid] },
      logger: silentLogger,
      segments: () => this.segments,
      startTimer: (_milliseconds, onTimeout) => {
        const timer = (): void => {
          this.timers.delete(timer);
          onTimeout();
        };
        this.timers.add(timer);
        return () => void this.timers.delete(timer);
      },
    });
    assert.ok(this.meetings.listen(guid));
  }

  wants(peer: Side): void {
    const { guid, gid, slot } = peer;
    const device = { guid, gid, udpPort: UDP_PORT, ...(slot !== undefined && { slot }) };
    this.meetings.meet(device, (met) => this.told.push(met));
  }

  get channelCount(): number {
    return this.channels.attached.size;
  }
}
