/**
 * iSER: a target's connection on an endpoint (RFC 7145). Control PDUs are SENDs; data of a read is
 * written into the initiator's memory, data of a write is read from there.
 */
import {
  CompletionFlags,
  type ConnectionEvent,
  type Cr,
  DatDto,
  DatDtoStatus,
  type DatEvent,
  DatEventNumber,
  type Ep,
  type Evd,
  type Ia,
  type Lmr,
  type LmrSegment,
  nameOf,
} from 'dapl';
import type { Lease } from 'dapl/flow';
import { leaveUnhandled } from 'dapl/spi';
import {
  type AdvertisedBuffer,
  type AdvertisedBuffers,
  type Datamover,
  type Header,
  type SetAlarm,
  StallWatch,
  TargetConnection,
  type TargetNode,
  type TransferTask,
} from '../../session/target-side/index.js';
import {
  BHS_BYTES,
  INITIATOR_OPCODE,
  ISER_HEADER_BYTES,
  iserHeader,
  type IserHeader,
  iserHelloReply,
  pduLengths,
  readIserMessage,
  WireError,
} from '../../wire/index.js';
import { allOrNone } from '../all-or-none.js';
import { EventDrain } from './event-drain.js';
import { COPIED_BYTES, type RegisteredMemory, SEND_BYTES } from './registered-memory.js';

// The requests of one endpoint, in the order of their posting, which is the order of their
// completion: what is to happen when each has completed. A success that nothing waits for is not
// told by the device (SUPPRESS), but by a later one.

/** Called at the end of a request; `error` is the reason that it failed. */
type Completed = (error?: Error) => void;
/** Posts with this cookie. @param isTold true to signal a success */
type PostRequest = (cookie: number, isTold: boolean) => void;

interface Waiting {
  readonly post: PostRequest;
  readonly completed: Completed;
  readonly isAwaited: boolean;
}

/** One in this many requests is signalled, if nothing waits for them. */
const EACH = 8;

export class PostedRequests {
  /** Requests by cookie modulo their number. */
  private readonly slots: (Completed | undefined)[];
  private readonly waiting: Waiting[] = [];
  /** Free-running counts: requests posted, known to be complete, and the last signalled one. */
  private posted = 0;
  private done = 0;
  private lastTold = 0;
  private ended: Error | undefined = undefined;

  /**
   * @param limit requests in flight, at least 16; more wait, in order
   * @param onPost called before each request
   */
  constructor(
    readonly limit: number,
    private readonly onPost: () => void = () => {},
  ) {
    this.slots = new Array<Completed | undefined>(limit).fill(undefined);
  }

  /** True if no completion is outstanding and nothing waits. */
  get isIdle(): boolean {
    return this.done >= this.lastTold && this.waiting.length === 0;
  }

  /**
   * Posts a request, now or after those that wait. `completed` is called once, and never from
   * within.
   * @param isAwaited true to report its success at once; otherwise with a later one, or at the end
   */
  post(post: PostRequest, completed: Completed, isAwaited: boolean): void {
    if (this.ended !== undefined) {
      const why = this.ended;
      queueMicrotask(() => completed(why));
    } else if (this.waiting.length > 0 || this.isFull) {
      this.waiting.push({ post, completed, isAwaited });
    } else this.begin(post, completed, isAwaited);
  }

  /**
   * A request has completed, and with it all earlier ones. @param error the reason that it failed
   */
  complete(cookie: number, error?: Error): void {
    while (this.done < cookie) this.settle();
    if (this.done === cookie) this.settle(error);
    while (this.ended === undefined && !this.isFull) {
      const next = this.waiting.shift();
      if (next === undefined) return;
      this.begin(next.post, next.completed, next.isAwaited);
    }
  }

  /** Ends all requests: the queue pair is gone. */
  end(why: Error): void {
    this.ended ??= why;
    while (this.done < this.posted) this.settle(why);
    for (const { completed } of this.waiting.splice(0)) completed(why);
  }

