/** `datagrams`: unreliable datagrams with promises. A datagram arrives whole or not at all. */
import { Ia } from '../dat/ia/ia.js';
import { Pz } from '../dat/memory/pz.js';
import { type UdAddress, UdAddressHandle } from '../dat/datagram/address.js';
import type { UdEpAttributes } from '../dat/datagram/attributes.js';
import { UdEp } from '../dat/datagram/endpoint.js';
import type { ServeOptions, UdService } from '../dat/datagram/service.js';
import type { LmrSegment } from '../dat/memory/segment.js';
import { type DatagramEvent, DatDto, DatDtoStatus, type Evd } from '../evd/index.js';
import {
  ANYTHING,
  BOOLEAN,
  BYTES,
  checkNames,
  checkValue,
  checkValues,
  instanceOf,
  integer,
  type Kinds,
  OBJECT,
  oneOf,
  optional,
  record,
  showAs,
} from '../spi/checks/index.js';
import { leaveUnhandled } from '../spi/index.js';
import { FlowError, flowCall, refusalOf, rejection, toFlowError } from './flow-error.js';
import { Inbox, iterate } from './inbox.js';
import { Message } from './message.js';
import { PORT } from './options.js';
import { areaBytes, areaOf, ReceiveArea } from './receive-area.js';
import { Requests } from './requests.js';
import { Space } from './space.js';
import { type OwnMemory, ownMemory } from './staging.js';
import { checkTransfer, type Data, SEND_NAMES, type SendOptions, sizeOf } from './transfer.js';
import { checkWait, type EndError, NO_OPTIONS, type WaitOptions, WAIT_KINDS } from './wait.js';

/** Options of `datagrams`. */
export interface DatagramOptions {
  /** The zone of its endpoint and buffers; default one that all of the adapter share. */
  readonly pz?: Pz;
  readonly receives?: {
    /** Received datagrams that may be queued, 1 to 65535; further ones are lost. Default 64. */
    readonly buffers?: number;
    /** The longest datagram that can be received; default, and at most, the MTU of the device. */
    readonly bufferBytes?: number;
    /** As of a connection. */
    readonly lend?: boolean;
  };
  /** Datagrams posted at a time, 1 to 65535; more are queued. Default 32. */
  readonly requests?: number;
  /** As of a connection. */
  readonly polling?: 'event' | 'adaptive';
  /** Attributes of the endpoint beneath, in place of those derived from the other options. */
  readonly attributes?: Partial<UdEpAttributes>;
}

/** Options of `datagrams.resolve`. */
export interface ResolveDatagramOptions extends WaitOptions {
  /** IP address of the peer, as text. */
  readonly address: string;
  /** Port of rdma_cm's UDP port space, 1 to 65535. */
  readonly port: number;
  /** At most 180 bytes, for the service to read. */
  readonly privateData?: Uint8Array;
}

/** Options of `datagrams.serve`; `answer` and `backlog` are those of `ep.serve`. */
export type ServeDatagramOptions = Omit<ServeOptions, 'connQual'> & { readonly port: number };

const IA = instanceOf(Ia, 'an Ia, from openIa()');
const QUEUE = integer(1, 65535);
const DEFAULTS = { buffers: 64, requests: 32 } as const;
/** Address handles kept for peers, for later datagrams. */
const MOST_HANDLES = 256;
const RESOLVE: Kinds<ResolveDatagramOptions> = {
  ...WAIT_KINDS,
  address: ANYTHING,
  port: PORT,
  privateData: optional(BYTES),
};

const OPTIONS: Kinds<DatagramOptions> = {
  pz: optional(instanceOf(Pz, 'a Pz')),
  receives: optional(
    record({
      buffers: optional(QUEUE),
      bufferBytes: optional(integer(1, 65535)),
      lend: optional(BOOLEAN),
    }),
  ),
  requests: optional(QUEUE),
  polling: optional(oneOf(['event', 'adaptive'])),
  attributes: optional(OBJECT),
};

/** A received datagram. */
export class Datagram extends Message {
  /** @internal */
  constructor(
    area: ReceiveArea,
    slot: number,
    lengthBytes: number,
    immediate: number | undefined,
    /** The sender: `datagrams.send(bytes, datagram.source)` answers it. */
    readonly source: UdAddress,
  ) {
    super(area, slot, lengthBytes, immediate, undefined, undefined);
  }
}

