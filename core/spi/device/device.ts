/**
 * The verbs-level contract between core and a provider. Read docs/spi.md first: it defines which
 * side may call what and when, re-entrancy, memory ordering and the ownership of buffers.
 *
 * Every call here is synchronous and never blocks for long. Results that take time (addresses,
 * connections, completions) arrive through handlers, which run at the end of the driver's pump and
 * never from inside a call of the consumer. Failures are SpiError.
 */
import type { Gid } from '../wire/address.js';
import type { CmElsewhere } from '../modules/cm.js';
import type { DeviceShare } from './device-share.js';
import type { AsyncEventType, QpState, QpType } from '../wire/ib.js';
import type { NetworkReport } from '../port/network-report.js';
import type { PeerDevice } from '../port/packet-port.js';
import type { Ring, SharedReceiveRing } from '../layout/ring.js';
import type { XrcTargetOwner } from '../modules/xrc.js';

/** Limits and identity of a device: a subset of `ibv_device_attr` and port attributes. */
export interface DeviceAttributes {
  /** Our devices encode their offers to peers in it: see peer-agreement.ts. */
  readonly nodeGuid: bigint;
  readonly vendorId: number;
  readonly vendorPartId: number;
  readonly hardwareVersion: number;
  readonly firmwareVersion: string;
  readonly portNumber: number;
  /** Largest path MTU in bytes. */
  readonly activeMtuBytes: number;
  /** Largest message in bytes (2^31 by IBTA). */
  readonly maxMessageBytes: number;
  readonly maxQueuePairs: number;
  /** Work requests outstanding per send or receive queue. */
  readonly maxQueuePairWr: number;
  readonly maxSge: number;
  readonly maxInlineBytes: number;
  readonly maxCompletionQueues: number;
  readonly maxCompletionQueueEntries: number;
  readonly maxMemoryRegions: number;
  readonly maxMemoryRegionBytes: number;
  readonly maxMemoryWindows: number;
  readonly maxProtectionDomains: number;
  readonly maxSharedReceiveQueues: number;
  readonly maxSharedReceiveQueueWr: number;
  /** RDMA reads and atomics that a QP can have outstanding as target, and as initiator. */
  readonly maxResponderResources: number;
  readonly maxInitiatorDepth: number;
  /** WcFlags.SOLICITED marks solicited completions. Absent: the device does not know (verbs). */
  readonly reportsSolicited?: boolean;
  /** Local CA ACK delay, as the exponent of 4.096 us * 2^n. */
  readonly localAckDelay: number;
}

/** Capabilities of a device; core turns a missing one into DAT_MODEL_NOT_SUPPORTED. */
export type DeviceCapability =
  | 'rc'
  | 'uc'
  | 'ud'
  | 'atomic'
  | 'send-with-invalidate'
  | 'shared-receive-queue'
  | 'memory-window'
  | 'multicast'
  | 'xrc'
  /** Processes share XRC domains: all of them know their keys. */
  | 'xrc-between-processes';

/** Membership of a queue pair in a multicast group (IBTA 15.2.5.17, JoinState; 10.5). */
export interface MulticastOptions {
  /**
   * False: the queue pair does not receive its own packets to the group. Other members of the same
   * device and host receive them. Default: true.
   */
  readonly loopback?: boolean;
  /**
   * True: it only sends. It receives nothing, and the host joins no group for it. Default: false.
   */
  readonly sendOnly?: boolean;
}

export interface Device {
  readonly name: string;
  readonly attributes: DeviceAttributes;
  readonly capabilities: ReadonlySet<DeviceCapability>;
  /** The port's GID table; index 0 is the default source. */
  readonly gids: readonly Gid[];
  /** Present if other processes share the device. */
  readonly share?: DeviceShare;

