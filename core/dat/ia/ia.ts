/**
 * Interface adapter (dat_ia): one opening of a device. It creates all other objects, and its close
 * ends the remaining ones, in order.
 */
import {
  Cno,
  type CnoOptions,
  currentUpcall,
  type DatEvent,
  Evd,
  type EvdCreateOptions,
  Upcall,
} from '../../evd/index.js';
import { AsyncEventType } from '../../spi/index.js';
import type { Observable } from '../../stream/index.js';
import { reportDeviceEvent } from '../common/async-events.js';
import type { CloseFlag } from '../common/constants.js';
import {
  type DeviceLease,
  type IaChild,
  type AdapterServices,
  AdapterState,
  type IaCounterValues,
} from '../common/adapter-state.js';
import { checkOneOf, checkOptions, checkReset, checkValue } from '../../errors/guards.js';
import { instanceOf, optional, showAs } from '../../spi/checks/index.js';
import { Handle, nextHandleId } from '../common/handle.js';
import { streamOf } from '../common/private-evd.js';
import { Symbolic } from '../common/trace.js';
import { createCsp, Csp, type CspOptions } from '../connect/csp.js';
import {
  AnyConnQual,
  createPsp,
  createPspAny,
  Psp,
  type PspAnyOptions,
  type PspOptions,
} from '../connect/psp.js';
import { createRsp, Rsp, type RspOptions } from '../connect/rsp.js';
import { createUdEndpoint, type UdEndpointOptions, UdEp } from '../datagram/endpoint.js';
import { EndpointMaker, type EndpointOptions } from '../endpoint/endpoint-maker.js';
import { Ep } from '../endpoint/ep.js';
import { IaMad } from '../mad/calls.js';
import { allocateLmr, createLmr, type LmrMemory, mapFileLmr } from '../memory/create-lmr.js';
import { createRmr, Rmr } from '../window/rmr.js';
import { Lmr } from '../memory/lmr.js';
import type { AllocateOptions, CreateLmrOptions, MapFileOptions } from '../memory/lmr-options.js';
import {
  checkSync,
  memTypeHint,
  type MemTypeHint,
  refuseKernelMemory,
} from '../memory/memory-hints.js';
import { createPz, Pz } from '../memory/pz.js';
import { RmrContexts } from '../memory/rmr-contexts.js';
import type { Segments } from '../memory/segment.js';
import type { SrqOptions } from '../srq/attributes.js';
import { createSrq, Srq } from '../srq/srq.js';
import { openXrcDomain, type XrcDomain, type XrcDomainOptions } from '../xrc/domain.js';
import { addressOf, iaAttributes, type IaQuery } from './attributes.js';
import { IaClosing } from './closing.js';
import { providerAttributes } from './provider-attributes.js';

/** @internal parameters of an IA */
export interface IaInit {
  readonly context: AdapterServices;
  readonly lease: DeviceLease;
  readonly providerName: string;
  readonly asyncEvdQlen: number;
  readonly closeTimeoutMs: number;
}

const OPTIONAL_UPCALL = optional(instanceOf(Upcall, 'an Upcall'));

/** Opened by `openIa()`. */
export class Ia extends Handle {
  static {
    showAs(this, 'Ia', ({ id, init, address, core, isFreed }) => {
      const count = (type: abstract new (...args: never[]) => IaChild): number =>
        [...core.children].filter((child) => child instanceof type).length;
      return {
        ...{ id, provider: init.providerName, address },
        ...{ eps: count(Ep), psps: count(Psp), lmrs: count(Lmr), rmrs: count(Rmr) },
        ...{ srqs: count(Srq), rsps: count(Rsp), csps: count(Csp), pzs: count(Pz) },
        ...{ evds: core.evds.size, cnos: core.cnos.size, closed: isFreed },
      };
    });
  }

  readonly handleType = 'IA';
  /** Address of the default source, as text. */
  readonly address: string;
  /** Management datagrams: agents of an application. */
  readonly mad: IaMad;
  /** @internal */
  readonly core: AdapterState;
  private readonly endpoints: EndpointMaker;
  private readonly anyConnQual = new AnyConnQual();
  private readonly rmrContexts = new RmrContexts();
  private readonly closing: IaClosing;

  /** @internal */
  constructor(private readonly init: IaInit) {
    super();
    const { context, lease, asyncEvdQlen, closeTimeoutMs: timeoutMs } = init;
    this.core = new AdapterState(this, context, asyncEvdQlen);
    this.address = addressOf(context.device);
    this.endpoints = new EndpointMaker(this.core);
    this.mad = new IaMad(
      context,
      () => lease.mad(),
      (operation) => this.core.assertOpen(operation),
    );
    this.closing = new IaClosing(this.core, { lease, mad: this.mad, timeoutMs });
    lease.onEvent((event) => this.onDeviceEvent(event));
  }