/** Made by `datagrams`. It keeps the process alive until it is closed, unless `unref()`. */
export class Datagrams implements AsyncIterable<Datagram> {
  static {
    showAs(this, 'Datagrams', ({ ep, requests, inbox }) => {
      return { ep, posted: requests.posted, queued: requests.queued, waiting: inbox.size };
    });
  }

  /** The DAT endpoint beneath. Its posts and completions are in use: do not post on it. */
  readonly ep: UdEp;
  private readonly evd: Evd;
  private readonly space: Space;
  private readonly area: ReceiveArea;
  private readonly inbox: Inbox<Datagram>;
  private readonly requests: Requests<void>;
  private readonly bufferBytes: number;
  private readonly handles = new Map<string, UdAddressHandle>();
  private errorOf: EndError | undefined = undefined;
  private closedPromise: Promise<void> | undefined = undefined;
  private settleClosed: (() => void) | undefined = undefined;

  /** @internal @throws FlowError */
  constructor(
    readonly ia: Ia,
    options: DatagramOptions,
  ) {
    const operation = 'datagrams';
    const refuse = refusalOf(operation);
    checkNames(options, Object.keys(OPTIONS), refuse);
    checkValues(options, OPTIONS, refuse);
    const { receives = {}, requests = DEFAULTS.requests, polling = 'adaptive' } = options;
    const { buffers = DEFAULTS.buffers, lend = false } = receives;
    const host = ia.core.context;
    const mtuBytes = host.device.attributes.activeMtuBytes;
    const { bufferBytes = mtuBytes } = receives;
    this.bufferBytes = mtuBytes;
    this.requests = new Requests(host, requests);
    this.inbox = new Inbox<Datagram>(host, (datagram) => datagram.handOver(lend));
    const space = Space.join(operation, ia, options.pz);
    this.space = space;
    const undo = [(): void => space.leave()];
    try {
      const { pz } = space;
      const slotBytes = UdEp.GRH_BYTES + bufferBytes;
      this.area = new ReceiveArea(areaOf(operation, space, areaBytes(buffers, slotBytes)), {
        ...{ buffers, bufferBytes: slotBytes, skipBytes: UdEp.GRH_BYTES },
        post: (segment, slot) => this.postReceive(segment, slot),
        onEmpty: () => space.leave(),
      });
      undo[0] = () => this.area.close();
      const handler = (): void => this.drain();
      const evd = ia.createEvd({ qlen: buffers + requests, polling, policy: 'NOTIFY', handler });
      this.evd = evd;
      undo.unshift(() => leaveUnhandled(evd.free()));
      const attributes = {
        maxRecvDtos: buffers,
        maxRequestDtos: requests,
        ...options.attributes,
      };
      this.ep = ia.createUdEndpoint({ pz, recvEvd: evd, requestEvd: evd, attributes });
      undo.unshift(() => this.ep.free());
      this.area.postAll();
    } catch (error) {
      for (const step of undo) step();
      throw toFlowError(operation, error);
    }
    ia.core.closers.add(this.onIaClosing);
  }

  /** Queue pair number: with the address of the adapter, where datagrams for this side go. */
  get qpn(): number {
    return this.ep.qpn;
  }

  /**
   * Settles with the end: resolves when this side or its adapter is closed; rejects with
   * DAT_CONN_BROKEN when the endpoint has failed.
   */
  get closed(): Promise<void> {
    this.closedPromise ??= new Promise((resolve, reject) => {
      const settle = (): void => {
        const error = this.errorOf?.('datagrams.closed');
        if (error === undefined || error.code === 'DAT_CONN_CLOSED') resolve();
        else reject(error);
      };
      if (this.errorOf === undefined) this.settleClosed = settle;
      else settle();
    });
    return this.closedPromise;
  }

  /** Bytes of the longest datagram that can be sent: the MTU of the device. */
  get maxDatagramBytes(): number {
    return this.ep.maxDatagramBytes;
  }

