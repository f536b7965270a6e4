/**
 * Endpoint for unreliable datagrams (an IB extension of DAT). Sends to peers that it has an address
 * handle for, and receives from all peers that have its Q_Key. It has no connection and no
 * connection events. A datagram may be lost; one that arrives is whole.
 */
import { BOOLEAN, hex, type Kinds, optional, showAs } from '../../spi/checks/index.js';
import { DatError, spiCall } from '../../errors/index.js';
import {
  type DatagramEvent,
  type DatEvent,
  type Evd,
  EvdFlags,
  type OverrunListener,
} from '../../evd/index.js';
import {
  type AsyncEventType,
  type Gid,
  GRH_LENGTH,
  type MulticastOptions,
  WrOpcode,
} from '../../spi/index.js';
import type { Observable } from '../../stream/index.js';
import { breakReasonOf, epBrokenEvent, lossReason } from '../common/async-events.js';
import { CompletionFlags, flagNames, MemPrivileges } from '../common/constants.js';
import { checkIp } from '../common/ip-address.js';
import {
  checkAddressHandle,
  type CheckedUdAddress,
  checkUdAddress,
  type UdAddress,
  UdAddressHandle,
} from './address.js';
import { type UdEpAttributes, udEpAttributes } from './attributes.js';
import { UdQueues } from './queues.js';
import { checkResolveOptions, Resolutions, type ResolveOptions } from './resolve.js';
import { type ServeOptions, UdService } from './service.js';
import { checkFields, checkOptions, invalid } from '../../errors/guards.js';
import { begin, checkHandle, Handle } from '../common/handle.js';
import type { AdapterState } from '../common/adapter-state.js';
import { OUT_OF, requireCapability } from '../common/unsupported.js';
import { checkCookie, checkFlags, checkSegments, checkU32, makeRoom } from '../work/post-checks.js';
import { streamOf } from '../common/private-evd.js';
import { Pz } from '../memory/pz.js';
import { LmrSegment, type Segments } from '../memory/segment.js';
import { Symbolic } from '../common/trace.js';
import type { Ia } from '../ia/ia.js';

const { SUPPRESS, SOLICITED_WAIT, DEFAULT } = CompletionFlags;
const SEND_FLAGS = SUPPRESS | SOLICITED_WAIT;
const NONE = new Uint8Array(0);

const MULTICAST_OPTIONS: Kinds<MulticastOptions> = {
  loopback: optional(BOOLEAN),
  sendOnly: optional(BOOLEAN),
};
/** The port in use is the UDP port of all RoCE, not a connection qualifier. */
const GROUP_ERRORS = {
  EADDRINUSE: ['DAT_INVALID_ADDRESS', 'DAT_INVALID_ADDRESS_UNSUPPORTED'],
} as const;

/** Made by `ia.createUdEndpoint()`. */
export class UdEp extends Handle {
  static {
    showAs(this, 'UdEp', ({ id, state, qpn, queues, isFreed: freed }) => {
      return { id, state, qpn: hex(qpn), ...queues.facts(), freed };
    });
  }

  /** Bytes in front of every received datagram: the GRH area (IBTA 11.4.1.2). */
  static readonly GRH_BYTES = GRH_LENGTH;
  /** Queue pair number of datagrams to a multicast group (IBTA 10.5). */
  static readonly MULTICAST_QPN = 0xffffff;
  readonly handleType = 'EP';
  readonly attributes: UdEpAttributes;
  private current: UdEpState = 'READY';
  private queues: UdQueues;
  private readonly uses: (() => void)[] = [];
  private readonly handles = new Set<UdAddressHandle>();
  private readonly services = new Set<UdService>();
  private readonly resolutions: Resolutions;
  /** Multicast groups by the bytes of their addresses, whatever their spelling. */
  private readonly groups = new Map<string, { gid: Gid; options: Required<MulticastOptions> }>();

  /** @internal */
  constructor(
    /** @internal */
    readonly core: AdapterState,
    private readonly init: UdEpInit,
  ) {
    super();
    this.attributes = init.attributes;
    this.resolutions = new Resolutions(core.context.cm, core.context.processHold);
    try {
      this.attach();
      this.queues = this.createQueues();
    } catch (error) {
      this.detach();
      throw error;
    }
    init.pz.users++;
  }

