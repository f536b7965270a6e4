/** Parts that sockets and servers share: callbacks from within a protocol, Node's errors. */
import { StreamError } from './stream-error.js';

/**
 * Calls a consumer's callback. An exception in it is an uncaught exception, as for any event of
 * node:net, not an error of the protocol that called.
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

/** The error for a socket without a connection. */
export function socketClosed(): Error {
  return Object.assign(new Error('Socket is closed'), { code: 'ERR_SOCKET_CLOSED' });
}

/** The error for a socket that was destroyed while connecting. */
export function closedBeforeConnection(): Error {
  return Object.assign(new Error('Socket closed before the connection was established'), {
    code: 'ERR_SOCKET_CLOSED_BEFORE_CONNECTION',
  });
}

/** The error after the peer's end, if the socket is not half open. */
export function endedByPeer(): StreamError {
  const detail = 'This socket has been ended by the other party';
  return new StreamError('EPIPE', { syscall: 'write', detail });
}