  /** Takes asynchronous errors, of all objects of this adapter. */
  get asyncEvd(): Evd {
    return this.core.asyncEvd;
  }

  /** Asynchronous errors. One subscriber. */
  get async$(): Observable<DatEvent> {
    return streamOf('ia.async$', this.asyncEvd, true);
  }

  /** Attributes of adapter and provider (dat_ia_query). */
  query(): IaQuery {
    this.core.assertOpen('ia.query');
    const { device } = this.core.context;
    return {
      ia: iaAttributes(this.core.context),
      provider: providerAttributes(device, this.init.providerName),
    };
  }

  /**
   * Counts of objects created and freed, requests answered and errors reported
   * (dat_ib_query_counters on an IA).
   * @param options `reset`: the counters begin again at 0; what was counted is returned
   * @throws DatError DAT_INVALID_PARAMETER
   */
  counters(options: { readonly reset?: boolean } = {}): IaCounterValues {
    const operation = this.core.begin('ia.counters', { reset: options?.reset });
    return this.core.counts.read(checkReset(operation, options));
  }

  /**
   * Counters of the device and its port: packets, retries, receivers that were not ready, drops and
   * their reasons. docs/softroce.md names all of softroce and mock. Over verbs they are those of
   * sysfs, `counters` and `hw_counters` of the port, which include other processes of the machine.
   * Empty where nothing is counted. Beyond DAT, whose dat_ib_start_counter samples sysfs.
   * @throws DatError DAT_INVALID_HANDLE
   */
  deviceCounters(): Readonly<Record<string, number>> {
    this.core.begin('ia.deviceCounters');
    return this.core.context.device.readCounters?.() ?? {};
  }

  /**
   * Creates an event dispatcher (dat_evd_create).
   * @throws DatError DAT_INVALID_PARAMETER; DAT_INSUFFICIENT_RESOURCES / DAT_RESOURCE_TEVD
   */
  createEvd(options: EvdCreateOptions): Evd {
    const { core } = this;
    core.begin('ia.createEvd', { qlen: options?.qlen });
    return core.adoptEvd(new Evd(core.evdHost, { ...options, id: nextHandleId() }));
  }

  /**
   * Creates a notification object (dat_cno_create): one place to wait for many EVDs.
   * @throws DatError DAT_INVALID_PARAMETER
   */
  createCno(options: CnoOptions = {}): Cno {
    const { core } = this;
    core.begin('ia.createCno', {});
    checkOptions('ia.createCno', options, ['agent']);
    return core.adoptCno(new Cno(core.evdHost, { ...options, id: nextHandleId() }));
  }

  /** Creates a protection zone (dat_pz_create). */
  createPz(): Pz {
    return createPz(this.core, this.rmrContexts);
  }

  /**
   * Registers existing memory (dat_lmr_create). The consumer may still read and write it, and must
   * not transfer it away before `lmr.free()`.
   * @param memory an ArrayBuffer, a SharedArrayBuffer or a view: not pooled, resizable or detached;
   * or another region, whose memory is registered once more (DAT_MEM_TYPE_LMR), with privileges and
   * a zone of its own
   * @throws DatError DAT_INVALID_PARAMETER, DAT_LENGTH_ERROR, DAT_INVALID_HANDLE (pz, region),
   * DAT_INSUFFICIENT_RESOURCES; DAT_INVALID_STATE when `sharedAs` stands for other memory;
   * DAT_MODEL_NOT_SUPPORTED (VaType.ZB, when the IA attribute `zbSupported` is false)
   */
  createLmr(memory: LmrMemory, options: CreateLmrOptions): Lmr {
    return createLmr(this.core, memory, options);
  }

  /**
   * Allocates memory that suits the device, zeroed, and registers it.
   * @param lengthBytes 1 up to `maxLmrBlockSize`: in Node 20 4 GiB at most, as one view holds
   * @param options with `shared`: memory that processes of the user share by that name. It lives
   * until the last of them has freed it, whichever ends first; nothing of it is in a file system
   * @throws DatError as `createLmr`. With `shared`: DAT_INVALID_PARAMETER (the memory of that name
   * has another size), DAT_PRIVILEGES_VIOLATION (another user has the name), DAT_TIMEOUT_EXPIRED
   * (the process that has it does not run), DAT_MODEL_NOT_SUPPORTED (softroce's dgram port, mock)
   */
  allocate(lengthBytes: number, options: AllocateOptions): Lmr {
    return allocateLmr(this.core, lengthBytes, options);
  }

