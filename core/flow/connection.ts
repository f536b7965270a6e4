/**
 * A connection with promises. One send is one message. It adds only the keep-alive to the wire, and
 * waits for a peer that has no receive posted.
 */
import type { Cr } from '../dat/connect/cr.js';
import type { Ia } from '../dat/ia/ia.js';
import type { Ep } from '../dat/endpoint/ep.js';
import { LmrSegment, type RemoteSegment } from '../dat/memory/segment.js';
import {
  type ConnectionEvent,
  DatDto,
  DatDtoStatus,
  DatEventNumber,
  type Evd,
} from '../evd/index.js';
import { checkValue, isU64, kindOf, oneOf, showAs } from '../spi/checks/index.js';
import { leaveUnhandled } from '../spi/index.js';
import { closedHere, type End, endOf, errorOfEnd } from './ends.js';
import { FlowError, flowCall, refusalOf, rejection, toFlowError } from './flow-error.js';
import { Grant, GRANT_ACCESS, type GrantAccess } from './grant.js';
import { Inbox, iterate } from './inbox.js';
import { Message, RECEIVES, WITH_IMMEDIATE } from './message.js';
import {
  type ConnectionPlan,
  type ConnectOptions,
  type ReceiveOptions,
  receivesOf,
} from './options.js';
import { areaBytes, areaOf, ReceiveArea } from './receive-area.js';
import { type Remote, targetOf } from './remote.js';
import { RequestSizes } from './request-sizes.js';
import { Requests } from './requests.js';
import { Space } from './space.js';
import { CopyBack, type OwnMemory, ownMemory } from './staging.js';
import {
  checkTransfer,
  type Data,
  SEND_NAMES,
  type SendOptions,
  sizeOf,
  TRANSFER_NAMES,
  type TransferOptions,
  WRITE_NAMES,
  type WriteOptions,
} from './transfer.js';
import { checkWait, type EndError, NO_OPTIONS, type WaitOptions, Waits } from './wait.js';

/** Queued events of one connection: it is established, and it ends. */
const CONNECTION_EVENTS = 4;
const CLOSE_TIMEOUT_MS = 5000;
const ACCESS = oneOf(Object.keys(GRANT_ACCESS));
const U64 = kindOf<bigint>('a bigint from 0 to 2^64 - 1', isU64);
const ATOMIC_BYTES = 8;
const NOTHING: readonly LmrSegment[] = [];
const NO_PRIVATE_DATA = new Uint8Array(0);

type State = 'opening' | 'open' | 'closing' | 'ended';

/** Made by `connect` and by listeners. It keeps the process alive until it ends, or `unref()`. */
export class Connection implements AsyncIterable<Message> {
  static {
    showAs(this, 'Connection', ({ ep, state, requests, inbox }) => {
      return { ep, state, posted: requests.posted, queued: requests.queued, waiting: inbox.size };
    });
  }

  /**
   * The DAT endpoint beneath. The connection owns its requests and completions: do not post on it.
   */
  readonly ep: Ep;
  private state: State = 'opening';
  private privateData: Uint8Array = NO_PRIVATE_DATA;
  /** @internal private data that this side has sent */
  sentPrivateData: Uint8Array = NO_PRIVATE_DATA;
  private readonly evd: Evd;
  private readonly space: Space;
  private readonly area: ReceiveArea;
  private readonly inbox: Inbox<Message>;
  private readonly requests: Requests<void>;
  private readonly grants = new Set<Grant>();
  private readonly opening: Waits<void>;
  private readonly closing: Waits<void>;
  private end: End | undefined = undefined;
  private errorOf: EndError | undefined = undefined;
  private closedPromise: Promise<void> | undefined = undefined;
  private settleClosed: ((end: End) => void) | undefined = undefined;
  private readonly sizes: RequestSizes;
  private hasWarned = false;

