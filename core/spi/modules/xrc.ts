/**
 * Contract of an XRC module (IBTA annex A14; the discussions of 2007 and 2010). A consumer is an
 * object of the caller (an IA), identified by reference. Target QPs belong to their domain:
 * registering is counted per consumer, and the last unregistering destroys them.
 */
import type {
  AddressVector,
  CompletionQueue,
  QueuePair,
  QueuePairAttributes,
  QueuePairEventHandler,
  QueuePairInit,
  SharedReceiveQueue,
  SharedReceiveQueueInit,
  XrcOpenMode,
} from '../device/device.js';

export type XrcConsumer = object;

/** A target is counted for its consumers, or for none: then it ends with its domain (2007). */
export type XrcTargetOwner = 'consumer' | 'domain';

export interface XrcModule {
  /**
   * Opens a domain by key, shared by the consumers of the device; without a key a private one.
   * Opening it again gives another hold on the same domain.
   * @returns a promise where the device has `openXrcDomain`, and waits for it
   * @throws SpiError('EINVAL') 'exclusive' and it exists; ('ENODEV') 'existing' and it does not;
   * ('EOPNOTSUPP') the device knows no XRC
   */
  openDomain(
    consumer: XrcConsumer,
    key: string | undefined,
    mode: XrcOpenMode,
  ): XrcDomain | Promise<XrcDomain>;
  /** Ends a consumer: unregisters, closes and destroys everything that it owns. Idempotent. */
  release(consumer: XrcConsumer): void;
  close(): Promise<void>;
}

/** One hold of a consumer on a domain. */
export interface XrcDomain {
  readonly key: string | undefined;
  createSharedReceiveQueue(init: XrcSharedReceiveQueueInit): SharedReceiveQueue;
  /** A queue pair in RESET; it has no receive queue. */
  createInitiator(init: XrcInitiatorInit): QueuePair;
  /**
   * Creates a target QP and takes it through INIT to RTR.
   * @returns its number; the creator is registered, unless the domain owns it
   * @throws SpiError('EINVAL') that names the attribute, the transition and the mask
   */
  createTarget(init: XrcTargetInit): number;
  /**
   * As `createTarget`, but leaves it in INIT: a CM takes it to RTR when it accepts a request.
   * Destroying it ends the target, whatever consumers are registered.
   * @param init attributes of RESET to INIT; the default allows every remote access
   */
  prepareTarget(init: XrcPreparedTargetInit): QueuePair;
  /**
   * Registers for a target. Registering twice counts once; the later handler replaces the earlier
   * one. On a target that the domain owns it only subscribes to events.
   * @throws SpiError('EINVAL') no such target in this domain
   */
  register(qpn: number, onEvent: QueuePairEventHandler): void;
  /** Unregisters; the last one ends the QP. @throws SpiError('EINVAL') not registered */
  unregister(qpn: number): void;
  /** @throws SpiError('EINVAL') no such target, or an attribute that the transition refuses */
  modify(qpn: number, attributes: QueuePairAttributes): void;
  /** @throws SpiError('EINVAL') no such target in this domain */
  query(qpn: number): Readonly<QueuePairAttributes>;
  /** Numbers of all targets of the domain in this process. */
  readonly targets: readonly number[];
  /**
   * Releases the hold: the consumer's last one of a domain unregisters it, and the domain's last
   * one ends all remaining targets. Idempotent.
   * @throws SpiError('EBUSY') while SRQs or initiators made through this hold are there
   */
  close(): void;
}

export type XrcSharedReceiveQueueInit = Omit<SharedReceiveQueueInit, 'xrc'> & {
  /** Takes its completions: senders are known by number only. */
  readonly cq: CompletionQueue;
};

export type XrcInitiatorInit = Omit<
  QueuePairInit,
  'type' | 'srq' | 'xrcDomain' | 'receiveCq' | 'maxReceiveWr' | 'maxReceiveSge'
>;

export interface XrcTargetInit {
  readonly attributes: XrcTargetAttributes;
  readonly owner: XrcTargetOwner;
  /** Events of the target for the creator; unused when the domain owns it. */
  readonly onEvent: QueuePairEventHandler;
}

export type XrcPreparedTargetInit = Omit<XrcTargetInit, 'attributes'> & {
  readonly attributes?: Pick<XrcTargetAttributes, 'accessFlags' | 'pkeyIndex' | 'portNumber'>;
  /** The QP is about to end, for any reason: its connection can still be disconnected. */
  readonly onEnd?: () => void;
};

/** Path migration states, by verbs' numbers. */
export const PathMigrationState = { MIGRATED: 0, REARM: 1, ARMED: 2 } as const;
export type PathMigrationState = (typeof PathMigrationState)[keyof typeof PathMigrationState];

/**
 * Attributes for `createTarget`. A table says which are required, have a default or are refused.
 */
export interface XrcTargetAttributes extends QueuePairAttributes {
  readonly pathMigrationState?: PathMigrationState;
  readonly alternateAddressVector?: AddressVector;
  readonly alternatePkeyIndex?: number;
  readonly alternatePortNumber?: number;
  /** Exponent, as `timeout`. */
  readonly alternateTimeout?: number;
}