  /**
   * Maps a part of a file into memory and registers it: peers read and write the file itself. The
   * mapping lives for as long as anything refers to `lmr.bytes`; `fsync` of the file makes it
   * durable. Do not truncate the file meanwhile: accessing the missing part ends the process.
   * @param fd an open file descriptor (`fs.openSync`); it may be closed afterwards
   * @throws DatError DAT_MODEL_NOT_SUPPORTED where the provider maps no files;
   * DAT_INVALID_PARAMETER (beyond the end of the file, no regular file);
   * DAT_PRIVILEGES_VIOLATION (shared, and not open for reading and writing); as `createLmr`
   */
  mapFile(fd: number, options: MapFileOptions): Lmr {
    return mapFileLmr(this.core, fd, options);
  }

  /**
   * Creates a memory window, unbound (dat_rmr_create). Once bound, it is open to peers of every
   * endpoint of its zone.
   * @throws DatError DAT_MODEL_NOT_SUPPORTED when the provider has no windows; DAT_INVALID_HANDLE;
   * DAT_INSUFFICIENT_RESOURCES / DAT_RESOURCE_MEMORY_REGION
   */
  createRmr(pz: Pz): Rmr {
    return createRmr(this.core, 'ia.createRmr', pz, 'PZ');
  }

  /**
   * Creates a memory window, unbound (dat_rmr_create_for_ep). Once bound, it is open only to the
   * peer of the endpoint that it is bound through; that peer may invalidate it.
   * @throws DatError as `createRmr`
   */
  createRmrForEp(pz: Pz): Rmr {
    return createRmr(this.core, 'ia.createRmrForEp', pz, 'EP');
  }

  /**
   * Call it before peers read local writes (dat_lmr_sync_rdma_read). The provider attribute
   * `lmrSyncReq` is false: memory is coherent, and this only checks its parameters.
   * @throws DatError DAT_INVALID_PARAMETER, DAT_INVALID_HANDLE (freed or foreign region)
   */
  syncRdmaRead(segments: Segments): void {
    checkSync(this.core, 'ia.syncRdmaRead', segments);
  }

  /** Call it before reading peers' writes (dat_lmr_sync_rdma_write); as `syncRdmaRead`. */
  syncRdmaWrite(segments: Segments): void {
    checkSync(this.core, 'ia.syncRdmaWrite', segments);
  }

  /**
   * The device's preferred length and alignment of memory to register (kDAPL dat_ia_memtype_hint).
   * @param memType a number of MemType
   * @throws DatError DAT_INVALID_PARAMETER; DAT_MODEL_NOT_SUPPORTED for the kernel's memory types
   */
  memTypeHint(memType: number, lengthBytes: number): MemTypeHint {
    return memTypeHint(this.core, memType, lengthBytes);
  }

  /**
   * The region of all physical memory (kDAPL dat_ia_reserved_lmr). The IA attribute
   * `reservedLmrSupported` is false: a process never gets such a key.
   * @throws DatError DAT_MODEL_NOT_SUPPORTED, always
   */
  reservedLmr(): never {
    return refuseKernelMemory(this.core, 'ia.reservedLmr');
  }

  /**
   * An empty region for fast registration of physical pages (kDAPL dat_lmr_allocate, dat_lmr_fmr,
   * dat_lmr_invalidate). To grant and withdraw access in the order of requests, bind a window:
   * `ia.createRmr`.
   * @throws DatError DAT_MODEL_NOT_SUPPORTED, always
   */
  allocateFastLmr(): never {
    return refuseKernelMemory(this.core, 'ia.allocateFastLmr');
  }

  /**
   * Creates a shared receive queue (dat_srq_create): pass it to `createEndpoint`.
   * @throws DatError DAT_MODEL_NOT_SUPPORTED when the provider has none (provider attribute
   * `srqSupported`); DAT_INVALID_PARAMETER; DAT_INVALID_HANDLE (pz);
   * DAT_INSUFFICIENT_RESOURCES / DAT_RESOURCE_SRQ
   */
  createSrq(options: SrqOptions): Srq {
    return createSrq(this.core, options);
  }

  /**
   * Creates an endpoint (dat_ep_create, dat_ep_create_with_srq), UNCONNECTED.
   *
   * DAT wants DTO counts of 0 where there is no EVD. Here an endpoint always has EVDs. Those not
   * given are private, sized for its DTO counts, and offered as streams.
   * @throws DatError DAT_INVALID_HANDLE, DAT_INVALID_PARAMETER (attributes),
   * DAT_INSUFFICIENT_RESOURCES / DAT_RESOURCE_TEP; DAT_INVALID_STATE / DAT_INVALID_STATE_SRQ_ERROR
   */
  createEndpoint(options: EndpointOptions): Ep {
    return this.endpoints.create(options);
  }