  get ia(): Ia {
    return this.core.ia;
  }

  get state(): UdEpState {
    return this.current;
  }

  get pz(): Pz {
    return this.init.pz;
  }

  /** Queue pair number; another one after each reset. */
  get qpn(): number {
    return this.queues.qp.qpn;
  }

  /** Bytes of the largest datagram: the device's MTU. */
  get maxDatagramBytes(): number {
    return this.core.context.device.attributes.activeMtuBytes;
  }

  /** Sends that can be posted before the queue is full. */
  get requestsFree(): number {
    return this.queues.sends.free;
  }

  /** Receives that can be posted before the queue is full. */
  get receivesFree(): number {
    return this.queues.receives.free;
  }

  /**
   * Asks a peer for the endpoint of a service (SIDR), Linux's rdma_cm services among them.
   * @returns the service's address handle; free it after use
   * @throws DatError, as rejections too: DAT_CONN_QUAL_UNAVAILABLE when the peer refuses (`value`
   * has the SIDR status and its private data), DAT_INVALID_ADDRESS when it does not answer,
   * DAT_TIMEOUT_EXPIRED, DAT_INTERRUPTED_CALL (`signal`), DAT_ABORT (freed meanwhile),
   * DAT_INVALID_PARAMETER, DAT_MODEL_NOT_SUPPORTED
   */
  async resolve(options: ResolveOptions): Promise<UdAddressHandle> {
    const { address, connQual } = options ?? {};
    begin(this, 'ep.resolve', { address, connQual });
    const checked = checkResolveOptions(options);
    const { qpn, qkey, privateData } = await this.resolutions.resolve(checked);
    this.assertLive('ep.resolve');
    return this.addHandle({ gid: checked.remoteGid, address, qpn, qkey }, privateData);
  }

  /**
   * Creates an address handle for a known queue pair: from a datagram's `source`, or out of band.
   * @throws DatError DAT_INVALID_PARAMETER, DAT_INVALID_ADDRESS
   */
  createAddressHandle(to: UdAddress): UdAddressHandle {
    const operation = begin(this, 'ep.createAddressHandle', { address: to?.address, qpn: to?.qpn });
    return this.addHandle(checkUdAddress(operation, to, this.attributes.qkey), NONE);
  }

  /**
   * Receives what is sent to a multicast group too. To send there, make an address handle of the
   * group's address with queue pair number `UdEp.MULTICAST_QPN`. Joining again with equal options
   * is a no-op.
   * @param group IP address of the group, as text: of 224.0.0.0/4 or ff00::/8
   * @param options `loopback: false`: this endpoint does not receive what it sends to the group
   * itself; other members of this host do. `sendOnly: true`: it receives nothing of the group.
   * Defaults: the attribute `multicastLoopback`, false
   * @throws DatError DAT_MODEL_NOT_SUPPORTED when the device has no multicast, or (verbs)
   * `loopback` differs from the attribute `multicastLoopback`; DAT_INVALID_PARAMETER for what is no
   * group, and for other options than those it has joined with; DAT_INVALID_ADDRESS for what is no
   * address, a family that the adapter has no address of, an interface that is gone, and a UDP port
   * that another program shares with none; DAT_INSUFFICIENT_RESOURCES
   */
  joinMulticast(group: string, options: MulticastOptions = {}): void {
    const operation = 'ep.joinMulticast';
    const gid = this.groupOf(operation, group);
    checkFields(operation, options, MULTICAST_OPTIONS);
    const { multicastLoopback } = this.attributes;
    const { loopback = multicastLoopback, sendOnly = false } = options;
    const joined = this.groups.get(String(gid))?.options;
    if (joined !== undefined) {
      if (joined.loopback === loopback && joined.sendOnly === sendOnly) return;
      const expected = `the options it has joined with; call ep.leaveMulticast('${group}') first`;
      throw invalid(operation, 'options', options, expected);
    }
    const wanted = { loopback, sendOnly };
    const map = GROUP_ERRORS;
    spiCall({ operation, value: group, map }, () => this.queues.qp.attachMulticast?.(gid, wanted));
    this.groups.set(String(gid), { gid, options: wanted });
  }