  createProtectionDomain(): ProtectionDomain;
  /** Memory for registration (page-aligned where it matters, in huge pages), zeroed. */
  allocate(lengthBytes: number): ArrayBuffer;
  /**
   * A part of a file as memory; absent if the device cannot. It lives for as long as anything
   * refers to it, a registration included. Truncating a file under a mapping ends the process when
   * the missing part is accessed: the operating system does that.
   * @throws SpiError('EINVAL') beyond the end of the file, or for what is no regular file;
   * ('EACCES') shared with a file that is not open for reading and writing; ('ENOMEM')
   */
  mapFile?(file: FileMapping): Uint8Array;
  /**
   * Memory that processes of one user share by a name: zeros for the first one that asks, the same
   * bytes for all others, until the last one releases it. Absent if the device cannot.
   * @param name 1 to 40 bytes of UTF-8
   * @throws SpiError('EINVAL') the memory of that name has another size; ('EACCES') another user
   * has the name; ('ETIMEDOUT') a process that has it is stopped; ('EIO') what has the name is no
   * program of this package; ('ENOMEM')
   */
  shareMemory?(name: string, lengthBytes: number): ArrayBuffer;
  createCompletionQueue(init: CompletionQueueInit): CompletionQueue;
  createQueuePair(init: QueuePairInit): QueuePair;
  createAddressHandle(pd: ProtectionDomain, attributes: AddressVector): AddressHandle;
  /** Present with 'shared-receive-queue'. */
  createSharedReceiveQueue?(init: SharedReceiveQueueInit): SharedReceiveQueue;
  /** Present with 'memory-window'. */
  createMemoryWindow?(pd: ProtectionDomain, type: 1 | 2): MemoryWindow;
  /**
   * Present with 'xrc'.
   * @param sharing the key that other processes open it by, where they can; absent: a private one
   * @throws SpiError('EINVAL') 'exclusive' and it exists; ('ENODEV') 'existing' and it does not
   */
  createXrcDomain?(sharing?: XrcSharing): XrcDomainHandle;
  /**
   * As `createXrcDomain`, for a domain with a key, where another process may have to start first.
   * The event loop continues meanwhile.
   */
  openXrcDomain?(sharing: XrcSharing): Promise<XrcDomainHandle>;

  /** Events of the device and its port; those of a queue pair or queue go to its own handler. */
  setEventHandler(handler: (event: AsyncEventType) => void): void;
  /** Takes reports of network and system about packets to a destination; the CM weighs them. */
  setReportHandler(handler: (report: NetworkReport) => void): void;

  /**
   * Stores a MAD that QP1 sends when a signal ends the process by its default action. Absent if the
   * device cannot, or if the system does what is needed.
   * @param mad 256 bytes, of which those behind the 52nd are 0
   * @returns a number to remove it by
   * @throws SpiError('ENETUNREACH') no local address reaches the peer
   */
  keepExitMad?(mad: Uint8Array, to: AddressVector): number;
  dropExitMad?(number: number): void;

  /**
   * Opens a channel to a device of this host that offers CHANNEL, before a connection with it is
   * answered. Absent if there is only the network; see `PacketPort.meet`.
   */
  meet?(peer: PeerDevice, done: (met: boolean) => void): void;

  /**
   * Drives the device once without blocking: receives packets, shows completions in their rings,
   * sends what is due. For synchronous dequeue loops ('spin'). Handlers do not run from here.
   * Returns true if it did any work.
   */
  progress(): boolean;
  /**
   * Counters of the device and its port, by the provider's names; absent where nothing is counted.
   * They are for people: names differ from provider to provider.
   */
  readCounters?(): Readonly<Record<string, number>>;
  /** Ends the device. Idempotent; remaining objects are destroyed first, in order. */
  close(): Promise<void>;
}

/** The part of a file to map, and how. */
export interface FileMapping {
  /** An open file descriptor; it may be closed afterwards. */
  readonly fd: number;
  readonly offsetBytes: number;
  /** Absent: up to the end of the file. */
  readonly lengthBytes: number | undefined;
  /** Changes go to the file and to others that map it; else they stay private (copy on write). */
  readonly shared: boolean;
}