  /**
   * Creates an endpoint for unreliable datagrams (IB extension: service type UD), ready for use.
   * @throws DatError DAT_MODEL_NOT_SUPPORTED when the device has none, DAT_INVALID_HANDLE,
   * DAT_INVALID_PARAMETER (attributes), DAT_INSUFFICIENT_RESOURCES / DAT_RESOURCE_TEP
   */
  createUdEndpoint(options: UdEndpointOptions): UdEp {
    return createUdEndpoint(this.core, options);
  }

  /**
   * Listens on a connection qualifier or a service id (dat_psp_create).
   * @throws DatError DAT_CONN_QUAL_IN_USE; DAT_INVALID_PARAMETER; DAT_INVALID_HANDLE;
   * DAT_MODEL_NOT_SUPPORTED (`serviceId` where the CM knows ports only); with PspFlags.PROVIDER
   * also what `createEndpoint` throws
   */
  createPsp(options: PspOptions): Psp {
    return createPsp(this.core, this.endpoints, options);
  }

  /**
   * Listens on a connection qualifier of the adapter's choice, from 1024 up: `psp.connQual`
   * (dat_psp_create_any).
   * @throws DatError DAT_CONN_QUAL_UNAVAILABLE when all are taken; as `createPsp`
   */
  createPspAny(options: PspAnyOptions = {}): Psp {
    return createPspAny(this.core, this.endpoints, this.anyConnQual, options);
  }

  /**
   * Listens for one request, for an endpoint reserved for it (dat_rsp_create). The endpoint is
   * RESERVED, and PASSIVE_CONNECTION_PENDING when the request comes; `cr.accept()` needs no other.
   * @throws DatError DAT_INVALID_STATE unless the endpoint is UNCONNECTED; DAT_CONN_QUAL_IN_USE;
   * DAT_INVALID_HANDLE, DAT_INVALID_PARAMETER, DAT_MODEL_NOT_SUPPORTED as `createPsp`
   */
  createRsp(options: RspOptions): Rsp {
    return createRsp(this.core, options);
  }

  /**
   * Listens on an address and port, like a socket (dat_csp_create). The peer uses
   * `ep.commonConnect`, or `connect` with the port as its connection qualifier.
   * @throws DatError DAT_INVALID_ADDRESS (malformed, or none of the adapter's);
   * DAT_COMM_NOT_SUPPORTED; DAT_CONN_QUAL_IN_USE (the port is taken, on any address);
   * DAT_INVALID_HANDLE, DAT_INVALID_PARAMETER
   */
  createCsp(options: CspOptions): Csp {
    return createCsp(this.core, options);
  }

  /**
   * Opens an XRC domain of the device. If processes share it, the first opener waits until its host
   * process has started (docs/xrc.md); timers and I/O continue meanwhile.
   * @throws DatError DAT_MODEL_NOT_SUPPORTED where the device has no XRC; DAT_INVALID_STATE
   * (`exclusive`, and it exists); DAT_INVALID_PARAMETER (`existing`, and it does not)
   */
  openXrcDomain(options: XrcDomainOptions = {}): Promise<XrcDomain> {
    return openXrcDomain(this.core, this.endpoints, options);
  }

  /**
   * Closes the adapter (dat_ia_close); its device ends with its last adapter.
   * @param flag `graceful` only closes what has no objects left; `abrupt` (default) ends them
   * first: connections (the peers are told), queue pairs, event dispatchers, memory regions, zones.
   * Closing again returns the same promise.
   * @param options.upcall the upcall that closes the adapter, which is not waited for; in the
   * synchronous part of a handler it is known
   * @throws DatError DAT_INVALID_STATE / DAT_INVALID_STATE_IA_IN_USE (graceful, objects left);
   * DAT_INTERNAL_ERROR when a step failed or the time ran out: everything else has been ended
   */
  async close(
    flag: CloseFlag = 'abrupt',
    options: { readonly upcall?: Upcall } = {},
  ): Promise<void> {
    checkOneOf('ia.close', 'flag', flag, ['abrupt', 'graceful']);
    checkOptions('ia.close', options, ['upcall']);
    const { upcall = currentUpcall() } = options;
    checkValue('ia.close', 'upcall', upcall, OPTIONAL_UPCALL);
    this.core.context.trace?.('ia.close', { ia: this.id, flag: new Symbolic(flag) });
    return this.closing.close(flag, upcall);
  }

  /** Abrupt close. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Breaks every connection of a device that is gone, with one BROKEN event each. */
  private onDeviceEvent(event: AsyncEventType): void {
    reportDeviceEvent(event, this.core);
    if (event !== AsyncEventType.DEVICE_FATAL) return;
    for (const child of [...this.core.children]) {
      if (child instanceof Ep || child instanceof UdEp) child.onDeviceGone('the device is gone');
    }
  }
}
