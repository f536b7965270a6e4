/** A forwarded connection: two sockets, with bytes copied both ways. */
import { type AnySocket, hasEndedByReset, isBroken, reset } from './resets.js';

export interface ForwardingEvents {
  /** The other endpoint is connected. */
  onJoined(): void;
  /** Both sockets are closed; with an error if not all bytes were forwarded. */
  onEnd(error: Error | undefined): void;
}

/**
 * Joins an accepted socket to one that is being connected. The end of one direction is forwarded as
 * an end. An error on one socket resets the other, so that no peer mistakes a part for the whole.
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

  /** Bytes from the accepted socket. */
  get forthBytes(): number {
    return this.accepted.bytesRead;
  }

  /** Bytes to the accepted socket. */
  get backBytes(): number {
    return this.dialled.bytesRead;
  }

  /** Resets both sockets. */
  reset(error = new Error('it was cut off')): void {
    this.error ??= error;
    reset(this.accepted);
    reset(this.dialled);
  }

  /** Resets both sockets if one was reset while the other held it back. */
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
        this.error ??= new Error('the peer closed before it got all bytes');
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