export interface ProtectionDomain {
  /**
   * Registers memory.
   * @param memory must be neither resizable nor pooled; it is kept alive until deregistered
   * @param access bit set of `Access`
   * @param iova address of the first byte, in segments and for the peer; absent: the provider's
   * choice
   * @throws SpiError('EINVAL') also when the region would leave the 64-bit address space, and where
   * a device needs iova and memory to agree modulo its page
   */
  registerMemory(memory: ArrayBufferView, access: number, iova?: bigint): MemoryRegion;
  /**
   * @throws SpiError('EBUSY') while regions, windows, queue pairs, shared receive queues or address
   * handles belong to it
   */
  destroy(): void;
}

export interface MemoryRegion {
  readonly lkey: number;
  readonly rkey: number;
  readonly lengthBytes: number;
  readonly iova: bigint;
  /** @throws SpiError('EBUSY') while a window is bound to it */
  destroy(): void;
}

/**
 * A remote key for part of a region. BIND_MW sets it (SQE.BIND_*), with a key that the consumer
 * chooses: the upper 24 bits of the present one, other lower 8 (`nextRkey`). It is open to the
 * queue pairs of its domain (type 1), or to the one it was bound through (type 2, 2B in IBTA). Type
 * 1 is bound again or, with length 0, unbound by binding. Type 2 must be invalidated first
 * (LOCAL_INV, SEND_WITH_INV of the peer); resetting or destroying its queue pair also does that.
 */
export interface MemoryWindow {
  /** Handle for SQE.BIND_WINDOW. */
  readonly handle: number;
  /** Present remote key; a bind replaces it when it completes. */
  readonly rkey: number;
  /** Revokes the key, also from a peer that is using it. */
  destroy(): void;
}

export interface AddressVector {
  readonly gid: Gid;
  readonly localGidIndex: number;
  /** 0 to 255. */
  readonly trafficClass?: number;
  /** 1 to 255; default 64. */
  readonly hopLimit?: number;
  /** 20 bits. */
  readonly flowLabel?: number;
  /** Terms that a connected queue pair's peer has agreed to; absent for a peer of another make. */
  readonly peer?: PeerTerms;
}

/** Terms that our peers and a queue pair keep to: see peer-agreement.ts. */
export interface PeerTerms {
  /** ACKs may be sent after a message of ours that answers what they acknowledge. */
  readonly lateAcks?: boolean;
  /**
   * Both sides keep end-to-end flow control (IBTA 9.7.7.2), and the responder sends an ACK unasked
   * when its consumer posts receives to a queue that the peer thinks empty.
   */
  readonly credits?: boolean;
  /** The UDP port that all packets of the peer come from, 1 to 65535: others are dropped. */
  readonly sourcePort?: number;
}

export interface AddressHandle {
  /** Number for SQE.ADDRESS_HANDLE. */
  readonly handle: number;
  destroy(): void;
}

/** How core learns of completions: by a wake-up, by polling for a while, or only by dequeueing. */
export type PollingMode = 'event' | 'adaptive' | 'spin';

export interface CompletionQueueInit {
  /** The ring gets at least this many entries. */
  readonly minEntries: number;
  /** Notification after `arm`; runs at the end of the pump. */
  readonly onNotify: () => void;
  /** CQ_ERR: the ring overran; every queue pair on it goes to ERR. */
  readonly onEvent: (event: AsyncEventType) => void;
}

export interface CompletionQueue {
  readonly ring: Ring;
  /**
   * Makes completions readable in the ring and returns how many are (at most the ring's size). The
   * caller reads entries from `ring.consumer` on, advances it and polls again until 0. Never
   * notifies.
   * @throws SpiError('EIO') when the device is gone
   */
  poll(): number;
  /**
   * One-shot: notify for the next completion *added after this call* (with `solicitedOnly`, the
   * next solicited or failed one). Arming again widens, never narrows, and nothing disarms. A
   * notification may find nothing to read.
   * @throws SpiError when the provider cannot arm
   */
  arm(solicitedOnly: boolean): void;
  setPolling(mode: PollingMode): void;
  /**
   * Replaces the ring by one of at least `minEntries`; unread completions move over in order.
   * `ring` is a new object afterwards.
   * @throws SpiError('EINVAL') when they do not fit
   */
  resize(minEntries: number): void;
  /** @throws SpiError('EBUSY') while a queue pair uses it */
  destroy(): void;
}

