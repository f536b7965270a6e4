/** Causes of a connection's end, as far as known locally. */

/** Values of `ConnectionEvent.cause`, each with its text for people. */
export const CONNECTION_CAUSES = {
  RECEIVER_NOT_READY: 'the peer had no receive posted, and the retries for that ran out',
  NO_RECEIVE_POSTED: 'the last message of the peer found no receive posted here',
  REMOTE_LENGTH:
    'the peer refused a message as invalid: its receive was too small, or a packet was malformed',
  LOCAL_LENGTH: 'a receive posted here was too small for a message of the peer',
  REMOTE_ACCESS: 'the peer refused access: wrong key, range or privilege',
  LOCAL_ACCESS: 'the peer reached for memory that it was not granted',
  REMOTE_REQUEST: 'the peer refused a request as invalid',
  LOCAL_REQUEST: 'a request was refused here: the queue pair cannot carry it out',
  REMOTE_OPERATION: 'the peer could not carry a request out',
  LOCAL_PROTECTION: 'local memory of a request or receive is not registered for it any more',
  PEER_PROTOCOL: 'the peer sent what breaks the protocol',
  PEER_GONE: 'the peer does not answer any more, and the retries ran out',
  CONNECTION_LOST: 'the system reports that the connection cannot go on',
  COMPLETIONS_LOST: 'completions are lost',
  WATERMARK: 'more receives are held than the hard high watermark',
  DEVICE: 'the device or its queue pair failed',
  HANDSHAKE: 'the handshake failed after data had arrived',
} as const;
export type ConnectionCause = keyof typeof CONNECTION_CAUSES;