  /** @internal @throws FlowError as `ia.createEndpoint` and `ia.allocate` */
  constructor(
    readonly ia: Ia,
    operation: string,
    private readonly plan: ConnectionPlan,
  ) {
    const { buffers, bufferBytes, lend, requests, polling, attributes } = plan;
    const host = ia.core.context;
    this.opening = new Waits(host);
    this.closing = new Waits(host);
    this.requests = new Requests(host, requests);
    this.sizes = new RequestSizes(requests);
    this.inbox = new Inbox<Message>(
      host,
      (message) => message.handOver(lend),
      () => (this.area.isExhausted ? HELD : ''),
    );
    const space = Space.join(operation, ia, plan.pz);
    this.space = space;
    // Gives back what has been created, if the rest fails.
    const undo = [(): void => space.leave()];
    try {
      const { pz } = space;
      const lease = areaOf(operation, space, areaBytes(buffers, bufferBytes));
      this.area = new ReceiveArea(lease, {
        ...{ buffers, bufferBytes, skipBytes: 0 },
        post: (segment, slot) => this.postReceive(segment, slot),
        onEmpty: () => space.leave(),
      });
      undo[0] = () => this.area.close();
      const qlen = buffers + requests + CONNECTION_EVENTS;
      const handler = (): void => this.drain();
      const evd = ia.createEvd({ qlen, polling, policy: 'NOTIFY', handler });
      this.evd = evd;
      undo.unshift(() => leaveUnhandled(evd.free()));
      const evds = { recvEvd: evd, requestEvd: evd, connectEvd: evd };
      this.ep = ia.createEndpoint({ pz, ...evds, attributes });
      undo.unshift(() => this.ep.free());
      this.area.postAll();
    } catch (error) {
      for (const step of undo) step();
      throw toFlowError(operation, error);
    }
    ia.core.closers.add(this.onIaClosing);
  }

  /**
   * The peer's private data of the connection, padded with zeros: its length is not transmitted.
   */
  get peerPrivateData(): Uint8Array {
    return this.privateData;
  }

  /** @internal the receives that it has posted */
  get receives(): Required<ReceiveOptions> {
    return receivesOf(this.plan);
  }

  /** True if neither closed nor ended: messages can be sent. */
  get isOpen(): boolean {
    return this.state === 'open';
  }

  /** Bytes of the longest message that can be sent. */
  get maxMessageBytes(): number {
    return this.plan.maxMessageBytes;
  }

  /**
   * Settles with the connection's end: resolves when a side has closed it, rejects with the cause
   * when it breaks. It is safe to ignore: pending calls report the end, too.
   */
  get closed(): Promise<void> {
    this.closedPromise ??= new Promise((resolve, reject) => {
      const settle = (end: End): void => {
        if (end.isOrderly) resolve();
        else reject(errorOfEnd(end)('conn.closed'));
      };
      if (this.end === undefined) this.settleClosed = settle;
      else settle(this.end);
    });
    return this.closedPromise;
  }

  /**
   * Sends a message; resolves when the peer has it. More than `requests` at a time are queued, and
   * so are all of them while the peer has no receive posted.
   * @param data bytes, which must stay as they are until then; or a segment
   * @throws FlowError, as a rejection: DAT_LENGTH_ERROR for more than `maxMessageBytes`, before
   * anything is sent; DAT_TIMEOUT_EXPIRED, DAT_INTERRUPTED_CALL, which say whether it may arrive;
   * DAT_INVALID_PARAMETER; what `ep.postSend` throws, and the end of the connection
   */
  send(data: Data, options: SendOptions = NO_OPTIONS): Promise<void> {
    const operation = 'conn.send';
    try {
      this.checkTransfer(operation, data, options, SEND_NAMES);
      this.checkLength(operation, sizeOf(data));
      const { nextCookie } = this.requests;
      if (nextCookie === undefined) return this.sendLater(operation, data, options);
      const memory = this.postSend(operation, nextCookie, data, options.immediate);
      return this.requests.track(operation, memory, options);
    } catch (error) {
      return rejection(operation, error);
    }
  }

