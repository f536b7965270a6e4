/**
 * The protocol of librdmacm's udaddy (port 7174 of rdma_cm's UDP port space):
 *
 * 1. the client resolves the service once for each of its endpoints (SIDR);
 * 2. each endpoint sends its messages, all alike, with its queue pair number as immediate data;
 * 3. when all messages of all endpoints have come, the server sends as many replies to each.
 *
 * A reply is the server's receive buffer from its beginning, as long as a message: so the GRH area
 * comes first, which says nothing to the client, then the message without its last 40 bytes.
 */
import { UdEp } from 'dapl';

export const UDADDY_PORT = 7174;
/** Sizes of a datagram, which is one packet. */
export const SIZE_BYTES = { min: 1, max: 4096, default: 100 } as const;

/** The message of one of the client's endpoints. */
export function messageOf(endpoint: number, sizeBytes: number): Uint8Array {
  return Uint8Array.from({ length: sizeBytes }, (_, at) => 31 * endpoint + at);
}

/** The server's reply to a message, of the same length. */
export function replyTo(message: Uint8Array): Uint8Array {
  const reply = new Uint8Array(message.length);
  const { GRH_BYTES } = UdEp;
  if (message.length > GRH_BYTES) reply.set(message.subarray(0, -GRH_BYTES), GRH_BYTES);
  return reply;
}

/** True if a reply is the answer to this message. */
export function isReplyTo(message: Uint8Array, reply: Uint8Array): boolean {
  const { GRH_BYTES } = UdEp;
  const echoed = message.subarray(0, Math.max(0, message.length - GRH_BYTES));
  return reply.length === message.length && Buffer.compare(reply.subarray(GRH_BYTES), echoed) === 0;
}