export interface QueuePairInit {
  readonly type: QpType;
  readonly pd: ProtectionDomain;
  readonly sendCq: CompletionQueue;
  readonly receiveCq: CompletionQueue;
  /** Source of its receives in place of a receive ring; `maxReceiveWr` is ignored then. */
  readonly srq?: SharedReceiveQueue;
  readonly maxSendWr: number;
  readonly maxReceiveWr: number;
  readonly maxSendSge: number;
  readonly maxReceiveSge: number;
  readonly maxInlineBytes: number;
  /** Copied to CQE.QP_CONTEXT; u32. */
  readonly context: number;
  readonly onEvent: QueuePairEventHandler;
  /**
   * UD: what it sends to groups does not come back to it. A device that decides so for each group,
   * in `attachMulticast`, ignores it; another one needs it for `loopback: false`.
   */
  readonly blocksOwnMulticast?: boolean;
  /** XRC_INI and XRC_TGT. */
  readonly xrcDomain?: XrcDomainHandle;
  /**
   * XRC_TGT owned by its domain. If processes share the domain, the target ends with it, whichever
   * process created it. A device that cannot (the kernel ends a target with its last holder)
   * ignores it; default `consumer`.
   */
  readonly xrcOwner?: XrcTargetOwner;
}

export type QueuePairEventHandler = (event: AsyncEventType) => void;

/** Attributes of a transition; which are required or allowed is in `qp-transitions.ts`. */
export interface QueuePairAttributes {
  readonly state?: QpState;
  readonly currentState?: QpState;
  readonly enableSqdAsyncNotify?: boolean;
  /** Bit set of Access: operations that remote peers may use on this QP. */
  readonly accessFlags?: number;
  readonly pkeyIndex?: number;
  readonly portNumber?: number;
  readonly qkey?: number;
  readonly addressVector?: AddressVector;
  /** 256, 512, 1024, 2048 or 4096. */
  readonly pathMtuBytes?: number;
  readonly destinationQpn?: number;
  readonly receivePsn?: number;
  readonly sendPsn?: number;
  /** RDMA reads and atomics served (as target), and in flight (as initiator). */
  readonly maxDestRdAtomic?: number;
  readonly maxRdAtomic?: number;
  /** RNR NAK timer code, 0 to 31 (IBTA table 45). */
  readonly minRnrTimer?: number;
  /** Local ACK timeout exponent, 0 to 31; 0 waits for ever. */
  readonly timeout?: number;
  /** 0 to 7 retries; 7 means seven (the kernel's rxe takes it as infinite). */
  readonly retryCount?: number;
  /** 0 to 6 retries; 7 retries for ever (IBTA). */
  readonly rnrRetryCount?: number;
}

export interface QueuePair {
  readonly qpn: number;
  readonly type: QpType;
  readonly state: QpState;
  readonly sendRing: Ring;
  /** Absent with a shared receive queue and on XRC_INI. */
  readonly receiveRing: Ring | undefined;
  /**
   * With a shared receive queue: entries that messages have taken and not completed; absent if the
   * provider cannot tell.
   */
  readonly receivesTaken?: number;
  /**
   * Sets a handler (the CM's) in front of the one given at creation. It must pass other events on.
   */
  eventHandler: QueuePairEventHandler;