  /**
   * Sends a datagram; resolves when it has been sent, which does not mean that it arrives.
   * @param data bytes, which must stay as they are until then; or a segment of `ep.pz`
   * @param to a handle of `resolve`, the source of a datagram, or address and queue pair number
   * @throws FlowError, as a rejection: DAT_LENGTH_ERROR for more than `maxDatagramBytes`;
   * DAT_INVALID_ADDRESS, DAT_INVALID_HANDLE, DAT_INVALID_PARAMETER; DAT_TIMEOUT_EXPIRED,
   * DAT_INTERRUPTED_CALL; DAT_CONN_CLOSED
   */
  send(
    data: Data,
    to: UdAddressHandle | UdAddress,
    options: SendOptions = NO_OPTIONS,
  ): Promise<void> {
    const operation = 'datagrams.send';
    try {
      this.checkOpen(operation);
      checkTransfer(operation, data, options, SEND_NAMES);
      const { immediate } = options;
      this.checkLength(operation, sizeOf(data));
      const handle = to instanceof UdAddressHandle ? to : this.handleOf(operation, to);
      return this.requests.post(
        operation,
        (cookie) => this.post(operation, data, handle, cookie, immediate),
        options,
      );
    } catch (error) {
      return rejection(operation, error);
    }
  }

  /**
   * The oldest datagram that has not been taken, or the next.
   * @throws FlowError, as a rejection: DAT_TIMEOUT_EXPIRED, DAT_INTERRUPTED_CALL, without losing a
   * datagram; DAT_CONN_CLOSED
   */
  receive(options: WaitOptions = NO_OPTIONS): Promise<Datagram> {
    const operation = 'datagrams.receive';
    try {
      checkWait(operation, options);
      return this.inbox.take(operation, options);
    } catch (error) {
      return rejection(operation, error);
    }
  }

  /** Datagrams, until this side closes. */
  [Symbol.asyncIterator](): AsyncIterableIterator<Datagram> {
    return iterate(
      () => this.receive(),
      () => this.errorOf?.('datagrams').code === 'DAT_CONN_CLOSED',
    );
  }

  /**
   * Asks a peer where its service is (SIDR).
   * @throws FlowError, as a rejection: DAT_CONN_QUAL_UNAVAILABLE when the peer refuses,
   * DAT_INVALID_ADDRESS when it does not answer; DAT_TIMEOUT_EXPIRED, DAT_INTERRUPTED_CALL;
   * DAT_INVALID_PARAMETER, DAT_MODEL_NOT_SUPPORTED; DAT_CONN_CLOSED
   */
  async resolve(options: ResolveDatagramOptions): Promise<UdAddressHandle> {
    const operation = 'datagrams.resolve';
    this.checkOpen(operation);
    checkWait(operation, options, Object.keys(RESOLVE));
    checkValues(options, RESOLVE, refusalOf(operation));
    const { address, port: connQual, signal, timeoutMs, privateData } = options;
    try {
      return await this.ep.resolve({
        ...{ address, connQual },
        ...(signal !== undefined && { signal }),
        ...(timeoutMs !== undefined && { timeoutMs }),
        ...(privateData !== undefined && { privateData }),
      });
    } catch (error) {
      throw toFlowError(operation, error);
    }
  }

  /**
   * Serves a port: peers that resolve it get the address of this endpoint.
   * @throws FlowError DAT_CONN_QUAL_IN_USE, DAT_INVALID_PARAMETER, DAT_MODEL_NOT_SUPPORTED
   */
  serve(options: ServeDatagramOptions): UdService {
    const operation = 'datagrams.serve';
    this.checkOpen(operation);
    checkValue('options', options, OBJECT, refusalOf(operation));
    const { port: connQual, ...rest } = options;
    checkValue('port', connQual, PORT, refusalOf(operation));
    return flowCall(operation, () => this.ep.serve({ connQual, ...rest }));
  }

