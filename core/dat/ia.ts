/**
 * Interface adapter (dat_ia): one opening of a device. It makes all other objects, and its close
 * ends those that are left, in order.
 */
import { inspect } from 'node:util';
import { tearDown } from '../di/index.js';
import {
  CompletionOwners,
  type DatEvent,
  Evd,
  EvdFlags,
  type EvdHost,
  type EvdCreateOptions,
} from '../evd/index.js';
import { DatError, spiCall } from '../errors/index.js';
import type { Observable } from '../stream/index.js';
import { reportDeviceEvent } from './async-events.js';
import { type CloseFlag, flagNames, MemPrivileges, PspFlags } from './constants.js';
import type { DeviceLease, IaContext } from './context.js';
import { Ep } from './ep.js';
import { type EpAttributeOptions, epAttributes } from './ep-attributes.js';
import { checkConnQual } from './ep-connect-options.js';
import { checkBits, checkInteger, checkOneOf, checkOptions } from './guards.js';
import { checkHandle, DatHandle, nextHandleId } from './handle.js';
import {
  addressOf,
  type IaAttributes,
  iaAttributes,
  type ProviderAttributes,
  providerAttributes,
} from './ia-attributes.js';
import { type Child, closeSteps } from './ia-close.js';
import { registerAtRandom } from './iova.js';
import { Lmr, type LmrOptions } from './lmr.js';
import { checkMemory } from './memory-source.js';
import { accessOf, PRIVILEGE_MASK } from './privileges.js';
import { checkEvd, type EvdUse, streamOf } from './private-evd.js';
import { Psp, type PspOptions } from './psp.js';
import { Pz } from './pz.js';
import { Symbolic } from './trace.js';

/** What `ia.createEndpoint` takes. An EVD that is not given is private: see `Ep.completions$`. */
export interface EndpointOptions {
  readonly pz: Pz;
  /** Takes completions of receives. */
  readonly recvEvd?: Evd;
  /** Takes completions of requests; may be the same. */
  readonly requestEvd?: Evd;
  /** Takes connection events; may be the same. */
  readonly connectEvd?: Evd;
  readonly attributes?: EpAttributeOptions;
}

/** @internal how an IA is made */
export interface IaInit {
  readonly context: IaContext;
  readonly lease: DeviceLease;
  readonly providerName: string;
  readonly asyncEvdQlen: number;
  readonly closeTimeoutMs: number;
}

const CONNECTION_QLEN = 16;
const REQUESTS_QLEN = 64;

/** Opened by `openIa()`. */
export class Ia extends DatHandle {
  readonly handleType = 'IA';
  /** @internal */
  readonly context: IaContext;
  /** @internal */
  readonly owners = new CompletionOwners();
  /** Takes asynchronous errors, of all objects of this adapter. */
  readonly asyncEvd: Evd;
  /** Address of the default source, as text. */
  readonly address: string;
  private readonly host: EvdHost;
  private readonly children = new Set<Child>();
  private readonly evds = new Set<Evd>();
  private closing: Promise<void> | undefined = undefined;

  /** @internal */
  constructor(private readonly init: IaInit) {
    super();
    this.context = init.context;
    this.address = addressOf(init.context.device);
    this.host = {
      ...init.context,
      owners: this.owners,
      reportAsync: (event) => void this.asyncEvd.post(event),
      onEvdFreed: (evd) => void this.evds.delete(evd as Evd),
    };
    this.asyncEvd = this.newEvd(init.asyncEvdQlen, EvdFlags.ASYNC);
    init.lease.onEvent((event) => reportDeviceEvent(event, this, this.asyncEvd));
  }

  /** Asynchronous errors. One subscriber. */
  get async$(): Observable<DatEvent> {
    return streamOf('ia.async$', this.asyncEvd, true);
  }