  private get isFull(): boolean {
    return this.posted - this.done >= this.limit;
  }

  private settle(error?: Error): void {
    const at = this.done++ % this.limit;
    const completed = this.slots[at];
    this.slots[at] = undefined;
    completed?.(error);
  }

  private begin(post: PostRequest, completed: Completed, isAwaited: boolean): void {
    this.onPost();
    const cookie = this.posted;
    const isTold = isAwaited || cookie + 1 - this.lastTold >= EACH;
    try {
      post(cookie, isTold);
    } catch (error) {
      // The connection has ended; its event follows.
      queueMicrotask(() => completed(error as Error));
      return;
    }
    this.slots[cookie % this.limit] = completed;
    this.posted++;
    if (isTold) this.lastTold = this.posted;
  }
}

export interface IserMoverParts {
  readonly target: TargetNode;
  readonly ia: Ia;
  readonly memory: RegisteredMemory;
  readonly alarm: SetAlarm;
  readonly portal: string;
  /** The initiator's name in messages. */
  readonly peer: string;
  /** Receives to post: for commands in the window, and other PDUs. */
  readonly receives: number;
  /** True if the initiator supports SEND with invalidate. */
  readonly takesInvalidate: boolean;
}

const { DEFAULT, SUPPRESS } = CompletionFlags;
const RECEIVE_BYTES = SEND_BYTES;
const REQUESTS = 256;
const CONNECTION_EVENTS = 4;
/** Time for the data that was sent before the end. */
const LINGER_MS = 1000;
/** Silence after which the initiator is probed. */
const KEEP_ALIVE_MS = 5000;
const HIGHEST_ADDRESS = 2n ** 64n;
const RECEIVES: ReadonlySet<number> = new Set([
  DatDto.RECEIVE,
  DatDto.RECEIVE_WITH_INVALIDATE,
  DatDto.RECV_MSG_IMMED,
]);

export class IserMover implements Datamover {
  readonly connection: TargetConnection;
  /** Resolves when the endpoint and its memory are freed. */
  readonly freed: Promise<void>;
  private readonly evd: Evd;
  private readonly ep: Ep;
  private readonly drain: EventDrain;
  private readonly requests = new PostedRequests(REQUESTS, () => this.watch.begin());
  private readonly watch: StallWatch;
  private readonly area: Lmr;
  private readonly receives: LmrSegment[];
  private readonly maxRdmaBytes: number;
  private hasEnded = false;
  private isTerminating = false;
  private cancelLinger: (() => void) | undefined = undefined;
  private resolveFreed: () => void = () => undefined;

  /** Prepares an endpoint; `accept` connects it. @throws DatError */
  constructor(private readonly parts: IserMoverParts) {
    const { ia, memory, receives, target, alarm, portal } = parts;
    const { pz } = memory;
    this.freed = new Promise((resolve) => (this.resolveFreed = resolve));
    const attributes = {
      maxRecvDtos: receives,
      maxRequestDtos: REQUESTS,
      keepAliveMs: KEEP_ALIVE_MS,
      transport: { rnrRetryCount: FOR_EVER },
    };
    [this.evd, this.ep, this.area] = allOrNone((keep) => {
      const evd = keep(ia.createEvd({ qlen: receives + REQUESTS + CONNECTION_EVENTS }));
      const evds = { recvEvd: evd, requestEvd: evd, connectEvd: evd };
      const ep = keep(ia.createEndpoint({ pz, ...evds, attributes }));
      return [evd, ep, ia.allocate(receives * RECEIVE_BYTES, { pz })];
    });
    this.maxRdmaBytes = ia.query().ia.maxRdmaSize;
    this.receives = Array.from({ length: receives }, (_, at) =>
      this.area.segment(at * RECEIVE_BYTES, RECEIVE_BYTES),
    );
    for (const [at, segment] of this.receives.entries()) this.ep.postRecv(segment, at);
    this.drain = new EventDrain(
      this.evd,
      (event) => this.take(event),
      queueMicrotask,
      ({ operations, statuses, cookies, lengths }, at) =>
        this.takeCompletion(operations[at]!, statuses[at]!, cookies[at]!, lengths[at]!),
    );
    const how = { isRdma: true, portal, peer: parts.peer };
    this.connection = new TargetConnection({ target, mover: this, alarm, ...how });
    this.watch = new StallWatch({
      alarm,
      timeoutMs: target.options.transferTimeoutMs,
      isPending: () => !this.requests.isIdle,
      stalled: () => {
        this.connection.stalled();
        // It would not take the rest either, so do not wait.
        this.end('the session has ended');
      },
    });
    this.ep.state$.subscribe({ complete: () => this.end('its adapter has been closed') });
    target.enter(this.connection);
  }