  /**
   * The oldest message that has not been taken, or the next. Messages from before the end of the
   * connection can be received after it.
   * @throws FlowError, as a rejection: DAT_TIMEOUT_EXPIRED, DAT_INTERRUPTED_CALL, without losing a
   * message; the end of the connection
   */
  receive(options: WaitOptions = NO_OPTIONS): Promise<Message> {
    const operation = 'conn.receive';
    try {
      checkWait(operation, options);
      if (this.area.isExhausted && this.inbox.size === 0) this.warnOfHeld();
      return this.inbox.take(operation, options);
    } catch (error) {
      return rejection(operation, error);
    }
  }

  /** Messages, until a side closes the connection; throws when it breaks. */
  [Symbol.asyncIterator](): AsyncIterableIterator<Message> {
    return iterate(
      () => this.receive(),
      () => this.state === 'closing' || this.end?.isOrderly === true,
    );
  }

  /**
   * Opens memory to the peer, until `grant.revoke()` or the end of the connection.
   * @param memory bytes to allocate (zeroed), or memory to register: of a Buffer, one of its own
   * (`Buffer.allocUnsafeSlow`)
   * @param access what the peer may do: `read`, `write`, `read-write`, or `atomic` (all of it)
   * @throws FlowError DAT_INVALID_PARAMETER; as `ia.allocate` and `ia.createLmr`; the end of the
   * connection
   */
  expose(memory: number | Uint8Array, access: GrantAccess = 'read'): Grant {
    const operation = 'conn.expose';
    this.checkOpen(operation);
    checkValue('access', access, ACCESS, refusalOf(operation));
    const options = { pz: this.space.pz, privileges: GRANT_ACCESS[access] };
    const lmr = flowCall(operation, () =>
      typeof memory === 'number'
        ? this.ia.allocate(memory, options)
        : this.ia.createLmr(memory, options),
    );
    const grant = new Grant(lmr, (revoked) => this.grants.delete(revoked));
    this.grants.add(grant);
    return grant;
  }

  /**
   * Writes into memory that the peer has exposed; resolves when it is there. The peer is not
   * notified, unless by `immediate`.
   * @param remote the peer's grant, or a RemoteSegment
   * @throws FlowError, as a rejection: DAT_LENGTH_ERROR beyond the end of the grant, before
   * anything is sent; as `send`. A peer that has not granted it breaks the connection:
   * REMOTE_ACCESS
   */
  write(
    data: Data,
    remote: Remote | RemoteSegment,
    options: WriteOptions = NO_OPTIONS,
  ): Promise<void> {
    const operation = 'conn.write';
    try {
      this.checkTransfer(operation, data, options, WRITE_NAMES);
      const { immediate, offset = 0 } = options;
      const lengthBytes = sizeOf(data);
      const target = targetOf(operation, remote, offset, lengthBytes);
      const post = (cookie: number): OwnMemory | undefined => {
        const memory = ownMemory(operation, this.space, this.plan.bufferBytes, data, true);
        return this.posting(cookie, memory, lengthBytes, (segments) => {
          if (immediate === undefined) this.ep.postRdmaWrite(segments, cookie, target);
          else this.ep.postRdmaWriteWithImmediate(segments, cookie, target, immediate);
        });
      };
      return this.requests.post(operation, post, options);
    } catch (error) {
      return rejection(operation, error);
    }
  }

  /**
   * Reads from memory that the peer has exposed.
   * @param into bytes, which are written when all have arrived, and not at all after an error; or a
   * segment, which the device writes itself
   * @throws FlowError, as a rejection: as `write`
   */
  read(
    into: Data,
    remote: Remote | RemoteSegment,
    options: TransferOptions = NO_OPTIONS,
  ): Promise<void> {
    const operation = 'conn.read';
    try {
      this.checkTransfer(operation, into, options, TRANSFER_NAMES);
      const lengthBytes = sizeOf(into);
      const target = targetOf(operation, remote, options.offset ?? 0, lengthBytes);
      const post = (cookie: number): OwnMemory | undefined => {
        const memory = ownMemory(operation, this.space, this.plan.bufferBytes, into, false);
        const held =
          memory === undefined || into instanceof LmrSegment ? memory : new CopyBack(memory, into);
        return this.posting(cookie, held, lengthBytes, (segments) =>
          this.ep.postRdmaRead(segments, cookie, target),
        );
      };
      return this.requests.post(operation, post, options);
    } catch (error) {
      return rejection(operation, error);
    }
  }