  /** Attributes of adapter and provider (dat_ia_query). */
  query(): { readonly ia: IaAttributes; readonly provider: ProviderAttributes } {
    this.assertOpen('ia.query');
    const { device } = this.context;
    return {
      ia: iaAttributes(device),
      provider: providerAttributes(device, this.init.providerName),
    };
  }

  /** Makes a protection zone (dat_pz_create). */
  createPz(): Pz {
    this.begin('ia.createPz');
    const { device } = this.context;
    const pd = spiCall({ operation: 'ia.createPz', map: { ENOMEM: NO_ZONE } }, () =>
      device.createProtectionDomain(),
    );
    return this.adopt(new Pz(this, pd));
  }

  /**
   * Registers existing memory (dat_lmr_create). It stays the consumer's to read and write, and must
   * not be transferred away before `lmr.free()`.
   * @param memory an ArrayBuffer or a view: not pooled, resizable, shared or detached
   * @throws DatError DAT_INVALID_PARAMETER, DAT_MODEL_NOT_SUPPORTED (SharedArrayBuffer),
   * DAT_LENGTH_ERROR, DAT_INVALID_HANDLE (pz), DAT_INSUFFICIENT_RESOURCES
   */
  createLmr(memory: ArrayBuffer | ArrayBufferView, options: LmrOptions): Lmr {
    const operation = 'ia.createLmr';
    this.begin(operation, { privileges: privilegesText(options) });
    const privileges = this.checkLmrOptions(operation, options);
    return this.register(operation, checkMemory(operation, 2, memory), options.pz, privileges);
  }

  /**
   * Allocates memory that suits the device, zeroed, and registers it.
   * @param lengthBytes 1 up to `maxLmrBlockSize`
   * @throws DatError as `createLmr`
   */
  allocate(lengthBytes: number, options: LmrOptions): Lmr {
    const operation = 'ia.allocate';
    this.begin(operation, { lengthBytes, privileges: privilegesText(options) });
    const { device } = this.context;
    const most = device.attributes.maxMemoryRegionBytes;
    checkInteger(operation, 1, 'lengthBytes', lengthBytes, 1, most);
    const privileges = this.checkLmrOptions(operation, options);
    const buffer = spiCall({ operation, value: lengthBytes }, () => device.allocate(lengthBytes));
    const bytes = new Uint8Array(buffer, 0, lengthBytes);
    return this.register(operation, bytes, options.pz, privileges);
  }

  /**
   * Makes an event dispatcher (dat_evd_create).
   * @throws DatError DAT_INVALID_PARAMETER; DAT_INSUFFICIENT_RESOURCES / DAT_RESOURCE_TEVD
   */
  createEvd(options: EvdCreateOptions): Evd {
    this.begin('ia.createEvd', { qlen: options?.qlen });
    const evd = new Evd(this.host, { ...options, id: nextHandleId() });
    this.evds.add(evd);
    return evd;
  }

  /**
   * Makes an endpoint (dat_ep_create), UNCONNECTED.
   * @throws DatError DAT_INVALID_HANDLE, DAT_INVALID_PARAMETER (attributes),
   * DAT_INSUFFICIENT_RESOURCES / DAT_RESOURCE_TEP
   */
  createEndpoint(options: EndpointOptions): Ep {
    const operation = 'ia.createEndpoint';
    this.begin(operation);
    checkOptions(operation, 1, options, EP_OPTIONS);
    checkHandle(operation, Pz, 'PZ', options.pz, this);
    const { recvEvd, requestEvd, connectEvd } = options;
    this.checkEvdOption(operation, 'recv', recvEvd);
    this.checkEvdOption(operation, 'request', requestEvd);
    this.checkEvdOption(operation, 'connect', connectEvd);
    const attributes = epAttributes(
      operation,
      options.attributes ?? {},
      this.context.device.attributes,
    );
    const privateEvds: Evd[] = [];
    const makePrivate = (qlen: number, streams: number): Evd => {
      const evd = this.newEvd(qlen, streams);
      privateEvds.push(evd);
      return evd;
    };
    const dtos = attributes.maxRecvDtos + attributes.maxRequestDtos;
    const ownDto = recvEvd && requestEvd ? undefined : makePrivate(dtos, EvdFlags.DTO);
    const connect = connectEvd ?? makePrivate(CONNECTION_QLEN, EvdFlags.CONNECTION);
    try {
      return this.adopt(
        new Ep(this, {
          pz: options.pz,
          recvEvd: recvEvd ?? (ownDto as Evd),
          requestEvd: requestEvd ?? (ownDto as Evd),
          connectEvd: connect,
          privateEvds,
          attributes,
        }),
      );
    } catch (error) {
      for (const evd of privateEvds) this.freePrivateEvd(evd);
      throw error;
    }
  }