  /** Leaves a group. One that it has not joined: no-op. @throws as `joinMulticast` */
  leaveMulticast(group: string): void {
    const operation = 'ep.leaveMulticast';
    const gid = this.groupOf(operation, group);
    const joined = this.groups.get(String(gid));
    if (!this.groups.delete(String(gid)) || joined?.options.sendOnly === true) return;
    spiCall({ operation, value: group }, () => this.queues.qp.detachMulticast?.(gid));
  }

  /**
   * Serves a connection qualifier: peers that resolve it get this endpoint's numbers.
   * @throws DatError DAT_CONN_QUAL_IN_USE, DAT_INVALID_PARAMETER, DAT_MODEL_NOT_SUPPORTED
   */
  serve(options: ServeOptions): UdService {
    begin(this, 'ep.serve', { connQual: options?.connQual });
    const service = new UdService(this, options, (freed) => this.services.delete(freed));
    this.services.add(service);
    return service;
  }

  /**
   * Posts a datagram (dat_ib_post_send_ud). Completion means that it was sent, not that it arrived.
   * @param segments what to send, at most `maxDatagramBytes` together
   * @param cookie comes back in the event: an integer from 0 to 2^53 - 1
   * @param flags CompletionFlags: SUPPRESS, SOLICITED_WAIT
   * @throws DatError DAT_LENGTH_ERROR, DAT_INVALID_HANDLE (freed address handle or region),
   * DAT_INSUFFICIENT_RESOURCES / DAT_RESOURCE_CREDITS when `maxRequestDtos` are outstanding,
   * DAT_PROTECTION_VIOLATION, DAT_PRIVILEGES_VIOLATION, DAT_INVALID_PARAMETER
   */
  postSendUd(segments: Segments, to: UdAddressHandle, cookie = 0, flags: number = DEFAULT): void {
    this.post('ep.postSendUd', WrOpcode.SEND, segments, to, cookie, flags, 0);
  }

  /**
   * As `postSendUd`, with immediate data: the peer's event is RECV_UD_IMMED. As in all three such
   * calls, the immediate follows the arguments of the plain call, and the flags come last.
   * @param cookie comes back in the event: an integer from 0 to 2^53 - 1
   * @param immediate u32, in wire order
   */
  postSendUdWithImmediate(
    segments: Segments,
    to: UdAddressHandle,
    cookie: number,
    immediate: number,
    flags: number = DEFAULT,
  ): void {
    const operation = 'ep.postSendUdWithImmediate';
    checkU32(operation, 'immediate', immediate);
    this.post(operation, WrOpcode.SEND_WITH_IMM, segments, to, cookie, flags, immediate);
  }

  /**
   * Posts a receive (dat_ib_post_recv_ud). The datagram comes behind 40 bytes of GRH area. A
   * datagram that does not fit is lost, and the receive stays posted.
   * @param segments where to; the first has at least 40 bytes
   * @throws DatError as `postSendUd`; DAT_LENGTH_ERROR for a first segment that is too short
   */
  postRecv(segments: Segments, cookie = 0): void {
    const operation = 'ep.postRecv';
    this.core.context.trace?.(operation, { ep: this.id, cookie });
    this.assertLive(operation);
    checkCookie(operation, cookie);
    const { maxRecvIov, maxRecvDtos } = this.attributes;
    checkSegments(operation, segments, this.pz, MemPrivileges.LOCAL_WRITE, maxRecvIov, Infinity);
    const first = segments instanceof LmrSegment ? segments : segments[0];
    if (first === undefined) {
      throw invalid(operation, 'the number of segments', 0, 'at least 1', 'count');
    }
    const { lengthBytes } = first;
    if (lengthBytes < GRH_LENGTH) {
      throw new DatError('DAT_LENGTH_ERROR', {
        operation,
        message: `the first segment has ${lengthBytes} bytes; the GRH area takes ${GRH_LENGTH}`,
        hint: `let it begin with ${GRH_LENGTH} bytes for the GRH: the datagram comes behind them`,
        value: lengthBytes,
      });
    }
    const { receives } = this.queues;
    if (receives.full) makeRoom(operation, this, receives, maxRecvDtos, 'receives');
    this.queues.postReceive(segments, cookie, DEFAULT);
  }

