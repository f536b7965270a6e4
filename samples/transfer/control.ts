/** The control messages of a transfer over its connection, and the sentences about its end. */
import { type Connection, type ConnectionOptions, FlowError } from 'dapl/flow';
import { sentenceOf } from '../program.js';
import { TransferFailure } from './failure.js';
import { decode, encode, type Message, MESSAGE_BYTES } from './messages.js';

const BUFFERS = 64;
/** Timeout for a graceful close. */
const GOODBYE_MS = 1500;

/**
 * Timeouts that detect a dead peer within three seconds. Keepalives are sent twice a second. An ACK
 * is due within 34 ms (4.096 us * 2^13) on the accepting side and 134 ms on the connecting side,
 * which adds the peer's ACK delay; five retries back off to four times that. A killed process is
 * detected sooner, by ICMP. A peer without a posted receive gets six retries of 82 ms.
 */
export const CONNECTION: ConnectionOptions = {
  receives: { buffers: BUFFERS, bufferBytes: MESSAGE_BYTES },
  requests: 4 * BUFFERS,
  keepAliveMs: 500,
  attributes: {
    transport: { ackTimeout: 13, retryCount: 5, rnrRetryCount: 6, minRnrTimer: 26 },
  },
};

/** An open connection. */
export interface Control {
  readonly conn: Connection;
  /** The name of the other side in messages. */
  readonly peer: string;
  /** Aborted to interrupt. */
  readonly signal: AbortSignal;
}

/** Sends a message after all previous ones. If it cannot be sent, `hear` reports that. */
export function say({ conn }: Pick<Control, 'conn'>, message: Message): void {
  conn.send(encode(message)).catch(() => undefined);
}

/**
 * The next message. @throws TransferFailure if the connection ends first, or the peer says stop;
 * FlowError DAT_INTERRUPTED_CALL
 */
export async function hear({ conn, peer, signal }: Control): Promise<Message> {
  const { bytes } = await conn.receive({ signal }).catch((error: unknown) => {
    throw failureAt(peer, error);
  });
  let message: Message;
  try {
    message = decode(bytes);
  } catch (cause) {
    throw new TransferFailure(`${peer} does not speak this protocol`, { cause });
  }
  if (message.type !== 'stop') return message;
  throw new TransferFailure(`${peer} stopped: ${message.reason}`, { byPeer: true });
}

/** Like `hear`, for the one type that is allowed now. */
export async function expect<T extends Message['type']>(
  control: Control,
  type: T,
): Promise<Extract<Message, { type: T }>> {
  const message = await hear(control);
  if (message.type === type) return message as Extract<Message, { type: T }>;
  throw new TransferFailure(`The peer sent "${message.type}" instead of "${type}"`);
}

/** Closes the connection, with a moment for earlier messages to arrive. */
export function leave({ conn }: Pick<Control, 'conn'>): Promise<void> {
  return conn.close({ timeoutMs: GOODBYE_MS });
}

/** A sentence for a connection that failed or ended; other errors are returned as they are. */
export function failureAt(peer: string, error: unknown): Error {
  if (!FlowError.isFlowError(error)) return error as Error;
  const what = WHAT[error.code]?.(peer, error);
  return what === undefined ? error : new TransferFailure(what, { byPeer: true, cause: error });
}

type Wording = (peer: string, error: FlowError) => string;

/** Uses the error's own sentence, which says what happened: "the peer cannot be reached: …". */
const inFull: Wording = (peer, error) => sentenceOf(error).replace(/^the peer/, peer);

const WHAT: Readonly<Record<string, Wording>> = {
  DAT_CONN_REFUSED: (peer) => `Nobody listens on ${peer}`,
  DAT_CONN_REJECTED: (peer, { peerPrivateData }) => {
    const why = new TextDecoder().decode(peerPrivateData).replaceAll('\0', '');
    return `${peer} refused the connection: ${why || 'no reason given'}`;
  },
  DAT_CONN_UNREACHABLE: inFull,
  DAT_CONN_TIMED_OUT: inFull,
  DAT_TIMEOUT_EXPIRED: (peer) => `${peer} cannot be reached: no answer within the timeout`,
  DAT_CONN_ENDED: (peer) => `${peer} has disconnected`,
  DAT_CONN_BROKEN: (peer, error) => {
    if (error.reason === 'PEER_GONE') return `${peer} does not answer any more`;
    if (error.reason === 'RECEIVER_NOT_READY') return `${peer} takes no more messages`;
    return `The connection to ${peer} broke: ${sentenceOf(error)}`;
  },
};
