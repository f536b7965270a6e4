/** Attributes of an endpoint's queues: they are created with them and stay within them. */

/** Attributes of any endpoint. */
export interface QueueAttributes {
  /** Requests and receives that may be outstanding. */
  readonly maxRecvDtos: number;
  readonly maxRequestDtos: number;
  /** Segments of one receive, and of one request. */
  readonly maxRecvIov: number;
  readonly maxRequestIov: number;
}

/** Attributes of an endpoint that connects. Lengths are in bytes. */
export interface EpQueueAttributes extends QueueAttributes {
  readonly maxMessageBytes: number;
  readonly maxRdmaBytes: number;
  /**
   * How completions of receives notify: EVD_THRESHOLD (default; all do, and `evd.wait` counts),
   * DEFAULT (all do), SOLICITED_WAIT (those that the sender asked for), UNSIGNALLED (those not
   * posted with that flag). One event dispatcher takes only streams of one kind.
   */
  readonly recvCompletionFlags: number;
  /** EVD_THRESHOLD, DEFAULT or UNSIGNALLED; SUPPRESS may be added, and changes nothing. */
  readonly requestCompletionFlags: number;
  readonly maxRdmaReadIov: number;
  readonly maxRdmaWriteIov: number;
  /** RDMA reads (and atomics) issued at a time. */
  readonly maxRdmaReadOut: number;
  /**
   * Milliseconds; 0 (default) is off, else 10 to 86,400,000. When the peer of a connection has
   * given no sign of life for so long, or a quarter less, a zero-length RDMA write asks for one. It
   * changes nothing at the peer, and takes no place from the consumer's requests. Without an answer
   * the retries of `transport` run out, and the endpoint is BROKEN. For a peer that was killed or
   * switched off, that takes at most `keepAliveMs` and 4 * (retryCount + 1) ACK timeouts
   * (docs/liveness.md).
   */
  readonly keepAliveMs: number;
}

/** Our entries of the send queue: the marker that ends it, and a keep-alive's probe. */
export function ownRequests({ keepAliveMs }: EpQueueAttributes): number {
  return keepAliveMs === 0 ? 1 : 2;
}

/** An RDMA write or read may take more segments than a send. */
export function sendIov(attributes: EpQueueAttributes): number {
  const { maxRequestIov, maxRdmaReadIov, maxRdmaWriteIov } = attributes;
  return Math.max(maxRequestIov, maxRdmaReadIov, maxRdmaWriteIov);
}
