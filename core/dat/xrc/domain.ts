/**
 * XRC domain: the adapters of a device share it, so that one connection from a node reaches the
 * receivers of all of them. The XRC module decides how long target QPs live. This is one adapter's
 * hold on the domain, and its events come on the adapter's asynchronous EVD.
 */
import { argumentSubtype } from '../../errors/call-arguments.js';
import {
  checkFields,
  checkInteger,
  checkOneOf,
  checkOptions,
  checkPrivateData,
  checkValue,
} from '../../errors/guards.js';
import { DatError, spiCall, toDatError } from '../../errors/index.js';
import { DatEventNumber, EvdFlags, type XrcTargetEventName } from '../../evd/index.js';
import { OBJECT, oneOf, optional, showAs, TEXT } from '../../spi/checks/index.js';
import {
  AsyncEventType,
  type CmConnection,
  type CmEvent,
  CmPrivateData,
  nameOf,
  type QueuePairAttributes,
  type XrcDomain as XrcHold,
  type XrcOpenMode,
  type XrcTargetAttributes,
  type XrcTargetOwner,
} from '../../spi/index.js';
import type { AdapterState } from '../common/adapter-state.js';
import { begin, checkHandle, Handle } from '../common/handle.js';
import { Cr } from '../connect/cr.js';
import { type EpAttributeOptions, epAttributes } from '../endpoint/attributes.js';
import type { EndpointMaker, EndpointOptions } from '../endpoint/endpoint-maker.js';
import { Pz } from '../memory/pz.js';
import { srqAttributes } from '../srq/attributes.js';
import { makerOfQueue } from '../srq/srq.js';
import { EP_ACCESS } from '../work/queues.js';
import { createInitiator, MAX_SRQN, type XrcInitiator } from './initiator.js';
import { XrcSrq, type XrcSrqOptions } from './srq.js';
import type { Ia } from '../ia/ia.js';
import { notSupported, requireCapability } from '../common/unsupported.js';

/** Options of `domain.createInitiator`; an EVD that is not given is private. */
export type XrcInitiatorOptions = Omit<EndpointOptions, 'recvEvd' | 'srq'>;

export interface XrcTargetOptions {
  /**
   * `consumer` (default): this adapter is registered, and the last one that unregisters ends the
   * target. `domain`: no consumer is registered, and it ends with the domain.
   */
  readonly owner?: XrcTargetOwner;
}

export interface XrcAcceptOptions extends XrcTargetOptions {
  /** At most 196 bytes: a good place for the numbers of the queues. */
  readonly privateData?: Uint8Array;
  /** A target uses only `maxRdmaReadIn` (for all queues together) and the RNR timer. */
  readonly attributes?: EpAttributeOptions;
}

/** Made by `ia.openXrcDomain()`. */
export class XrcDomain extends Handle {
  static {
    showAs(this, 'XrcDomain', ({ id, key, targets, isFreed: closed }) => {
      return { id, private: key === undefined, key, targets: targets.length, closed };
    });
  }

  readonly handleType = 'XRC_DOMAIN';
  /** @internal shared receive queues and initiators of this adapter in the domain */
  users = 0;

  /** @internal */
  constructor(
    /** @internal */
    readonly core: AdapterState,
    /** @internal the module's */
    readonly hold: XrcHold,
    private readonly endpoints: EndpointMaker,
  ) {
    super();
  }

  get ia(): Ia {
    return this.core.ia;
  }

  /** Undefined for a private domain. */
  get key(): string | undefined {
    return this.hold.key;
  }

  /** Numbers of all targets in the domain. */
  get targets(): readonly number[] {
    return this.hold.targets;
  }

  /**
   * Creates a shared receive queue that remote initiators address by its `srqn`.
   * @throws DatError as `ia.createSrq`; DAT_INVALID_HANDLE (recvEvd)
   */
  createSrq(options: XrcSrqOptions): XrcSrq {
    begin(this, 'xrc.createSrq', { maxRecvDtos: options?.maxRecvDtos });
    return createXrcSrq(this, options);
  }

  /**
   * Creates an endpoint that only sends, each request to the queue that it names. It connects like
   * any endpoint; the peer accepts with `domain.accept(cr)`.
   * @throws DatError as `ia.createEndpoint`
   */
  createInitiator(options: XrcInitiatorOptions): XrcInitiator {
    begin(this, 'xrc.createInitiator');
    return createInitiator(this, this.endpoints, options);
  }

