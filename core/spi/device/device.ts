/**
 * The verbs-level contract between core and a provider. Read docs/spi.md first: it says which side
 * may call what and when, re-entrancy, memory ordering and which side owns a buffer until when.
 *
 * Every call here is synchronous and never blocks for long; what must wait (addresses, connections,
 * completions) arrives through handlers, which run at the end of the driver's pump and never from
 * inside a call of the consumer. Failures are SpiError.
 */
import type { Gid } from '../wire/address.js';
import type { CmElsewhere } from '../modules/cm.js';
import type { DeviceShare } from './device-share.js';
import type { AsyncEventType, QpState, QpType } from '../wire/ib.js';
import type { NetworkReport } from '../port/network-report.js';
import type { PeerDevice } from '../port/packet-port.js';
import type { Ring, SharedReceiveRing } from '../layout/ring.js';
import type { XrcTargetOwner } from '../modules/xrc.js';

/** Limits and identity of a device: the subset of `ibv_device_attr` and port attributes in use. */
export interface DeviceAttributes {
  /** A device of ours says in it what it offers its peers: see peer-agreement.ts. */
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
  /** WcFlags.SOLICITED says which completions are solicited. Absent: it is not known (verbs). */
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
  /** Processes share XRC domains: keys are known to all of them. */
  | 'xrc-between-processes';

/** How a queue pair is a member of a multicast group (IBTA 15.2.5.17, JoinState; 10.5). */
export interface MulticastOptions {
  /**
   * False: what the queue pair sends to the group itself does not come back to it. Other members
   * of the same device and host receive it. Default: true.
   */
  readonly loopback?: boolean;
  /** It only sends: nothing is received, and the host joins no group for it. Default: false. */
  readonly sendOnly?: boolean;
}

export interface Device {
  readonly name: string;
  readonly attributes: DeviceAttributes;
  readonly capabilities: ReadonlySet<DeviceCapability>;
  /** The port's GID table; index 0 is the default source. */
  readonly gids: readonly Gid[];
  /** Present where other processes have the device, too. */
  readonly share?: DeviceShare;

  createProtectionDomain(): ProtectionDomain;
  /** Memory that suits registration (page-aligned where it matters, in huge pages), zeroed. */
  allocate(lengthBytes: number): ArrayBuffer;
  /**
   * A part of a file as memory; absent where there is no such thing. It lives for as long as
   * anything refers to it, a registration included. A file that is cut short under a mapping ends
   * the process when what is gone is touched: that is the operating system's.
   * @throws SpiError('EINVAL') beyond the end of the file, or for what is no regular file;
   * ('EACCES') shared with a file that is not open for reading and writing; ('ENOMEM')
   */
  mapFile?(file: FileMapping): Uint8Array;
  /**
   * Memory that processes of one user share by a name: zeros for the first one that asks, the same
   * bytes for all others, until the last one lets go. Absent where there is no such thing.
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
   * In place of `createXrcDomain`, for a domain with a key, where another process may have to start
   * first. The event loop goes on meanwhile.
   */
  openXrcDomain?(sharing: XrcSharing): Promise<XrcDomainHandle>;

  /** Events of the device and its port; those of a queue pair or queue go to its own handler. */
  setEventHandler(handler: (event: AsyncEventType) => void): void;
  /** Takes reports of network and system about packets to a destination; the CM weighs them. */
  setReportHandler(handler: (report: NetworkReport) => void): void;

  /**
   * Keeps a MAD that leaves QP1 when a signal ends the process by its default action. Absent where
   * a device cannot, and where the system does what is needed.
   * @param mad 256 bytes, of which those behind the 52nd are 0
   * @returns a number to drop it by
   * @throws SpiError('ENETUNREACH') no local address reaches the peer
   */
  keepPartingMad?(mad: Uint8Array, to: AddressVector): number;
  dropPartingMad?(parting: number): void;

  /**
   * Sees to a way to a device of this host that offers CHANNEL, before a connection with it is
   * answered. Absent where there is no way but the network; see `PacketPort.meet`.
   */
  meet?(peer: PeerDevice, done: (met: boolean) => void): void;