  /** @throws DatError if the request cannot be accepted any more */
  accept(request: Cr, privateData: Uint8Array): void {
    request.accept(this.ep, { privateData });
    this.drain.start();
  }

  /** The connection was not established. */
  abandon(reason: string): void {
    this.end(reason);
  }

  // Datamover

  sendControl(header: Header, data: Uint8Array, task?: TransferTask): void {
    const lease = this.parts.memory.sends.tryTake();
    if (lease === undefined) return this.connection.close('no memory to send from');
    const lengthBytes = ISER_HEADER_BYTES + BHS_BYTES + data.length;
    const { bytes } = lease;
    iserHeader.emit({}, bytes);
    bytes.set(header, ISER_HEADER_BYTES);
    bytes.set(data, ISER_HEADER_BYTES + BHS_BYTES);
    const segment = lease.segment(lengthBytes);
    // Whatever ends a session is told of: `terminate` waits for it.
    this.postSend(segment, lease, this.stagOf(task), task === undefined);
  }

  async putData(task: TransferTask, offset: number, from: Uint8Array): Promise<void> {
    if (from.length === 0) return;
    const buffer = this.opened(task, task.advertised?.read, 'to read into');
    const remote = this.remote(buffer, offset, from.length);
    const { memory } = this.parts;
    if (from.length <= COPIED_BYTES) {
      const lease = memory.copies.tryTake();
      if (lease !== undefined) {
        lease.bytes.set(from);
        const segment = lease.segment(from.length);
        this.write(segment, remote, () => lease.release(), false);
        return;
      }
    }
    const segment = memory.find(from);
    if (segment === undefined) throw new RangeError('data-in is not in registered memory');
    await new Promise<void>((resolve, reject) => {
      this.write(segment, remote, (error) => (error ? reject(error) : resolve()), true);
    });
  }

  async getData(task: TransferTask, offset: number, into: Uint8Array): Promise<void> {
    const { signal } = task;
    signal.throwIfAborted();
    const buffer = this.opened(task, task.advertised?.write, 'to write from');
    const remote = this.remote(buffer, offset - task.unsolicitedBytes, into.length);
    const segment = this.parts.memory.find(into);
    if (segment === undefined) throw new RangeError('data-out is not in registered memory');
    // The device may write `into` until the request has completed, also when the task is aborted.
    await new Promise<void>((resolve, reject) => {
      const done: Completed = (error) => (error ? reject(error) : resolve());
      this.inPieces(segment, remote, done, (part, from, completed, isAwaited) =>
        this.requests.post(
          (cookie, isTold) => this.ep.postRdmaRead(part, cookie, from, flagsOf(isTold)),
          completed,
          isAwaited,
        ),
      );
    });
    signal.throwIfAborted();
  }

  enable(): void {
    // Receives are as long in login as later, and data goes by itself.
  }

  limitSegments(): void {
    // Over iSER the limits of login hold for the session.
  }

  terminate(): void {
    if (this.isTerminating || this.hasEnded) return;
    this.isTerminating = true;
    this.cancelLinger = this.parts.alarm(LINGER_MS, () => this.end('the session has ended'));
    this.leaveWhenSent();
  }

  // Events