  /**
   * Accepts the connection request of an initiator with a new target. ESTABLISHED or ACCEPT_FAILED,
   * later DISCONNECTED, are `xrc-target` events on this adapter's asynchronous EVD; the target
   * takes messages when this returns. The last adapter that unregisters tells the peer.
   * @returns the number of the target, for other adapters to register with
   * @throws DatError DAT_INVALID_HANDLE; DAT_INVALID_PARAMETER for a request that is not an
   * initiator's; DAT_INVALID_STATE when the peer gave up
   */
  accept(cr: Cr, options: XrcAcceptOptions = {}): number {
    const operation = begin(this, 'xrc.accept', { cr: cr?.id });
    checkHandle(operation, Cr, 'CR', cr, this.core);
    checkOptions(operation, options, ['owner', 'privateData', 'attributes']);
    const privateData = checkPrivateData(operation, options.privateData, CmPrivateData.REP);
    const device = this.core.context.device.attributes;
    const attributes = epAttributes(operation, options.attributes ?? {}, device);
    if (cr.transport !== 'xrc') {
      throw new DatError('DAT_INVALID_PARAMETER', {
        subtype: argumentSubtype(operation, 'cr'),
        operation,
        message: `connection request ${cr.id} is of a plain endpoint`,
        hint: 'accept it with an endpoint: cr.accept(ep)',
        value: cr,
      });
    }
    let connection: CmConnection | undefined;
    const owner = checkedOwner(operation, options);
    const qp = spiCall({ operation }, () =>
      this.hold.prepareTarget({
        owner,
        onEvent: (event) => this.report(qp.qpn, event),
        onEnd: () => connection?.disconnect(),
      }),
    );
    const { retryCount, rnrRetryCount, minRnrTimer } = attributes.transport;
    try {
      connection = cr.answer(operation, (request) =>
        request.accept({
          qp,
          privateData,
          responderResources: Math.min(attributes.maxRdmaReadIn, request.responderResources),
          initiatorDepth: 0,
          retryCount,
          rnrRetryCount,
          minRnrTimer,
          accessFlags: EP_ACCESS,
          onEvent: (event) => this.onConnection(qp.qpn, event),
        }),
      );
    } catch (error) {
      qp.destroy();
      throw error;
    }
    return qp.qpn;
  }

  /**
   * Creates a target and takes it through INIT to RTR in one call, for an initiator whose numbers
   * are known without a connection request.
   * @param attributes by the table of the XRC module (docs/xrc.md)
   * @returns its number
   * @throws DatError DAT_INVALID_PARAMETER that names the attribute, the transition and the mask;
   * DAT_INSUFFICIENT_RESOURCES
   */
  createTarget(attributes: XrcTargetAttributes, options: XrcTargetOptions = {}): number {
    const operation = begin(this, 'xrc.createTarget');
    checkAttributes(operation, attributes);
    checkOptions(operation, options, ['owner']);
    const owner = checkedOwner(operation, options);
    // An event cannot come before the number: events run in the pump.
    const qpn: number = spiCall({ operation, value: attributes }, () =>
      this.hold.createTarget({ attributes, owner, onEvent: (event) => this.report(qpn, event) }),
    );
    return qpn;
  }

  /**
   * Registers this adapter with a target: it keeps the target alive, and gets its events.
   * Registering twice counts once.
   * @throws DatError DAT_INVALID_PARAMETER when the domain has no such target
   */
  registerTarget(qpn: number): void {
    this.onTarget('xrc.registerTarget', qpn, () =>
      this.hold.register(qpn, (event) => this.report(qpn, event)),
    );
  }

  /**
   * Unregisters this adapter. The last adapter ends the target, and its peer is told.
   * @throws DatError DAT_INVALID_PARAMETER when this adapter is not registered with it
   */
  unregisterTarget(qpn: number): void {
    this.onTarget('xrc.unregisterTarget', qpn, () => this.hold.unregister(qpn));
  }

  /**
   * Modifies any target of the domain.
   * @throws DatError DAT_INVALID_PARAMETER that names the attribute and the transition
   */
  modifyTarget(qpn: number, attributes: QueuePairAttributes): void {
    const operation = 'xrc.modifyTarget';
    this.onTarget(operation, qpn, () => {
      checkAttributes(operation, attributes);
      this.hold.modify(qpn, attributes);
    });
  }

  /** @throws DatError DAT_INVALID_PARAMETER when the domain has no such target */
  queryTarget(qpn: number): Readonly<QueuePairAttributes> {
    return this.onTarget('xrc.queryTarget', qpn, () => this.hold.query(qpn));
  }

  /**
   * Releases the domain: this adapter's last hold on it unregisters it from every target, and the
   * domain's last hold ends all remaining ones.
   * @throws DatError DAT_INVALID_STATE while queues or initiators of this adapter are in it
   */
  close(): void {
    begin(this, 'xrc.close');
    const hints = { EBUSY: 'free them first' };
    spiCall({ operation: 'xrc.close', hints }, () => this.hold.close());
    this.end('xrc.close');
  }

  [Symbol.dispose](): void {
    if (!this.isFreed) this.close();
  }

  /** @internal teardown: ends everything that this adapter still has in the XRC module */
  destroy(by: string): void {
    spiCall({ operation: by }, () => this.core.context.xrc?.release(this.core));
    this.end(by);
  }