  /** Work has been added to `sendRing`: once per burst. Before RTS nothing is fetched. */
  ringSendDoorbell(): void;
  /** Work has been added to `receiveRing`: once per burst. In RESET nothing is fetched. */
  ringReceiveDoorbell(): void;
  /** @throws SpiError('EINVAL') that names the missing, superfluous or wrong attribute */
  modify(attributes: QueuePairAttributes): void;
  query(): Readonly<QueuePairAttributes>;
  /**
   * UD, present with 'multicast': receives datagrams to that group too (sent to QP 0xffffff, with
   * its own Q_Key), including those of this device. Attaching twice counts once.
   * @throws SpiError('EINVAL') no group, or no datagram queue pair; ('ENETUNREACH') of a family
   * that the port has no address of; ('EOPNOTSUPP') an option that the device does not have
   */
  attachMulticast?(group: Gid, options?: MulticastOptions): void;
  /** @throws SpiError('EINVAL') not attached; destroying detaches by itself */
  detachMulticast?(group: Gid): void;
  /**
   * A number that changes when the peer has sent or acknowledged something. Absent if only
   * completions tell.
   */
  lifeSign?(): number;
  /**
   * True if the connection's peer is blocked: its last message found no receive posted, was refused
   * (RNR NAK), and has not been accepted since. Absent on a device that does not track it.
   */
  readonly lacksReceive?: boolean;
  /**
   * The CM of the process that has this XRC target, if that is another process. A CM module that
   * accepts with such a queue pair hands the request over. Absent if the queue pair is local.
   */
  readonly cmElsewhere?: CmElsewhere;
  /** The last transitions, PSNs and timeouts, oldest first: text for people. */
  flightRecord(): readonly string[];
  /**
   * Network or system reports about the packets of a request whose retries have run out, and
   * advice: text for people. With QP_FATAL it says that the peer is gone. Absent where a provider
   * gets no such reports.
   */
  networkTrouble?(): string | undefined;
  destroy(): void;
}

export interface SharedReceiveQueueInit {
  /** Domain of its segments' keys, whatever the queue pairs' domains are. */
  readonly pd: ProtectionDomain;
  readonly maxWr: number;
  readonly maxSge: number;
  /** SRQ_LIMIT_REACHED, SRQ_ERR. */
  readonly onEvent: (event: AsyncEventType) => void;
  /** An XRC SRQ: its domain and its completion queue. */
  readonly xrc?: { readonly domain: XrcDomainHandle; readonly cq: CompletionQueue };
}

export interface SharedReceiveQueue {
  /**
   * The number that XRC senders address: 24 bits. For any other queue, a number that no queue of
   * the device has, and not 0: completions carry it.
   */
  readonly srqn: number;
  readonly ring: SharedReceiveRing;
  /** Entries that no queue pair has taken; absent if the provider cannot tell. */
  readonly available?: number;
  /** @throws SpiError when a slot is refused: it and those behind it stay in `submissions` */
  ringDoorbell(): void;
  /**
   * Arms SRQ_LIMIT_REACHED. It fires once when fewer than `limit` entries are left, at the latest
   * when the next one is taken; 0 disarms.
   * @throws SpiError('EINVAL') for more than `maxWr`
   */
  setLimit(limit: number): void;
  /**
   * Resizes without loss: slots keep their numbers and entries, submissions their indices. `ring`
   * is a new object if it had to grow; it never has fewer slots than before.
   * @throws SpiError('EINVAL') when more than `maxWr` entries have not completed; ('EOPNOTSUPP')
   */
  resize(maxWr: number): void;
  /** @throws SpiError('EBUSY') while a queue pair uses it */
  destroy(): void;
}

/** How a domain is opened: created if it does not exist; must not exist; must exist. */
export type XrcOpenMode = 'create' | 'exclusive' | 'existing';

export interface XrcSharing {
  readonly key: string;
  readonly mode: XrcOpenMode;
}

/** The device's part of an XRC domain; the XRC module counts and shares it. */
export interface XrcDomainHandle {
  /**
   * Present with 'xrc-between-processes': a hold on a target of another process. Destroying the
   * last hold ends it.
   * @throws SpiError('EINVAL') no such target in the domain
   */
  openTarget?(qpn: number, onEvent: QueuePairEventHandler): QueuePair;
  /** @throws SpiError('EBUSY') while queues or targets belong to it */
  destroy(): void;
}
