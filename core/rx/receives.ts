/** The messages that an endpoint receives, as a stream. */
import { Observable, type Subscriber } from 'rxjs';
import { Ep } from '../dat/endpoint/ep.js';
import type { Lmr } from '../dat/memory/lmr.js';
import type { LmrSegment } from '../dat/memory/segment.js';
import { DatError } from '../errors/index.js';
import { checkFields, checkParameter } from '../errors/guards.js';
import { DatDto, DatDtoStatus, type DatEvent, type DtoCompletionEvent } from '../evd/index.js';
import { BOOLEAN, integer, optional, showAs, Symbolic } from '../spi/checks/index.js';
import { failure } from './completion-of.js';
import { completionsOf, type Receiver } from './completions.js';

// The receive buffers of an endpoint: parts of one region. Each is posted as a receive, lent to the
// consumer, or neither (its queue pair has been destroyed).

/** Cookies from here on are ours, distinct from those of the consumer's posts. */
const FIRST_COOKIE = 2 ** 52;
/** More than any receive queue can hold. */
const COOKIES_A_LIFE = 2 ** 20;
const LIVES = 2 ** 32;

let lives = 0;

type Place = 'posted' | 'lent' | 'idle';

class ReceiveBuffers {
  private readonly buffers: ReceiveBuffer[] = [];
  private region: Lmr | undefined = undefined;
  /** The queue pair that they are posted to. */
  private qpn: number | undefined = undefined;
  private firstCookie = 0;
  /** First cookies of the endpoint's current queues, and of those before. */
  private readonly firsts = new Set<number>();

  constructor(
    private readonly ep: Ep,
    private readonly count: number,
    readonly bufferBytes: number,
    /** The endpoint has been reset: the posted receives are lost. */
    private readonly onReset: () => void,
  ) {}

  /** Posts all that are not posted. @throws DatError as `ia.allocate` and `ep.postRecv` */
  post(): void {
    const { ep } = this;
    if (this.region === undefined) this.allocate();
    if (this.qpn !== ep.qpn) {
      this.qpn = ep.qpn;
      this.firstCookie = FIRST_COOKIE + (lives++ % LIVES) * COOKIES_A_LIFE;
      this.firsts.add(this.firstCookie);
      for (const buffer of this.buffers) if (buffer.place === 'posted') buffer.place = 'idle';
    }
    ep.burst(() => {
      for (const buffer of this.buffers) if (buffer.place === 'idle') this.postOne(buffer);
    });
  }

  /** True if one of these receives has completed, even one from before a reset. */
  has(event: DatEvent): event is DtoCompletionEvent {
    if (event.type !== 'dto' || event.cookie < FIRST_COOKIE) return false;
    return this.firsts.has(event.cookie - (event.cookie % COOKIES_A_LIFE));
  }

  /**
   * A receive has completed: the buffer is the consumer's if it `succeeded`.
   * @returns undefined for a receive from before a reset: it has been posted again since
   */
  take({ cookie }: DtoCompletionEvent, succeeded: boolean): ReceiveBuffer | undefined {
    const buffer = this.buffers[cookie - this.firstCookie];
    if (buffer !== undefined) buffer.place = succeeded ? 'lent' : 'idle';
    return buffer;
  }

  /** It is posted again. @throws DatError as `ep.postRecv`: it can be returned again then */
  private giveBack(buffer: ReceiveBuffer): void {
    const { ep } = this;
    if (ep.isFreed) return;
    if (this.qpn === ep.qpn) this.postOne(buffer);
    else buffer.place = 'idle';
  }

  private postOne(buffer: ReceiveBuffer): void {
    this.ep.postRecv(buffer.segment, this.firstCookie + buffer.index);
    buffer.place = 'posted';
  }

  private allocate(): void {
    const { ep, count, bufferBytes } = this;
    const region = ep.ia.allocate(count * bufferBytes, { pz: ep.pz });
    this.region = region;
    for (let index = 0; index < count; index++) {
      const segment = region.segment(index * bufferBytes, bufferBytes);
      this.buffers.push(new ReceiveBuffer(segment, index, (buffer) => this.giveBack(buffer)));
    }
    ep.state$.subscribe({
      next: (state) => {
        if (state === 'UNCONNECTED' && this.qpn !== undefined && this.qpn !== ep.qpn) {
          this.onReset();
        }
      },
      complete: () => {
        if (!region.isFreed) region.free();
      },
    });
  }
}

/** A receive buffer. */
class ReceiveBuffer {
  place: Place = 'idle';

  constructor(
    readonly segment: LmrSegment,
    readonly index: number,
    private readonly giveBack: (buffer: ReceiveBuffer) => void,
  ) {}

  /** The whole buffer, however long the message. */
  get bytes(): Uint8Array {
    return this.segment.bytes;
  }

  /** Posts it again. @throws DatError as `ep.postRecv` */
  release(): void {
    if (this.place === 'lent') this.giveBack(this);
  }
}

/** A message that `receives` emits. */
export class Received implements Disposable {
  static {
    showAs(this, 'Received', ({ event, content }) => {
      return { ep: event.ep, bytes: content?.length ?? new Symbolic('released') };
    });
  }

  private content: Uint8Array | undefined;

  /** @internal @param buffer undefined when the bytes are a copy */
  constructor(
    /** Its completion: immediate data, an invalidated context. */
    readonly event: DtoCompletionEvent,
    bytes: Uint8Array,
    private buffer: ReceiveBuffer | undefined,
  ) {
    this.content = bytes;
  }