  /**
   * Listens on a connection qualifier (dat_psp_create).
   * @throws DatError DAT_CONN_QUAL_IN_USE; DAT_INVALID_PARAMETER; DAT_INVALID_HANDLE;
   * DAT_MODEL_NOT_SUPPORTED for PspFlags.PROVIDER: the provider attribute `epCreator` is NEVER
   */
  createPsp(options: PspOptions): Psp {
    const operation = 'ia.createPsp';
    this.begin(operation, { connQual: options?.connQual });
    checkOptions(operation, 1, options, ['connQual', 'evd', 'flags']);
    checkConnQual(operation, 2, options.connQual);
    this.checkEvdOption(operation, 'cr', options.evd);
    const flags = options.flags ?? PspFlags.CONSUMER;
    checkOneOf(operation, 4, 'flags', flags, Object.values(PspFlags));
    if (flags === PspFlags.PROVIDER) {
      throw new DatError('DAT_MODEL_NOT_SUPPORTED', {
        operation,
        message: 'this provider makes no endpoints for requests (ep_creator is NEVER)',
        hint: 'use PspFlags.CONSUMER and pass an endpoint to cr.accept()',
        value: flags,
      });
    }
    const evd = options.evd ?? this.newEvd(REQUESTS_QLEN, EvdFlags.CR);
    try {
      return this.adopt(new Psp(this, options.connQual, evd, options.evd === undefined));
    } catch (error) {
      if (options.evd === undefined) this.freePrivateEvd(evd);
      throw error;
    }
  }

  /**
   * Closes the adapter (dat_ia_close); its device ends with its last adapter.
   * @param flag `graceful` only closes what has no objects left; `abrupt` (default) ends them
   * first: connections (the peers are told), queue pairs, event dispatchers, memory regions, zones.
   * Closing again returns the same promise.
   * @throws DatError DAT_INVALID_STATE / DAT_INVALID_STATE_IA_IN_USE (graceful, objects left);
   * DAT_INTERNAL_ERROR when a step failed or the time ran out: everything else has been ended
   */
  async close(flag: CloseFlag = 'abrupt'): Promise<void> {
    checkOneOf('ia.close', 2, 'flag', flag, ['abrupt', 'graceful']);
    this.context.trace?.('ia.close', { ia: this.id, flag: new Symbolic(flag) });
    if (this.closing !== undefined) return this.closing;
    if (flag === 'graceful') this.checkUnused();
    this.closing = this.runClose();
    return this.closing;
  }

  /** Abrupt close. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** @internal */
  forget(child: Child): void {
    this.children.delete(child);
  }

  /** @internal looks at every completion queue, so that finished requests let go of their memory */
  takeInCompletions(): void {
    for (const evd of [...this.evds]) evd.scan();
  }

  /** @internal */
  freePrivateEvd(evd: Evd): void {
    if (!this.evds.delete(evd)) return;
    evd.free().catch((error: unknown) => {
      this.context.logger.error(`private event dispatcher ${evd.id}`, { error: String(error) });
    });
  }

