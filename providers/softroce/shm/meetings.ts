/**
 * All meetings of a device: its listening socket, its callers, and the devices that it has called.
 * The device listens under an abstract name made of its node GUID, which is partly random and which
 * peers learn from REQ and REP. Nothing is left of that name when the process is killed. Each of
 * the processes that share a device has its own channels, and a name with its slot.
 */
import { type Logger, type PeerDevice, SpiError } from '../../../core/spi/index.js';
import type { UnixListener, UnixSocket, UnixSockets } from '../../host/index.js';
import type { ChannelPort } from './channel-port.js';
import { type Hello, parseMessage } from './hello.js';
import { type ArenaSegment, Meeting, type MeetingHost, type Meeter } from './meeting.js';

/** The time that a connection waits for the channel; then it is made without. */
const MEETING_MS = 1000;
/** Callers that have not said HELLO. */
const MAX_STRANGERS = 16;
const BACKLOG = 64;

/** Unix sockets. Descriptors received by them belong to the thread: none is left when it ends. */
export interface MeetingSockets extends UnixSockets {
  closeDescriptor(descriptor: number): void;
}

export interface MeetingsInit {
  readonly sockets: MeetingSockets;
  readonly channels: ChannelPort;
  readonly self: Omit<MeetingHost['self'], 'guid'>;
  readonly logger: Logger;
  segments(): readonly ArenaSegment[];
  /** @returns stops it */
  startTimer(milliseconds: number, onTimeout: () => void): () => void;
}

export class Meetings implements MeetingHost {
  readonly channels: ChannelPort;
  readonly logger: Logger;
  self: MeetingHost['self'];
  private listener: UnixListener | undefined;
  /** Meetings by the peer's name. */
  private readonly meetings = new Map<string, Meeting>();
  /** Ends the wait, for each connection whose peer is not known yet. */
  private readonly strangers = new Map<UnixSocket, () => void>();

  constructor(private readonly init: MeetingsInit) {
    this.channels = init.channels;
    this.logger = init.logger;
    this.self = { ...init.self, guid: 0n };
    init.channels.onClosed = (channel, reason) => {
      this.logger.debug('a channel has ended', { channel, reason });
      for (const meeting of this.meetings.values()) {
        if (meeting.channel === channel) meeting.end();
      }
    };
  }

  /** @returns false where the name is taken, or the system has no such sockets for us */
  listen(guid: bigint): boolean {
    this.self = { ...this.self, guid };
    try {
      const listener = this.init.sockets.listenUnix(nameOf(this.self), BACKLOG);
      listener.watch(() => this.onCallers(listener));
      this.listener = listener;
      return true;
    } catch (error) {
      this.logger.debug('no device of this host can find this one', { error });
      return false;
    }
  }

  /** As `PacketPort.meet`. */
  meet({ guid, gid, udpPort, slot }: PeerDevice, done: (met: boolean) => void): void {
    const isSelf = nameOf({ guid, slot }) === nameOf(this.self);
    if (isSelf || this.listener === undefined) {
      done(false);
      return;
    }
    this.meetingWith({ guid, slot }).want((met) =>
      done(met && this.channels.channelTo(gid, udpPort, slot) !== NO_CHANNEL),
    );
  }

  /** Segments of the arena were added or removed. */
  announce(): void {
    for (const meeting of this.meetings.values()) meeting.announce();
  }

  close(): void {
    this.listener?.close();
    this.listener = undefined;
    for (const meeting of [...this.meetings.values()]) meeting.end();
    for (const [stranger, stop] of this.strangers) {
      stop();
      stranger.close();
    }
    this.strangers.clear();
  }

  connectTo(peer: Meeter): UnixSocket {
    const socket = this.init.sockets.connectUnix(nameOf(peer));
    if (socket.identity().isOwnUser) return socket;
    socket.close();
    throw new SpiError('EPERM', 'the device belongs to another user');
  }

  startTimer(onTimeout: () => void): () => void {
    return this.init.startTimer(MEETING_MS, onTimeout);
  }

  segments(): readonly ArenaSegment[] {
    return this.init.segments();
  }

  closeDescriptor(descriptor: number): void {
    this.init.sockets.closeDescriptor(descriptor);
  }

  onApart(meeting: Meeting): void {
    const name = nameOf(meeting.peer);
    if (this.meetings.get(name) === meeting) this.meetings.delete(name);
  }

  private meetingWith({ guid, slot }: Meeter): Meeting {
    const name = nameOf({ guid, slot });
    let meeting = this.meetings.get(name);
    if (meeting === undefined) {
      meeting = new Meeting(this, { guid, slot });
      this.meetings.set(name, meeting);
    }
    return meeting;
  }

  private onCallers(listener: UnixListener): void {
    let caller: UnixSocket | undefined;
    while ((caller = acceptFrom(listener)) !== undefined) {
      if (caller.identity().isOwnUser && this.strangers.size < MAX_STRANGERS) this.hearOut(caller);
      else caller.close();
    }
  }

  private hearOut(caller: UnixSocket): void {
    const end = (): void => {
      this.strangers.delete(caller);
      caller.close();
    };
    const stop = this.startTimer(end);
    this.strangers.set(caller, stop);
    caller.watch(() => {
      const came = receiveFrom(caller);
      if (came === undefined) return;
      stop();
      this.strangers.delete(caller);
      const hello = came && parseMessage(came.bytes, came.descriptors.length);
      if (hello && this.isOfAnother(hello)) {
        this.meetingWith(hello).onCall(caller, hello, came.descriptors);
      } else {
        came?.descriptors.forEach((descriptor) => this.closeDescriptor(descriptor));
        caller.close();
      }
    });
  }

  private isOfAnother(message: { readonly kind: string }): message is Hello {
    return message.kind === 'HELLO' && nameOf(message as Hello) !== nameOf(this.self);
  }
}

const NO_CHANNEL = -1;

/** The name of an abstract Unix socket. */
export function nameOf({ guid, slot }: Meeter): string {
  const ofSlot = slot === undefined ? '' : `/${slot}`;
  return `dapl-softroce/${guid.toString(16).padStart(16, '0')}${ofSlot}`;
}

/** Too many open files, and the like, are as if nothing had come: the caller gives up. */
function acceptFrom(listener: UnixListener): UnixSocket | undefined {
  try {
    return listener.accept();
  } catch {
    return undefined;
  }
}

function receiveFrom(caller: UnixSocket): ReturnType<UnixSocket['receive']> {
  try {
    return caller.take();
  } catch {
    return null;
  }
}