  /**
   * Adds to 64 bits of the peer's memory, modulo 2^64, in one step against other atomics.
   * @param remote exposed as `atomic`; the address, with the offset, is a multiple of 8
   * @param add u64; for a subtraction, `BigInt.asUintN(64, -n)`
   * @returns what was there before
   * @throws FlowError, as a rejection: as `write`
   */
  fetchAdd(
    remote: Remote | RemoteSegment,
    add: bigint,
    options: TransferOptions = NO_OPTIONS,
  ): Promise<bigint> {
    const operation = 'conn.fetchAdd';
    return this.atomic(operation, remote, { add }, options, (result, cookie, target) =>
      this.ep.postFetchAdd(result, cookie, target, add),
    );
  }

  /**
   * Replaces 64 bits of the peer's memory if they are what is expected.
   * @param compare u64: what is expected
   * @param swap u64
   * @returns what was there before: it was replaced if that equals `compare`
   * @throws FlowError, as a rejection: as `write`
   */
  compareSwap(
    remote: Remote | RemoteSegment,
    compare: bigint,
    swap: bigint,
    options: TransferOptions = NO_OPTIONS,
  ): Promise<bigint> {
    const operation = 'conn.compareSwap';
    return this.atomic(operation, remote, { compare, swap }, options, (result, cookie, target) =>
      this.ep.postCompareSwap(result, cookie, target, compare, swap),
    );
  }