  [inspect.custom](): string {
    const count = (type: abstract new (...args: never[]) => Child): number =>
      [...this.children].filter((child) => child instanceof type).length;
    const state = this.isFreed ? ', closed' : '';
    return (
      `Ia { id: ${this.id}, provider: '${this.init.providerName}', address: '${this.address}', ` +
      `eps: ${count(Ep)}, psps: ${count(Psp)}, lmrs: ${count(Lmr)}, pzs: ${count(Pz)}${state} }`
    );
  }

  private begin(call: string, fields: Readonly<Record<string, unknown>> = {}): void {
    this.context.trace?.(call, { ia: this.id, ...fields });
    this.assertOpen(call);
  }

  private assertOpen(operation: string): void {
    this.assertLive(operation);
    if (this.closing === undefined) return;
    throw new DatError('DAT_INVALID_HANDLE', {
      subtype: 'DAT_INVALID_HANDLE_IA',
      operation,
      message: `interface adapter ${this.id} is being closed`,
      value: this,
    });
  }

  private adopt<T extends Child>(child: T): T {
    this.children.add(child);
    return child;
  }

  private newEvd(qlen: number, streams: number): Evd {
    const evd = new Evd(this.host, { id: nextHandleId(), qlen, streams });
    this.evds.add(evd);
    return evd;
  }

  private checkEvdOption(operation: string, use: EvdUse, evd: Evd | undefined): void {
    if (evd !== undefined) checkEvd(operation, use, evd, this.evds);
  }

  private checkLmrOptions(operation: string, options: LmrOptions): number {
    checkOptions(operation, 5, options, ['pz', 'privileges']);
    checkHandle(operation, Pz, 'PZ', options.pz, this);
    const privileges = options.privileges ?? DEFAULT_PRIVILEGES;
    const expected = `a bit set of ${flagNames(MemPrivileges, PRIVILEGE_MASK)}`;
    checkBits(operation, 6, 'privileges', privileges, PRIVILEGE_MASK, expected);
    return privileges;
  }

  private register(operation: string, bytes: Uint8Array, pz: Pz, privileges: number): Lmr {
    const region = spiCall({ operation, value: bytes.byteLength, map: { ENOMEM: NO_REGION } }, () =>
      registerAtRandom(pz.pd, bytes, accessOf(privileges), this.context.random),
    );
    return this.adopt(new Lmr(this, pz, bytes, privileges, region));
  }

  private checkUnused(): void {
    const left = this.children.size + this.evds.size - 1;
    if (left === 0) return;
    throw new DatError('DAT_INVALID_STATE', {
      subtype: 'DAT_INVALID_STATE_IA_IN_USE',
      operation: 'ia.close',
      message: `${left} objects of interface adapter ${this.id} are left`,
      hint: 'free them first, or close abruptly',
      value: left,
    });
  }

  private async runClose(): Promise<void> {
    const { clock, timers, keepAlive } = this.context;
    const { lease, closeTimeoutMs } = this.init;
    const { children } = this;
    const evds = (): Evd[] => [...this.evds];
    const release = lease.release();
    keepAlive.retain();
    try {
      await tearDown(closeSteps({ children, evds, release }), {
        operation: 'ia.close',
        clock,
        timers,
        deadlineMs: closeTimeoutMs,
      });
    } finally {
      keepAlive.release();
      this.markFreed('ia.close');
      release.done();
    }
  }
}

const { LOCAL_READ, LOCAL_WRITE } = MemPrivileges;
const DEFAULT_PRIVILEGES = LOCAL_READ | LOCAL_WRITE;
const EP_OPTIONS = ['pz', 'recvEvd', 'requestEvd', 'connectEvd', 'attributes'];
const NO_ZONE = ['DAT_INSUFFICIENT_RESOURCES', 'DAT_RESOURCE_PROTECTION_DOMAIN'] as const;
const NO_REGION = ['DAT_INSUFFICIENT_RESOURCES', 'DAT_RESOURCE_MEMORY_REGION'] as const;

function privilegesText(options: LmrOptions | undefined): Symbolic {
  return new Symbolic(flagNames(MemPrivileges, options?.privileges ?? DEFAULT_PRIVILEGES));
}