  /** Ends it immediately: pending calls end with DAT_CONN_CLOSED. Again: no-op. */
  async close(): Promise<void> {
    this.end('DAT_CONN_CLOSED', 'this side has closed it');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Keeps the process alive while it is open: the default. */
  ref(): this {
    this.evd.ref();
    return this;
  }

  /** Lets the process exit while it is open, as `unref` of node:net. */
  unref(): this {
    this.evd.unref();
    return this;
  }

  private readonly onIaClosing = (): void =>
    this.end('DAT_CONN_CLOSED', 'the interface adapter has been closed');

  private drain(): void {
    while (this.errorOf === undefined) {
      const event = this.evd.dequeue();
      if (event === undefined) return;
      if (event.type === 'datagram') this.onDatagram(event);
    }
  }

  private onDatagram(event: DatagramEvent): void {
    const { cookie, operation, status, source, immediate } = event;
    const succeeded = status === DatDtoStatus.SUCCESS;
    if (status === DatDtoStatus.FLUSHED) {
      this.end('DAT_CONN_BROKEN', 'the endpoint has failed, or its device');
    } else if (operation === DatDto.SEND_UD) {
      if (succeeded) this.requests.complete(cookie, undefined);
      else this.requests.fail(cookie, failed('datagrams.send'));
    } else if (succeeded && source !== undefined) {
      const lengthBytes = event.transferredLength - UdEp.GRH_BYTES;
      this.area.take();
      this.inbox.put(new Datagram(this.area, cookie, lengthBytes, immediate, source));
    }
  }

  private end(code: 'DAT_CONN_CLOSED' | 'DAT_CONN_BROKEN', message: string): void {
    if (code === 'DAT_CONN_CLOSED') for (const datagram of this.inbox.drop()) datagram.drop();
    if (this.errorOf !== undefined) return;
    const errorOf = (operation: string): FlowError => new FlowError(code, { operation, message });
    this.errorOf = errorOf;
    this.ia.core.closers.delete(this.onIaClosing);
    this.ep.free();
    leaveUnhandled(this.evd.free());
    this.requests.end(errorOf);
    this.inbox.end(errorOf);
    this.handles.clear();
    this.area.close();
    this.settleClosed?.();
    this.settleClosed = undefined;
  }

  private postReceive(segment: LmrSegment, slot: number): void {
    if (this.errorOf === undefined) this.ep.postRecv(segment, slot);
  }

  private post(
    operation: string,
    data: Data,
    to: UdAddressHandle,
    cookie: number,
    immediate: number | undefined,
  ): OwnMemory | undefined {
    const memory = ownMemory(operation, this.space, this.bufferBytes, data, true);
    const segments = memory?.segments ?? [];
    try {
      if (immediate === undefined) this.ep.postSendUd(segments, to, cookie);
      else this.ep.postSendUdWithImmediate(segments, to, cookie, immediate);
    } catch (error) {
      memory?.release(false);
      throw error;
    }
    return memory;
  }

  /** Creates an address handle for a peer once, and keeps it for later datagrams. */
  private handleOf(operation: string, to: UdAddress): UdAddressHandle {
    checkValue('to', to, OBJECT, refusalOf(operation));
    const key = `${to.address} ${to.qpn} ${to.qkey ?? ''}`;
    const known = this.handles.get(key);
    if (known !== undefined && !known.isFreed) return known;
    const handle = flowCall(operation, () => this.ep.createAddressHandle(to));
    if (this.handles.size >= MOST_HANDLES) this.forgetOldest();
    this.handles.set(key, handle);
    return handle;
  }

  /**
   * Forgets an old handle. Datagrams posted to it are still sent; while any are queued, all are
   * kept.
   */
  private forgetOldest(): void {
    if (this.requests.queued > 0) return;
    for (const [key, handle] of this.handles) {
      this.handles.delete(key);
      handle.free();
      return;
    }
  }

  private checkLength(operation: string, lengthBytes: number): void {
    const { maxDatagramBytes } = this;
    if (lengthBytes <= maxDatagramBytes) return;
    throw new FlowError('DAT_LENGTH_ERROR', {
      operation,
      message: `a datagram of ${lengthBytes} bytes: maxDatagramBytes is ${maxDatagramBytes}`,
      value: lengthBytes,
    });
  }

  private checkOpen(operation: string): void {
    if (this.errorOf !== undefined) throw this.errorOf(operation);
  }
}

function failed(operation: string): FlowError {
  return new FlowError('DAT_INTERNAL_ERROR', { operation, message: 'the datagram has not left' });
}

/**
 * Opens an endpoint for datagrams.
 * @throws FlowError, as a rejection: DAT_MODEL_NOT_SUPPORTED where the device has none;
 * DAT_INVALID_PARAMETER; as `ia.createUdEndpoint` and `ia.allocate`
 */
export const datagrams = async (ia: Ia, options: DatagramOptions = {}): Promise<Datagrams> => {
  checkValue('ia', ia, IA, refusalOf('datagrams'));
  return new Datagrams(ia, options);
};
