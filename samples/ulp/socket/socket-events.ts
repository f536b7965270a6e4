/**
 * Helpers of sockets and servers: callbacks to the consumer from within a protocol, Node's errors.
 */
import { StreamError } from './stream-error.js';

/**
 * Calls what leads to the consumer. What that throws is an uncaught exception, as of any event of
 * node:net, and not a fault in the protocol that told of it.
 */
export function calling<A extends readonly unknown[]>(
  call: (...args: A) => void,
  ...args: A
): void {
  try {
    call(...args);
  } catch (error) {
    process.nextTick(() => {
      throw error;
    });
  }
}

/** The socket has no connection (any more). */
export function socketClosed(): Error {
  return Object.assign(new Error('Socket is closed'), { code: 'ERR_SOCKET_CLOSED' });
}

/** The socket was destroyed while it was connecting. */
export function closedBeforeConnection(): Error {
  return Object.assign(new Error('Socket closed before the connection was established'), {
    code: 'ERR_SOCKET_CLOSED_BEFORE_CONNECTION',
  });
}

/** The peer has ended, and with it a socket that is not half open. */
export function endedByPeer(): StreamError {
  const detail = 'This socket has been ended by the other party';
  return new StreamError('EPIPE', { syscall: 'write', detail });
}