  /** Makes an endpoint in ERROR usable again, with a fresh queue pair number. Else no-op. */
  reset(): void {
    begin(this, 'ep.reset');
    if (this.current === 'READY') return;
    const next = this.createQueues();
    this.destroyQueues('ep.reset');
    this.queues = next;
    this.current = 'READY';
    for (const { gid, options } of this.groups.values()) next.qp.attachMulticast?.(gid, options);
  }

  /** Frees the endpoint, its services, its address handles, and completions not dequeued. */
  free(): void {
    begin(this, 'ep.free');
    this.shutdown('ep.free');
    this.takeInCompletions();
    this.destroy('ep.free');
  }

  [Symbol.dispose](): void {
    if (!this.isFreed) this.free();
  }

  /** @internal the device is gone */
  onDeviceGone(reason: string): void {
    this.onBroken(reason);
  }

  /** @internal teardown, first part: while the CM works */
  shutdown(by: string): void {
    for (const service of [...this.services]) service.free();
    this.resolutions.abort(by);
  }

  /** @internal teardown, second part */
  destroy(by: string): void {
    this.destroyQueues(by);
    for (const handle of [...this.handles]) handle.free();
    this.markFreed(by);
    this.detach();
    this.init.pz.users--;
    this.core.forget(this);
  }

  /**
   * Completions of receives, requests or both: of what the endpoint was made without an EVD for.
   * One subscriber.
   * @throws DatError DAT_INVALID_STATE when there are EVDs for both: use their `events$`
   */
  get completions$(): Observable<DatagramEvent> {
    const { recvEvd, privateEvds } = this.init;
    const [own = recvEvd] = privateEvds;
    const events$ = streamOf<DatEvent>('ep.completions$', own, privateEvds.length > 0);
    return events$ as Observable<DatagramEvent>;
  }

  /** Lets consumers of its own EVD keep the process alive: the default. @returns itself */
  ref(): this {
    for (const evd of this.init.privateEvds) evd.ref();
    return this;
  }

  /**
   * Lets the process exit while events of its own EVD (`completions$`) are awaited, as `unref` of
   * node:net. An EVD that was given has its own `unref`, and so have services.
   */
  unref(): this {
    for (const evd of this.init.privateEvds) evd.unref();
    return this;
  }

  private post(
    operation: string,
    opcode: number,
    segments: Segments,
    to: UdAddressHandle,
    cookie: number,
    flags: number,
    immediate: number,
  ): void {
    const { pz, attributes, core } = this;
    core.context.trace?.(operation, {
      ep: this.id,
      to: to?.id,
      cookie,
      flags: new Symbolic(flagNames(CompletionFlags, flags)),
    });
    this.assertLive(operation);
    checkCookie(operation, cookie);
    checkFlags(operation, flags, SEND_FLAGS);
    const { maxRequestIov, maxRequestDtos } = attributes;
    const most = this.maxDatagramBytes;
    checkSegments(operation, segments, pz, MemPrivileges.LOCAL_READ, maxRequestIov, most);
    checkAddressHandle(operation, to, pz);
    const { sends } = this.queues;
    if (sends.full) makeRoom(operation, this, sends, maxRequestDtos, 'sends');
    this.queues.postSend(opcode, segments, to, cookie, flags, immediate);
  }

  private groupOf(operation: string, group: string): Gid {
    begin(this, operation, { group });
    requireCapability(operation, this.core.context.device, 'multicast', 'multicast');
    return checkIp(operation, group);
  }

  private addHandle(to: CheckedUdAddress, privateData: Uint8Array): UdAddressHandle {
    const onFreed = (freed: UdAddressHandle): void => void this.handles.delete(freed);
    const handle = new UdAddressHandle(this.pz, to, privateData, onFreed);
    this.handles.add(handle);
    return handle;
  }

