/**
 * The memory of a queue pair: one piece of the device's slab. What a message needs lies close
 * together there, instead of in a dozen arrays all over the heap: that is most of what a message
 * costs when a thousand queue pairs take turns. The layout is the tables below; then come the
 * entries of the send ring, those of the receive ring, and a row for each request.
 */
import { Piece, Ring, ringEntries, rqeBytes, sqeBytes } from '../../../core/spi/index.js';
import type {
  AddressVector,
  Gid,
  QueuePairAttributes,
  QueuePairInit,
  Slab,
} from '../../../core/spi/index.js';
import { ATTRIBUTE_WORDS, keepAttributes, keptAttributes } from './kept-attributes.js';

/** Words of every queue pair, from the start of its memory. */
const RING = { SEND_PRODUCER: 0, SEND_CONSUMER: 1, RECEIVE_PRODUCER: 2, RECEIVE_CONSUMER: 3 };
/** They come next; then the rest, as far as it is there. */
const ATTRIBUTES = 4;
const FIXED_WORDS = ATTRIBUTES + ATTRIBUTE_WORDS;

/**
 * Times of a connection, in microseconds: doubles, which as fields of objects would each be an
 * object of their own.
 */
export const TIME = {
  /** RcPace. */
  TIMED_AT: 0,
  ROUND_AT: 1,
  LOWERED_AT: 2,
  BACK_AT: 3,
  /** round-trip-time.ts. */
  SHORTEST: 4,
  SMOOTHED: 5,
  DEVIATION: 6,
  /** RcAckTimer. */
  ACK_DEADLINE: 7,
  PROBE_DEADLINE: 8,
  /** RcRequester. */
  LAST_HINT: 9,
  /** RcAckTimer: how long one is awaited. */
  ACK_TIMEOUT: 10,
  /** RcAckRequests: when the last message left. */
  SENT_AT: 11,
} as const;
const TIMES = 12;

/** Words of what a responder owes: see ResponseQueue. */
export const RESPONSE_ROW = { KIND: 0, PSN: 1, SYNDROME: 2, MSN: 3, WORDS: 4 } as const;
/** Answers that are owed at a time on most connections. A power of two. */
export const FEW_RESPONSES = 4;

/** Words of a request that has been begun: see RcMemory. */
export const REQUEST_ROW = { FIRST_PSN: 0, PACKETS: 1, LENGTH: 2, LOCAL: 3, WORDS: 4 } as const;

/** The rings begin at the next cache line. */
const LINE_WORDS = 16;

/** What of it a queue pair has. */
export interface QueuePairParts {
  /** What reliable connections note. */
  readonly connected: boolean;
  /** A receive ring of its own. */
  readonly receives: boolean;
}

export class QueuePairMemory extends Piece {
  /** Index in `doubles` of the times. */
  readonly firstTime: number;
  /** Indices in `words` of the first row of answers, and of requests. */
  readonly firstResponse: number;
  readonly firstRequest: number;
  readonly sendRing: Ring;
  readonly receiveRing: Ring | undefined;
  private addressVector: AddressVector | undefined = undefined;

  constructor(slab: Slab, init: QueuePairInit, parts: QueuePairParts) {
    const layout = layoutOf(init, parts);
    super(slab, layout.words * 4);
    const { words, firstWord } = this;
    this.firstTime = (firstWord + layout.times) >>> 1;
    this.firstResponse = firstWord + layout.responses;
    this.firstRequest = firstWord + layout.requests;
    this.sendRing = new Ring(
      {
        words,
        producerWord: firstWord + RING.SEND_PRODUCER,
        consumerWord: firstWord + RING.SEND_CONSUMER,
        firstWord: firstWord + layout.sends,
      },
      ringEntries(init.maxSendWr),
      sqeBytes(init.maxSendSge, init.maxInlineBytes),
    );
    this.receiveRing = layout.hasReceives
      ? new Ring(
          {
            words,
            producerWord: firstWord + RING.RECEIVE_PRODUCER,
            consumerWord: firstWord + RING.RECEIVE_CONSUMER,
            firstWord: firstWord + layout.receives,
          },
          ringEntries(init.maxReceiveWr),
          rqeBytes(init.maxReceiveSge),
        )
      : undefined;
  }

  /** An attribute of the queue pair, 0 when it has not been given. @param which ATTRIBUTE */
  attribute(which: number): number {
    return this.words[this.firstWord + ATTRIBUTES + which]!;
  }

  get attributes(): QueuePairAttributes {
    const numbers = keptAttributes(this.words, this.firstWord + ATTRIBUTES);
    const { addressVector } = this;
    return addressVector ? { ...numbers, addressVector } : numbers;
  }

  keep(attributes: QueuePairAttributes): void {
    keepAttributes(this.words, this.firstWord + ATTRIBUTES, attributes);
    this.addressVector = attributes.addressVector ?? this.addressVector;
  }

  /** Of a connection. */
  get peerGid(): Gid | undefined {
    return this.addressVector?.gid;
  }

  forgetAttributes(): void {
    const first = this.firstWord + ATTRIBUTES;
    this.words.fill(0, first, first + ATTRIBUTE_WORDS);
    this.addressVector = undefined;
  }

  /** Nothing is found in it from now on; `free` gives it to others. */
  end(): void {
    this.sendRing.end();
    this.receiveRing?.end();
  }
}

/** Words from the start of the memory; where a part is missing, the next one begins. */
interface Layout {
  readonly times: number;
  readonly responses: number;
  readonly sends: number;
  readonly receives: number;
  readonly hasReceives: boolean;
  readonly requests: number;
  readonly words: number;
}

function layoutOf(
  init: QueuePairInit,
  { connected, receives: hasReceives }: QueuePairParts,
): Layout {
  const sendEntries = ringEntries(init.maxSendWr);
  const sendBytes = sqeBytes(init.maxSendSge, init.maxInlineBytes);
  const receiveBytes = rqeBytes(init.maxReceiveSge);
  const times = FIXED_WORDS;
  const responses = times + (connected ? 2 * TIMES : 0);
  const fixed = responses + (connected ? FEW_RESPONSES * RESPONSE_ROW.WORDS : 0);
  const sends = Math.ceil(fixed / LINE_WORDS) * LINE_WORDS;
  const receives = sends + sendEntries * (sendBytes >>> 2);
  const requests =
    receives + (hasReceives ? ringEntries(init.maxReceiveWr) * (receiveBytes >>> 2) : 0);
  const words = requests + (connected ? sendEntries * REQUEST_ROW.WORDS : 0);
  return { times, responses, sends, receives, hasReceives, requests, words };
}
