/** A connection that is forwarded: two sockets, and bytes both ways. */
import { type AnySocket, hasEndedByReset, isBroken, reset } from './resets.js';

export interface ForwardingEvents {
  /** The other end has been reached. */
  onJoined(): void;
  /** Both sockets are closed; an error where not all bytes have gone through. */
  onEnd(error: Error | undefined): void;
}

/**
 * Joins a socket that has come to one that is being connected. The end of a direction is passed on
 * as it is; what breaks one socket resets the other, so that no peer takes a part for the whole.
 */
export class Forwarding {
  private open = 2;
  private error: Error | undefined = undefined;

  constructor(
    private readonly accepted: AnySocket,
    private readonly dialled: AnySocket,
    private readonly events: ForwardingEvents,
  ) {
    dialled.once('connect', () => events.onJoined());
    this.watch(accepted, dialled);
    this.watch(dialled, accepted);
  }

  /** Bytes from the one that has come. */
  get forthBytes(): number {
    return this.accepted.bytesRead;
  }

  /** Bytes to it. */
  get backBytes(): number {
    return this.dialled.bytesRead;
  }

  /** Ends it at once: both peers read a reset. */
  reset(error = new Error('it was cut off')): void {
    this.error ??= error;
    reset(this.accepted);
    reset(this.dialled);
  }

  /** Ends it if a side was reset while the other side held it back. */
  endIfBroken(): void {
    if (isBroken(this.accepted) || isBroken(this.dialled)) this.reset(wasReset());
  }

  private watch(socket: AnySocket, other: AnySocket): void {
    socket.pipe(other, { end: false });
    socket.once('end', () => {
      if (hasEndedByReset(socket)) this.reset(wasReset());
      else other.end();
    });
    socket.on('error', (error) => (this.error ??= error));
    socket.once('close', () => {
      const isWhole = socket.readableEnded && socket.writableFinished;
      if (!isWhole) {
        this.error ??= new Error('the peer has gone before all bytes had');
        reset(other);
      }
      this.open--;
      if (this.open === 0) this.events.onEnd(this.error);
    });
  }
}

function wasReset(): Error {
  return Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
}
