/**
 * The memory of a queue pair: one piece of the device's slab. The state for a message is close
 * together there, instead of in a dozen arrays all over the heap. Access to such arrays is most of
 * the cost of a message when a thousand queue pairs take turns. The layout is the tables below;
 * then come the entries of the send ring, those of the receive ring, and a row for each request.
 */
import {
  type AddressVector,
  type Gid,
  type QueuePairAttributes,
  type QueuePairInit,
  Ring,
  ringEntries,
  rqeBytes,
  sqeBytes,
} from '../../../core/spi/index.js';
import { Piece, type Slab } from '../../../core/spi/internal/index.js';
import {
  f64,
  flag,
  type Field,
  struct,
  u32,
  withFields,
  withRows,
} from '../../../core/spi/layout/struct.js';

/** Indices of the rings. */
const RINGS = struct({
  sendProducer: u32,
  sendConsumer: u32,
  receiveProducer: u32,
  receiveConsumer: u32,
});

/** Attributes of the SPI: a connection has fifteen, which as fields would take three times more. */
export const ATTRIBUTES = {
  accessFlags: u32,
  pkeyIndex: u32,
  portNumber: u32,
  qkey: u32,
  pathMtuBytes: u32,
  destinationQpn: u32,
  receivePsn: u32,
  sendPsn: u32,
  maxDestRdAtomic: u32,
  maxRdAtomic: u32,
  minRnrTimer: u32,
  timeout: u32,
  retryCount: u32,
  rnrRetryCount: u32,
  enableSqdAsyncNotify: flag,
} as const satisfies { [N in keyof QueuePairAttributes]?: Field | Field<boolean> };

/** Fields of every queue pair: 0 until they are set. */
const EVERY = struct({ attributesGiven: u32, ...ATTRIBUTES }, RINGS.end);

/** Never so far; of a deadline, none. */
export const NEVER_YET = -Infinity;
export const NO_DEADLINE = Infinity;

/**
 * Times of a connection, in microseconds: doubles, which as fields of objects would each be an
 * object of their own.
 */
const TIMES = struct(
  {
    /** The time when the timed packet left. */
    timedAtUs: f64(NEVER_YET),
    /** Since when deliveries are counted. */
    roundAtUs: f64(NEVER_YET),
    /** The time when the window was lowered. */
    loweredAtUs: f64(NEVER_YET),
    /** The time when the requester went back. */
    backAtUs: f64(NEVER_YET),
    /** The shortest round trip; Infinity before the first. */
    shortestUs: f64(Infinity),
    /** The usual round trip, and how far one is off. */
    smoothedUs: f64(),
    deviationUs: f64(),
    /** The last hint of the network that was heeded. */
    lastHintUs: f64(NEVER_YET),
    /** The time when the last message left. */
    sentAtUs: f64(NEVER_YET),
    /** Local ACK timeout; Infinity waits for ever. */
    ackTimeoutUs: f64(Infinity),
    /** The end of the wait for an acknowledgement. */
    ackDeadlineUs: f64(NO_DEADLINE),
    /** The time when a tail-loss probe is due. */
    probeDeadlineUs: f64(NO_DEADLINE),
    /** The end of the pause after an RNR NAK. */
    receiverDeadlineUs: f64(NO_DEADLINE),
  },
  EVERY.end,
);

/** Places of the times, in `doubles` from `firstDouble` on, for what reads many of them. */
export const TIME = TIMES.at;

/** A response that a responder owes: see ResponseQueue. */
export const RESPONSE_ROW = struct({ kind: u32, psn: u32, syndrome: u32, msn: u32 });
/** Rows that most connections need. A power of two. */
export const FEW_RESPONSES = 4;
/** Words from the start of the memory to the first of them. */
export const RESPONSES_AT = TIMES.end;

/** State of requests that send no packet: going back does not repeat those that are done. */
export const LOCAL = { NO: 0, TO_DO: 1, DONE: 2 } as const;