  /** A call on a target by its number. */
  private onTarget<T>(call: string, qpn: number, run: () => T): T {
    const operation = begin(this, call, { qpn });
    checkInteger(operation, 'qpn', qpn, 0, MAX_SRQN);
    return spiCall({ operation, value: qpn }, run);
  }

  private end(by: string): void {
    this.markFreed(by);
    this.core.forget(this);
  }

  private onConnection(qpn: number, event: CmEvent): void {
    const name = CONNECTION_EVENTS[event.type];
    if (name !== undefined) this.post(qpn, name);
  }

  private report(qpn: number, event: AsyncEventType): void {
    this.post(qpn, nameOf(AsyncEventType, event) as XrcTargetEventName);
  }

  private post(targetQpn: number, event: XrcTargetEventName): void {
    if (this.isFreed) return;
    const number = DatEventNumber.XRC_TARGET;
    this.core.asyncEvd.feed.post({ type: 'xrc-target', number, domain: this, targetQpn, event });
  }
}

/** Events for the CM's reports on a target's connection; the end of TIMEWAIT has none. */
const CONNECTION_EVENTS: Readonly<Record<CmEvent['type'], XrcTargetEventName | undefined>> = {
  established: 'ESTABLISHED',
  disconnected: 'DISCONNECTED',
  rejected: 'ACCEPT_FAILED',
  unreachable: 'ACCEPT_FAILED',
  'timed-out': 'ACCEPT_FAILED',
  'accept-failed': 'ACCEPT_FAILED',
  'timewait-exit': undefined,
};

/** Checks that the attributes are an object. The XRC module checks the rest: it has the table. */
function checkAttributes(operation: string, attributes: unknown): void {
  checkValue(operation, 'attributes', attributes, OBJECT);
}

function checkedOwner(operation: string, { owner = 'consumer' }: XrcTargetOptions): XrcTargetOwner {
  checkOneOf(operation, 'owner', owner, ['consumer', 'domain']);
  return owner;
}

/** Creates shared receive queues of a domain. */
function createXrcSrq(domain: XrcDomain, options: XrcSrqOptions): XrcSrq {
  const operation = 'xrc.createSrq';
  const { core, hold } = domain;
  checkOptions(operation, options, ['pz', 'maxRecvDtos', 'maxRecvIov', 'recvEvd']);
  checkHandle(operation, Pz, 'PZ', options.pz, core);
  const { pz, recvEvd } = options;
  core.checkEvdOption(operation, 'recv', recvEvd);
  const attributes = srqAttributes(operation, options, core.context.device.attributes);
  const evd = recvEvd ?? core.newEvd(attributes.maxRecvDtos, EvdFlags.DTO);
  const isPrivate = recvEvd === undefined;
  const cq = evd.feed.cq;
  const create = makerOfQueue(operation, pz, attributes, (init) =>
    hold.createSharedReceiveQueue({ ...init, cq }),
  );
  const uses: (() => void)[] = [];
  try {
    // One by one: if the second fails, the first is ended.
    uses.push(evd.feed.attach('THRESHOLD'));
    uses.push(evd.feed.reserve(1));
    return core.adopt(new XrcSrq(domain, core, pz, attributes, { evd, isPrivate, uses }, create));
  } catch (error) {
    for (const end of uses) end();
    if (isPrivate) core.freePrivateEvd(evd);
    throw error;
  }
}

// Opens XRC domains.

export interface XrcDomainOptions {
  /** Adapters of a device that give the same key share a domain; without one it is private. */
  readonly key?: string;
  /**
   * `create` (default): creates it if it does not exist; `exclusive`: refused if it exists;
   * `existing`: refused if it does not.
   */
  readonly mode?: XrcOpenMode;
}

export async function openXrcDomain(
  core: AdapterState,
  endpoints: EndpointMaker,
  options: XrcDomainOptions = {},
): Promise<XrcDomain> {
  const operation = core.begin('ia.openXrcDomain', { key: options?.key, mode: options?.mode });
  checkFields(operation, options, DOMAIN_OPTIONS);
  const { key, mode = 'create' } = options;
  const { xrc, device } = core.context;
  if (xrc === undefined) throw notSupported(operation, `device ${device.name} has no XRC`);
  requireCapability(operation, device, 'xrc', 'XRC');
  const map = { EINVAL: ['DAT_INVALID_STATE'], ENODEV: NO_DOMAIN } as const;
  const open = async (): Promise<XrcHold> => xrc.openDomain(core, key, mode);
  const hold = await open().catch((error: unknown) => {
    throw toDatError(error, { operation, value: key, map });
  });
  try {
    core.assertOpen(operation);
  } catch (error) {
    hold.close();
    throw error;
  }
  return core.adopt(new XrcDomain(core, hold, endpoints));
}

const DOMAIN_OPTIONS = {
  key: optional(TEXT),
  mode: optional(oneOf<XrcOpenMode>(['create', 'exclusive', 'existing'])),
};
const NO_DOMAIN = ['DAT_INVALID_PARAMETER', argumentSubtype('ia.openXrcDomain', 'key')] as const;