  /**
   * The message: a copy, or the registered memory itself if it is lent.
   * @throws DatError DAT_INVALID_STATE when the buffer was lent and has been released: it may hold
   * another message by now
   */
  get bytes(): Uint8Array {
    if (this.content !== undefined) return this.content;
    throw new DatError('DAT_INVALID_STATE', {
      operation: 'received.bytes',
      message: 'the message has been released',
      hint: 'take what you need before release()',
    });
  }

  /**
   * Posts the buffer again for the next message; once, however often it is called. For a copy it
   * does nothing: the buffer is posted already.
   * @throws DatError as `ep.postRecv`; the buffer can be released again then
   */
  release(): void {
    const { buffer } = this;
    if (buffer === undefined) return;
    buffer.release();
    this.buffer = undefined;
    this.content = undefined;
  }

  [Symbol.dispose](): void {
    this.release();
  }
}

/** The buffers, and who has them. */
export interface ReceivesOptions {
  /**
   * Receives that are posted: 1 to the endpoint's `maxRecvDtos`; default 16, or that if it is less.
   */
  readonly buffers?: number;
  /**
   * Bytes of each, 1 to 2^30: the longest message; default 4096. A longer one breaks the
   * connection.
   */
  readonly bufferBytes?: number;
  /**
   * false (default): each message is copied, and its buffer posted again before it is emitted.
   * true: the message is lent: `bytes` is the registered memory, and `release()` posts the buffer
   * again; while all are lent the peer waits (RNR), as often as its `rnrRetryCount` says (7: for
   * ever).
   */
  readonly lent?: boolean;
}

const DEFAULT_BUFFERS = 16;
const DEFAULT_BUFFER_BYTES = 4096;
const MAX_BUFFER_BYTES = 2 ** 30;

/**
 * The messages that come to an endpoint, in order, as a cold Observable with one subscriber. The
 * first subscription takes memory and posts the receives: subscribe before `connect` or `accept`,
 * or the peer's first message waits for it. Memory and receives stay when the subscriber leaves,
 * and messages that come then wait for the next; the memory goes with the endpoint. After
 * `ep.reset()` subscribing posts the receives anew.
 *
 * With copies (the default) operators may hold messages as long as they like: `bufferTime`, and
 * `concatMap` when it falls behind, hold them without a bound. Lent messages bound them by the
 * buffers.
 *
 * Completes when the connection ends, after its last message; errors with DatError when a receive
 * fails, as `completionOf` does (DAT_LENGTH_ERROR: a message was longer than `bufferBytes`), and
 * with DAT_INVALID_STATE when the endpoint has a shared receive queue or was made with a `recvEvd`,
 * or when something else takes its completions (another subscriber: use `share()`;
 * `ep.completions$`). Completions of requests that share the dispatcher go by unless `completionOf`
 * waits for them.
 * @param ep made without a `recvEvd`
 * @throws DatError DAT_INVALID_PARAMETER
 */
export function receives(ep: Ep, options: ReceivesOptions = {}): Observable<Received> {
  checkParameter(OPERATION, 'ep', ep, ep instanceof Ep, 'an Ep');
  const { maxRecvDtos } = ep.attributes;
  checkFields(OPERATION, options, {
    buffers: optional(integer(1, maxRecvDtos)),
    bufferBytes: optional(integer(1, MAX_BUFFER_BYTES)),
    lent: optional(BOOLEAN),
  });
  const { buffers: count = Math.min(DEFAULT_BUFFERS, maxRecvDtos), lent = false } = options;
  const { bufferBytes = DEFAULT_BUFFER_BYTES } = options;
  let subscription: Subscription | undefined;
  const buffers = new ReceiveBuffers(ep, count, bufferBytes, () => subscription?.ended());
  return new Observable<Received>((subscriber) => {
    const completions = completionsOf(OPERATION, ep, 'recvEvd');
    const mine = new Subscription(subscriber, buffers, lent);
    const leave = completions.receive(mine);
    subscription = mine;
    subscriber.add(leave);
    buffers.post();
    completions.catchUp(mine);
  });
}

const OPERATION = 'receives';

class Subscription implements Receiver {
  constructor(
    private readonly subscriber: Subscriber<Received>,
    private readonly buffers: ReceiveBuffers,
    private readonly lent: boolean,
  ) {}

  takes(event: DatEvent): event is DtoCompletionEvent {
    return this.buffers.has(event);
  }

  received(event: DtoCompletionEvent): void {
    const { subscriber, lent } = this;
    const succeeded = event.status === DatDtoStatus.SUCCESS;
    const buffer = this.buffers.take(event, succeeded);
    if (buffer === undefined) return;
    if (!succeeded) {
      this.failed(event);
      return;
    }
    // An RDMA write with immediate has its bytes in other memory.
    const length = event.operation === DatDto.RECV_IMMED ? 0 : event.transferredLength;
    if (lent) {
      subscriber.next(new Received(event, buffer.bytes.subarray(0, length), buffer));
      return;
    }
    const copy = buffer.bytes.slice(0, length);
    try {
      buffer.release();
    } catch (error) {
      subscriber.error(error);
      return;
    }
    subscriber.next(new Received(event, copy, undefined));
  }

  ended(): void {
    this.subscriber.complete();
  }

  private failed(event: DtoCompletionEvent): void {
    const { subscriber, buffers } = this;
    if (event.status === DatDtoStatus.FLUSHED) {
      subscriber.complete();
      return;
    }
    const isTooLong = event.status === DatDtoStatus.LOCAL_LENGTH;
    const hint = `messages of the peer must fit into bufferBytes, ${buffers.bufferBytes}`;
    subscriber.error(failure(OPERATION, event, isTooLong ? hint : undefined));
  }
}