/** A request of a connection that has been begun, by its slot of the send ring. */
const REQUEST = struct({
  /** PSN of its first packet. */
  firstPsn: u32,
  /** PSNs that it uses. */
  packets: u32,
  /** The length of its message. */
  lengthBytes: u32,
  /** LOCAL. */
  local: u32,
});

/** The rings begin at the next cache line. */
const LINE_WORDS = 16;

/** Parts of the memory that only some queue pairs have. */
export interface QueuePairParts {
  /** The state of reliable connections. */
  readonly connected: boolean;
  /** A receive ring of its own. */
  readonly receives: boolean;
}

class Memory extends Piece {
  /** Index in `words` of the row of the first request. */
  readonly firstRow: number;
  readonly sendRing: Ring;
  readonly receiveRing: Ring | undefined;
  addressVector: AddressVector | undefined = undefined;

  constructor(slab: Slab, init: QueuePairInit, parts: QueuePairParts) {
    const { sends, receives, requests, words } = layoutOf(init, parts);
    super(slab, words * 4);
    this.firstRow = this.firstWord + requests;
    const sendBytes = sqeBytes(init.maxSendSge, init.maxInlineBytes);
    this.sendRing = this.ringAt(RINGS.at.sendProducer, sends, init.maxSendWr, sendBytes);
    const { receiveProducer } = RINGS.at;
    const receiveBytes = rqeBytes(init.maxReceiveSge);
    this.receiveRing = parts.receives
      ? this.ringAt(receiveProducer, receives, init.maxReceiveWr, receiveBytes)
      : undefined;
    if (parts.connected) Object.assign(this, TIMES.first);
  }

  /** @param producer the word of its index; that of the consumer's is the next */
  private ringAt(producer: number, firstEntry: number, wr: number, entryBytes: number): Ring {
    const { words, firstWord } = this;
    const place = {
      words,
      producerWord: firstWord + producer,
      consumerWord: firstWord + producer + 1,
      firstWord: firstWord + firstEntry,
    };
    return new Ring(place, ringEntries(wr), entryBytes);
  }

  /** The peer's GID, for a connection. */
  get peerGid(): Gid | undefined {
    return this.addressVector?.gid;
  }

  /** Entering RESET. */
  forgetAttributes(): void {
    const { words, firstWord } = this;
    words.fill(0, firstWord + EVERY.at.attributesGiven, firstWord + EVERY.end);
    this.addressVector = undefined;
  }

  /** Ends its use; `free` then gives it to others. */
  end(): void {
    this.sendRing.end();
    this.receiveRing?.end();
  }
}

export const QueuePairMemory = withFields(Memory, EVERY);
export type QueuePairMemory = InstanceType<typeof QueuePairMemory>;

/** Memory of a reliable connection. It has times and requests only if it is `connected`. */
export const ConnectionMemory = withRows(withFields(QueuePairMemory, TIMES), REQUEST);
export type ConnectionMemory = InstanceType<typeof ConnectionMemory>;

/** Words from the start of the memory; where a part is missing, the next one begins. */
interface Layout {
  readonly sends: number;
  readonly receives: number;
  readonly requests: number;
  readonly words: number;
}

function layoutOf(init: QueuePairInit, parts: QueuePairParts): Layout {
  const sendEntries = ringEntries(init.maxSendWr);
  const sendBytes = sqeBytes(init.maxSendSge, init.maxInlineBytes);
  const receiveBytes = parts.receives
    ? ringEntries(init.maxReceiveWr) * rqeBytes(init.maxReceiveSge)
    : 0;
  const fixed = parts.connected ? RESPONSES_AT + FEW_RESPONSES * RESPONSE_ROW.end : EVERY.end;
  const sends = Math.ceil(fixed / LINE_WORDS) * LINE_WORDS;
  const receives = sends + sendEntries * (sendBytes >>> 2);
  const requests = receives + (receiveBytes >>> 2);
  const words = requests + (parts.connected ? sendEntries * REQUEST.end : 0);
  return { sends, receives, requests, words };
}