  /**
   * Ends the connection. Pending sends are completed first, pending receives end with
   * DAT_CONN_CLOSED, and messages that nothing has taken are dropped. Resolves when it is done;
   * later calls resolve with the first.
   * @param options after `timeoutMs` (default 5000), or when `signal` fires, it ends at once, and
   * what has not been sent is not
   * @throws FlowError DAT_INVALID_PARAMETER alone
   */
  async close(options: WaitOptions = NO_OPTIONS): Promise<void> {
    const operation = 'conn.close';
    const { timeoutMs = CLOSE_TIMEOUT_MS, signal } = options;
    if (signal?.aborted !== true) checkWait(operation, options);
    this.dropMessages();
    if (this.state === 'ended') return;
    if (this.state === 'opening' || timeoutMs === 0 || signal?.aborted === true) {
      this.closeNow();
      return;
    }
    const over = this.closing.add(operation, { timeoutMs, signal });
    if (this.state === 'open') {
      this.state = 'closing';
      this.inbox.end(errorOfEnd(closedHere(this.ep)));
      this.leaveWhenSent();
    }
    try {
      await over;
    } catch {
      this.closeNow();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Keeps the process alive until the connection ends: the default. */
  ref(): this {
    this.evd.ref();
    this.ep.ref();
    return this;
  }

  /** Lets the process exit while the connection is open, as `unref` of node:net. */
  unref(): this {
    this.evd.unref();
    this.ep.unref();
    return this;
  }

  /** @internal connects; resolves when the connection is established */
  async dial(options: ConnectOptions): Promise<this> {
    const { address, port: connQual, privateData } = options;
    const operation = 'connect';
    this.sentPrivateData = privateData ?? NO_PRIVATE_DATA;
    try {
      flowCall(operation, () =>
        this.ep.connect({ address, connQual, ...(privateData !== undefined && { privateData }) }),
      );
      await this.opening.add(operation, options);
    } catch (error) {
      this.closeNow();
      throw error;
    }
    return this;
  }

  /** @internal accepts a request; resolves when the connection is established */
  async answer(cr: Cr, privateData: Uint8Array): Promise<this> {
    this.privateData = cr.privateData;
    this.sentPrivateData = privateData;
    const operation = 'listen';
    try {
      flowCall(operation, () => cr.accept(this.ep, { privateData }));
      await this.opening.add(operation, NO_OPTIONS);
    } catch (error) {
      this.closeNow();
      throw error;
    }
    return this;
  }

  private readonly onIaClosing = (): void => {
    this.dropMessages();
    this.closeNow('the interface adapter has been closed');
  };

  /** Handles all queued events: the handler of its event dispatcher. */
  private drain(): void {
    const { batch } = this.space;
    while (!this.isOver && this.evd.dequeueInto(batch, batch.capacity) > 0) {
      for (let i = 0; i < batch.count && !this.isOver; i++) {
        const event = batch.events[i];
        if (event?.type === 'connection') this.onConnectionEvent(event);
        else this.onCompletion(i);
      }
    }
  }

  private onCompletion(at: number): void {
    const { batch } = this.space;
    const cookie = batch.cookies[at] as number;
    const operation = batch.operations[at] as number;
    const succeeded = batch.statuses[at] === DatDtoStatus.SUCCESS;
    if (RECEIVES.has(operation)) {
      if (succeeded) this.onReceive(cookie, operation, at);
    } else if (succeeded) {
      this.requests.complete(cookie, undefined);
      if (this.state === 'closing') this.leaveWhenSent();
    } else if (batch.statuses[at] !== DatDtoStatus.FLUSHED) {
      this.sizes.onFailed(cookie);
    }
  }

  private onReceive(slot: number, operation: number, at: number): void {
    const { lengths, immediates } = this.space.batch;
    this.area.take();
    const written = operation === DatDto.RECV_IMMED;
    const length = lengths[at] as number;
    const immediate = WITH_IMMEDIATE.has(operation) ? immediates[at] : undefined;
    const invalidated = operation === DatDto.RECEIVE_WITH_INVALIDATE ? immediates[at] : undefined;
    const message = new Message(
      this.area,
      slot,
      written ? 0 : length,
      immediate,
      written ? length : undefined,
      invalidated,
    );
    if (this.state === 'open' || this.state === 'opening') this.inbox.put(message);
    else message.drop();
  }

  private onConnectionEvent(event: ConnectionEvent): void {
    if (event.number === DatEventNumber.ESTABLISHED) {
      if (event.privateData.length > 0) this.privateData = event.privateData;
      this.state = 'open';
      this.opening.serve();
      return;
    }
    const isOurs = this.state === 'closing' && event.number === DatEventNumber.DISCONNECTED;
    const lengths = this.sizes.involved(event, this.plan.bufferBytes);
    this.finish(isOurs ? closedHere(this.ep) : endOf(event, this.ep, lengths));
  }

  /** Ends everything, once: pending calls get the error, resources are freed. */
  private finish(end: End): void {
    if (this.state === 'ended') return;
    this.state = 'ended';
    this.end = end;
    const errorOf = errorOfEnd(end);
    this.errorOf = errorOf;
    this.ia.core.closers.delete(this.onIaClosing);
    // The queue pair first: from then on nothing writes to the memory.
    this.ep.free();
    leaveUnhandled(this.evd.free());
    this.requests.end(errorOf);
    this.opening.end(errorOf);
    this.inbox.end(errorOf);
    for (const grant of [...this.grants]) grant.revoke();
    this.area.close();
    while (this.closing.serve());
    this.settleClosed?.(end);
    this.settleClosed = undefined;
  }

  /** Ends it immediately, unless it has ended. */
  private closeNow(how?: string): void {
    if (this.state !== 'ended') this.finish(closedHere(this.ep, how));
  }

  private get isOver(): boolean {
    return this.state === 'ended';
  }

  private dropMessages(): void {
    for (const message of this.inbox.drop()) message.drop();
  }

  private leaveWhenSent(): void {
    if (this.requests.queued === 0 && this.ep.state === 'CONNECTED') this.ep.disconnect('graceful');
  }

  private postReceive(segment: LmrSegment, slot: number): void {
    if (this.state !== 'ended') this.ep.postRecv(segment, slot);
  }

  /** Posts any request, or queues it. */
  private sendLater(operation: string, data: Data, options: SendOptions): Promise<void> {
    const { immediate } = options;
    const post = (cookie: number): OwnMemory | undefined =>
      this.postSend(operation, cookie, data, immediate);
    return this.requests.post(operation, post, options);
  }

  /** As `posting`, for the path of every message: creates no function. */
  private postSend(
    operation: string,
    cookie: number,
    data: Data,
    immediate: number | undefined,
  ): OwnMemory | undefined {
    const memory = ownMemory(operation, this.space, this.plan.bufferBytes, data, true);
    const segments = memory === undefined ? NOTHING : memory.segments;
    this.sizes.set(cookie, sizeOf(data));
    try {
      if (immediate === undefined) this.ep.postSend(segments, cookie);
      else this.ep.postSendWithImmediate(segments, cookie, immediate);
    } catch (error) {
      memory?.release(false);
      throw error;
    }
    return memory;
  }

  /** Posts, and keeps details for a later error. If it throws, the memory is given back. */
  private posting(
    cookie: number,
    memory: OwnMemory | undefined,
    lengthBytes: number,
    post: (segments: LmrSegment | readonly LmrSegment[]) => void,
  ): OwnMemory | undefined {
    this.sizes.set(cookie, lengthBytes);
    try {
      post(memory === undefined ? NOTHING : memory.segments);
    } catch (error) {
      memory?.release(false);
      throw error;
    }
    return memory;
  }

  private atomic(
    operation: string,
    remote: Remote | RemoteSegment,
    operands: Readonly<Record<string, bigint>>,
    options: TransferOptions,
    post: (result: LmrSegment, cookie: number, target: RemoteSegment) => void,
  ): Promise<bigint> {
    const result = new Uint8Array(ATOMIC_BYTES);
    try {
      this.checkTransfer(operation, result, options, TRANSFER_NAMES);
      for (const [name, value] of Object.entries(operands)) {
        checkValue(name, value, U64, refusalOf(operation));
      }
      const target = targetOf(operation, remote, options.offset ?? 0, ATOMIC_BYTES);
      const begin = (cookie: number): OwnMemory | undefined => {
        const memory = ownMemory(operation, this.space, this.plan.bufferBytes, result, false);
        const held = new CopyBack(memory as OwnMemory, result);
        return this.posting(cookie, held, ATOMIC_BYTES, () => post(held.segments, cookie, target));
      };
      // The device writes the old value in the byte order of this machine.
      const old = (): bigint => new BigUint64Array(result.buffer)[0] as bigint;
      return this.requests.post(operation, begin, options).then(old);
    } catch (error) {
      return rejection(operation, error);
    }
  }

  private checkTransfer(
    operation: string,
    data: Data,
    options: SendOptions & TransferOptions,
    names: readonly string[],
  ): void {
    this.checkOpen(operation);
    checkTransfer(operation, data, options, names);
  }

  private checkLength(operation: string, lengthBytes: number): void {
    const { maxMessageBytes } = this.plan;
    if (lengthBytes <= maxMessageBytes) return;
    throw new FlowError('DAT_LENGTH_ERROR', {
      operation,
      message: `a message of ${lengthBytes} bytes: maxMessageBytes is ${maxMessageBytes}`,
      value: lengthBytes,
    });
  }

  private checkOpen(operation: string): void {
    if (this.state === 'open') return;
    throw (this.errorOf ?? errorOfEnd(closedHere(this.ep)))(operation);
  }

  /** Warns a consumer that has not released its messages, and would wait for ever. */
  private warnOfHeld(): void {
    if (this.hasWarned) return;
    this.hasWarned = true;
    const { logger } = this.ia.core.context;
    logger.warn(`connection of endpoint ${this.ep.id}: ${HELD}`, { buffers: this.plan.buffers });
  }
}

const HELD = 'every receive buffer is in a message that has not been released: message.release()';