  /**
   * Drives the device once without blocking: takes in what has arrived, lets completions appear in
   * their rings, sends what is due. For synchronous dequeue loops ('spin'). Handlers do not run
   * from here. Returns true when anything moved.
   */
  progress(): boolean;
  /**
   * Counters of the device and its port, by the provider's names; absent where nothing is counted.
   * They are for people: names differ from provider to provider.
   */
  readCounters?(): Readonly<Record<string, number>>;
  /** Ends the device. Idempotent; objects left over are destroyed first, in order. */
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
 * A remote key for part of a region. BIND_MW gives it (SQE.BIND_*), and a key with it that the
 * consumer chooses: the upper 24 bits of the present one, other lower 8 (`nextRkey`). It is open to
 * the queue pairs of its domain (type 1), or to the one it was bound through (type 2, 2B in IBTA).
 * Type 1 is bound anew or, with length 0, unbound by binding; type 2 must be invalidated first
 * (LOCAL_INV, SEND_WITH_INV of the peer), and is when its queue pair is reset or destroyed.
 */
export interface MemoryWindow {
  /** Handle for SQE.BIND_WINDOW. */
  readonly handle: number;
  /** Present remote key; a bind replaces it when it is done. */
  readonly rkey: number;
  /** Takes the key back, also from a peer that is using it. */
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
  /** ACKs may leave behind a message of ours that answers what they acknowledge. */
  readonly lateAcks?: boolean;
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
  /** Receives come from here instead of a receive ring; `maxReceiveWr` means nothing then. */
  readonly srq?: SharedReceiveQueue;
  readonly maxSendWr: number;
  readonly maxReceiveWr: number;
  readonly maxSendSge: number;
  readonly maxReceiveSge: number;
  readonly maxInlineBytes: number;
  /** Comes back in CQE.QP_CONTEXT; u32. */
  readonly context: number;
  readonly onEvent: QueuePairEventHandler;
  /** XRC_INI and XRC_TGT. */
  readonly xrcDomain?: XrcDomainHandle;
  /**
   * XRC_TGT that its domain owns: where processes share the domain, it ends with that, whichever
   * process made it. A device that cannot (the kernel ends a target with its last holder) ignores
   * it; default `consumer`.
   */
  readonly xrcOwner?: XrcTargetOwner;
}

export type QueuePairEventHandler = (event: AsyncEventType) => void;

/** Attributes of a transition; which are required or allowed is in `qp-transitions.ts`. */
export interface QueuePairAttributes {
  readonly state?: QpState;
  readonly currentState?: QpState;
  readonly enableSqdAsyncNotify?: boolean;
  /** Bit set of Access: what remote peers may do through this QP. */
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
  /** RDMA reads and atomics served at a time (as target), and issued at a time (as initiator). */
  readonly maxDestRdAtomic?: number;
  readonly maxRdAtomic?: number;
  /** RNR NAK timer code, 0 to 31 (IBTA table 45). */
  readonly minRnrTimer?: number;
  /** Local ACK timeout exponent, 0 to 31; 0 waits for ever. */
  readonly timeout?: number;
  /** 0 to 7 retries; 7 is seven (the kernel's rxe takes it for ever). */
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
   * With a shared receive queue: entries that messages have taken and not completed; absent when
   * the provider cannot tell.
   */
  readonly receivesTaken?: number;
  /**
   * In front of the handler given at creation stands the handler set here (the CM's): it must pass
   * on what is not its own.
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
   * UD, present with 'multicast': from now on receives datagrams to that group too (sent to QP
   * 0xffffff, with its own Q_Key), those of this device among them. Attaching twice is once.
   * @throws SpiError('EINVAL') no group, or no datagram queue pair; ('ENETUNREACH') of a family
   * that the port has no address of; ('EOPNOTSUPP') an option that the device does not have
   */
  attachMulticast?(group: Gid, options?: MulticastOptions): void;
  /** @throws SpiError('EINVAL') not attached; destroying detaches by itself */
  detachMulticast?(group: Gid): void;
  /**
   * A number that differs from before when the peer has sent or acknowledged something since.
   * Absent where only completions tell.
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
  /** The keys of its segments are of this domain, whatever the queue pairs' domains are. */
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
  /** Entries that no queue pair has taken; absent when the provider cannot tell. */
  readonly available?: number;
  /** @throws SpiError when a slot is refused: it and those behind it stay in `submissions` */
  ringDoorbell(): void;
  /**
   * Arms SRQ_LIMIT_REACHED: fires once when fewer than `limit` entries wait to be taken, at the
   * latest when the next one is; 0 disarms.
   * @throws SpiError('EINVAL') for more than `maxWr`
   */
  setLimit(limit: number): void;
  /**
   * Nothing is lost: slots keep their numbers and entries, submissions their indices. `ring` is a
   * new object when it had to grow; it never has fewer slots than before.
   * @throws SpiError('EINVAL') when more than `maxWr` entries have not completed; ('EOPNOTSUPP')
   */
  resize(maxWr: number): void;
  /** @throws SpiError('EBUSY') while a queue pair uses it */
  destroy(): void;
}

/** How a domain is opened: made if it is not there; only made; only found. */
export type XrcOpenMode = 'create' | 'exclusive' | 'existing';

export interface XrcSharing {
  readonly key: string;
  readonly mode: XrcOpenMode;
}

/** The device's part of an XRC domain; counting and sharing are the XRC module's. */
export interface XrcDomainHandle {
  /**
   * Present with 'xrc-between-processes': a hold on a target that another process has made. The
   * last hold that is destroyed ends it.
   * @throws SpiError('EINVAL') no such target in the domain
   */
  openTarget?(qpn: number, onEvent: QueuePairEventHandler): QueuePair;
  /** @throws SpiError('EBUSY') while queues or targets belong to it */
  destroy(): void;
}