  private take(event: DatEvent): void {
    if (event.type === 'dto') {
      const { operation, status, cookie, transferredLength } = event;
      this.takeCompletion(operation, status, cookie, transferredLength);
    } else if (event.type === 'connection') this.takeConnectionEvent(event);
  }

  private takeConnectionEvent({ number, reason }: ConnectionEvent): void {
    if (number === DatEventNumber.ESTABLISHED) return;
    this.end(reason ?? `the connection is over: ${nameOf(DatEventNumber, number)}`);
  }

  private takeCompletion(
    operation: number,
    status: number,
    cookie: number,
    lengthBytes: number,
  ): void {
    const isGood = status === DatDtoStatus.SUCCESS;
    if (RECEIVES.has(operation)) {
      // The event with the reason follows.
      if (isGood) this.takeMessage(cookie, lengthBytes);
      return;
    }
    const error = isGood
      ? undefined
      : new Error(`a transfer failed: ${nameOf(DatDtoStatus, status)}`);
    this.watch.moved();
    // Tasks are aborted before their transfers reject: a lost initiator is no mistake of ours.
    if (error !== undefined) this.connection.transportEnded(error.message);
    this.requests.complete(cookie, error);
    if (this.isTerminating) this.leaveWhenSent();
  }

  private takeMessage(place: number, lengthBytes: number): void {
    const segment = this.receives[place] as LmrSegment;
    const bytes = segment.bytes.subarray(0, lengthBytes);
    if (!this.isTerminating) this.dealWith(bytes);
    if (!this.hasEnded && this.ep.state === 'CONNECTED') this.ep.postRecv(segment, place);
  }

  private dealWith(bytes: Uint8Array): void {
    try {
      const message = readIserMessage(bytes);
      if (message.type === 'hello') return this.answerHello();
      if (message.type === 'helloReply') {
        throw new WireError('opcode', 'iSER opcode', 3, '1 or 2 from an initiator');
      }
      const { header, pdu } = message;
      forgetAbsentData(pdu, header);
      this.connection.receive(pdu, advertisedIn(header));
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      this.connection.receiveFault(error, bytes.subarray(ISER_HEADER_BYTES));
      this.connection.close(error.message);
    }
  }

  /**
   * Answers a Hello. No known initiator sends one; one that does can continue (RFC 7145, 5.1.1).
   */
  private answerHello(): void {
    const lease = this.parts.memory.sends.tryTake();
    if (lease === undefined) return;
    iserHelloReply.emit({ ord: this.ep.query().attributes.maxRdmaReadOut }, lease.bytes);
    this.postSend(lease.segment(ISER_HEADER_BYTES), lease, undefined, true);
  }

  // Requests

  private postSend(
    segment: LmrSegment,
    lease: Lease,
    stag: number | undefined,
    isAwaited: boolean,
  ): void {
    const { ep } = this;
    this.requests.post(
      (cookie, isTold) => {
        const flags = flagsOf(isTold);
        if (stag === undefined) ep.postSend(segment, cookie, flags);
        else ep.postSendWithInvalidate(segment, cookie, stag, flags);
      },
      () => lease.release(),
      isAwaited,
    );
  }

  private write(
    segment: LmrSegment,
    remote: Remote,
    completed: Completed,
    isAwaited: boolean,
  ): void {
    this.inPieces(segment, remote, completed, (part, to, done, isLast) =>
      this.requests.post(
        (cookie, isTold) => this.ep.postRdmaWrite(part, cookie, to, flagsOf(isTold)),
        done,
        isAwaited && isLast,
      ),
    );
  }

  /**
   * Posts a transfer in pieces that the device can move. Requests complete in order, and a failure
   * ends the connection: so the last piece reports for all.
   */
  private inPieces(
    segment: LmrSegment,
    remote: Remote,
    completed: Completed,
    post: (segment: LmrSegment, remote: Remote, completed: Completed, isLast: boolean) => void,
  ): void {
    const { lmr, offsetBytes, lengthBytes } = segment;
    const { maxRdmaBytes } = this;
    if (lengthBytes <= maxRdmaBytes) return post(segment, remote, completed, true);
    for (let at = 0; at < lengthBytes; at += maxRdmaBytes) {
      const isLast = at + maxRdmaBytes >= lengthBytes;
      const part = lmr.segment(offsetBytes + at, Math.min(maxRdmaBytes, lengthBytes - at));
      const there = { ...remote, address: remote.address + BigInt(at) };
      post(part, there, isLast ? completed : () => undefined, isLast);
    }
  }