  private createQueues(): UdQueues {
    const { pz, recvEvd, requestEvd, attributes } = this.init;
    const operation = 'ia.createUdEndpoint';
    return spiCall({ operation, map: OUT_OF.queuePairs }, () => {
      return new UdQueues({
        ep: this,
        pz,
        recvCq: recvEvd.feed.cq,
        requestCq: requestEvd.feed.cq,
        attributes,
        onQueuePairEvent: (event) => this.onQueuePairEvent(event),
        onBroken: (reason) => this.onBroken(reason),
      });
    });
  }

  private destroyQueues(by: string): void {
    spiCall({ operation: by }, () => this.queues.destroy(this.dtoEvds()));
  }

  private onQueuePairEvent(event: AsyncEventType): void {
    const reason = breakReasonOf(event);
    if (reason !== undefined) this.onBroken(reason);
  }

  private onBroken(reason: string): void {
    if (this.current === 'ERROR' || this.isFreed) return;
    this.current = 'ERROR';
    const stuck = this.queues.toError();
    const detail = stuck === undefined ? reason : `${reason}; nothing is flushed: ${stuck}`;
    this.core.asyncEvd.feed.post(epBrokenEvent(this, `endpoint ${this.id}: ${detail}`));
  }

  private attach(): void {
    const listener: OverrunListener = {
      onOverrun: (evd) => this.onBroken(lossReason(evd)),
    };
    for (const evd of this.dtoEvds()) {
      // One by one: if one fails, those before it are ended.
      this.uses.push(evd.feed.attach('THRESHOLD'));
      this.uses.push(evd.feed.reserve(1));
      this.uses.push(evd.feed.onOverrun(listener));
    }
  }

  private detach(): void {
    for (const end of this.uses.splice(0).reverse()) end();
    for (const evd of this.init.privateEvds) this.core.freePrivateEvd(evd);
  }

  /** @internal scans its completion queues */
  takeInCompletions(): void {
    for (const evd of this.dtoEvds()) evd.feed.scan();
  }

  private dtoEvds(): Evd[] {
    return [...new Set([this.init.recvEvd, this.init.requestEvd])];
  }
}

// Plain data about endpoints for datagrams.

/** @internal parts of an endpoint for datagrams */
export interface UdEpInit {
  readonly pz: Pz;
  readonly recvEvd: Evd;
  readonly requestEvd: Evd;
  readonly privateEvds: readonly Evd[];
  readonly attributes: UdEpAttributes;
}

/** READY, or ERROR after a failure of the queue pair: everything flushes until `ep.reset()`. */
export type UdEpState = 'READY' | 'ERROR';

// Creates endpoints for datagrams.

/** Options of `ia.createUdEndpoint`. */
export interface UdEndpointOptions {
  readonly pz: Pz;
  /** Takes completions of receives; without one, see `UdEp.completions$`. */
  readonly recvEvd?: Evd;
  /** Takes completions of sends; may be the same. */
  readonly requestEvd?: Evd;
  readonly attributes?: Partial<UdEpAttributes>;
}

const OPERATION = 'ia.createUdEndpoint';

export function createUdEndpoint(core: AdapterState, options: UdEndpointOptions): UdEp {
  core.begin(OPERATION);
  checkOptions(OPERATION, options, ['pz', 'recvEvd', 'requestEvd', 'attributes']);
  checkHandle(OPERATION, Pz, 'PZ', options.pz, core);
  const { pz, recvEvd, requestEvd } = options;
  core.checkEvdOption(OPERATION, 'recv', recvEvd);
  core.checkEvdOption(OPERATION, 'request', requestEvd);
  const { device } = core.context;
  requireCapability(OPERATION, device, 'ud', 'unreliable datagrams');
  const attributes = udEpAttributes(OPERATION, options.attributes ?? {}, device.attributes);
  const dtos = attributes.maxRecvDtos + attributes.maxRequestDtos;
  const own = recvEvd && requestEvd ? undefined : core.newEvd(dtos, EvdFlags.DTO);
  const init: UdEpInit = {
    pz,
    recvEvd: recvEvd ?? (own as Evd),
    requestEvd: requestEvd ?? (own as Evd),
    privateEvds: own === undefined ? [] : [own],
    attributes,
  };
  // If creation fails, the constructor has freed the private event dispatcher.
  return core.adopt(new UdEp(core, init));
}
