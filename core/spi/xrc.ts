/**
 * Contract of an XRC module (IBTA annex A14; the discussions of 2007 and 2010). A consumer is an
 * object of the caller's that identifies itself by reference (an IA). Target QPs belong to their
 * domain: registering is counted per consumer, and unregistering is destroying.
 */
import type {
  CompletionQueue,
  ProtectionDomain,
  QueuePair,
  QueuePairAttributes,
  QueuePairEventHandler,
  QueuePairInit,
  SharedReceiveQueue,
} from './device.js';

export type XrcConsumer = object;

export interface XrcModule {
  /**
   * Opens a domain by key, shared by the consumers of the device; without a key a private one.
   * @throws SpiError('EINVAL') 'exclusive' and it exists; ('ENODEV') 'existing' and it does not
   */
  openDomain(
    consumer: XrcConsumer,
    key: string | undefined,
    mode: 'create' | 'exclusive' | 'existing',
  ): XrcDomain;
  /** A consumer's end: unregisters, closes and destroys all that is its own. */
  release(consumer: XrcConsumer): void;
  close(): Promise<void>;
}

export interface XrcDomain {
  createSharedReceiveQueue(init: {
    readonly pd: ProtectionDomain;
    readonly cq: CompletionQueue;
    readonly maxWr: number;
    readonly maxSge: number;
  }): SharedReceiveQueue;
  createInitiator(init: Omit<QueuePairInit, 'type' | 'srq' | 'xrcDomain'>): QueuePair;
  /**
   * Creates a target QP and takes it through INIT to RTR.
   * @returns its number; the creator is registered, unless the domain owns it
   */
  createTarget(init: {
    readonly attributes: QueuePairAttributes;
    readonly owner: 'consumer' | 'domain';
    readonly onEvent: QueuePairEventHandler;
  }): number;
  /** Registering twice is once. @throws SpiError('EINVAL') no such target in this domain */
  register(qpn: number, onEvent: QueuePairEventHandler): void;
  /** The last one ends the QP. @throws SpiError('EINVAL') not registered */
  unregister(qpn: number): void;
  modify(qpn: number, attributes: QueuePairAttributes): void;
  query(qpn: number): Readonly<QueuePairAttributes>;
  /** @throws SpiError('EBUSY') while this consumer has SRQs or initiators in it */
  close(): void;
}