  /** STag to invalidate with the response to this command: its read STag, else its write STag. */
  private stagOf(task: TransferTask | undefined): number | undefined {
    if (!this.parts.takesInvalidate || task?.advertised === undefined) return undefined;
    const { read, write } = task.advertised;
    return (read ?? write)?.stag;
  }

  private opened(
    task: TransferTask,
    buffer: AdvertisedBuffer | undefined,
    what: string,
  ): AdvertisedBuffer {
    if (buffer !== undefined) return buffer;
    const why = `task ${task.initiatorTaskTag} opens no memory ${what}`;
    this.connection.close(why);
    throw new Error(why);
  }

  private remote({ base, stag }: AdvertisedBuffer, offset: number, lengthBytes: number): Remote {
    const address = base + BigInt(offset);
    if (address + BigInt(lengthBytes) > HIGHEST_ADDRESS) {
      const why = `memory at ${base} has less than ${offset + lengthBytes} bytes`;
      this.connection.close(why);
      throw new Error(why);
    }
    return { address, rmrContext: stag };
  }

  // The end

  /** Disconnects when nothing that was sent is in flight any more. */
  private leaveWhenSent(): void {
    if (this.hasEnded || !this.requests.isIdle) return;
    if (this.ep.state === 'CONNECTED') this.ep.disconnect('graceful');
    else if (this.ep.state !== 'DISCONNECT_PENDING') this.end('the session has ended');
  }

  private end(reason: string): void {
    if (this.hasEnded) return;
    this.hasEnded = true;
    this.cancelLinger?.();
    leaveUnhandled(this.free(reason));
  }

  /**
   * Frees everything, at logout or when the connection is lost: no more upcalls, then posted
   * requests are flushed, and only then is the memory freed.
   */
  private async free(reason: string): Promise<void> {
    const { ep, evd, area, requests } = this;
    // An adapter that is closed has freed them.
    await this.drain.tearDown();
    ep[Symbol.dispose]();
    this.watch.stop();
    this.connection.transportEnded(reason);
    requests.end(new Error(reason));
    await this.connection.ended;
    await evd[Symbol.asyncDispose]();
    area[Symbol.dispose]();
    this.resolveFreed();
  }
}

/**
 * RNR retries without limit: receives are posted before an initiator may send, so a missing one
 * comes soon.
 */
const FOR_EVER = 7;

function flagsOf(isTold: boolean): number {
  return isTold ? DEFAULT : SUPPRESS;
}

interface Remote {
  readonly address: bigint;
  readonly rmrContext: number;
}

function advertisedIn(header: IserHeader): AdvertisedBuffers | undefined {
  const { writeValid, readValid } = header;
  if (!writeValid && !readValid) return undefined;
  return {
    write: writeValid ? { stag: header.writeStag, base: header.writeBase } : undefined,
    read: readValid ? { stag: header.readStag, base: header.readBase } : undefined,
  };
}

/**
 * Handles a bug of libiscsi, which declares immediate data that it does not send, and opens memory
 * for all of it. The data of such a command is fetched like any other.
 */
function forgetAbsentData(pdu: Uint8Array, { writeValid }: IserHeader): void {
  if (pdu.length < BHS_BYTES || ((pdu[0] ?? 0) & 0x3f) !== INITIATOR_OPCODE.SCSI_COMMAND) return;
  const { ahsBytes, dataBytes } = pduLengths(pdu);
  if (writeValid && dataBytes > 0 && pdu.length === BHS_BYTES + ahsBytes) pdu.fill(0, 5, 8);
}
