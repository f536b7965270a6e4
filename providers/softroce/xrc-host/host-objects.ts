/** The host's objects on its device: openers' memory and receive queues, and the targets. */
import { constants } from 'node:buffer';
import {
  type AsyncEventType,
  type CmConnection,
  type CmEvent,
  type CmModule,
  type CompletionQueue,
  type HandedRequest,
  type ProtectionDomain,
  QpType,
  type QueuePair,
  type QueuePairAttributes,
  SpiError,
  type Ring,
  type SharedReceiveQueueInit,
  type SharedReceiveRing,
} from '../../../core/spi/index.js';
import { TARGET_CAPABILITIES } from '../../../plugins/xrc/index.js';
import type { HcaDevice } from '../../hca/index.js';
import type { Hca } from '../../hca/hca.js';
import type { Domain } from '../../hca/memory/domain.js';
import type { SoftXrcDomain } from '../../hca/srq/xrc-domain.js';
import type {
  HostedObject,
  HostedQueue,
  HostedSpace,
  HostedTargetObject,
  HostObjects,
  QueueEvents,
} from './host-domain.js';
import type { HandedAnswer, Request } from './messages.js';
import { queueRings, queueRingsBytes } from './rings.js';
import type { SoftCompletionQueue } from '../../hca/completions/completion-queue.js';
import { SoftSharedReceiveQueue } from '../../hca/srq/shared-receive-queue.js';
import { countSharedReceives } from '../../hca/reference-counts.js';

type Of<Name> = Extract<Request, { readonly op: Name }>;

/** How memory of other processes is mapped. @throws Error for any other length than its own */
export interface MemoryMapper {
  mapSharedTable(descriptor: number, lengthBytes: number): ArrayBuffer;
}

export class DeviceObjects implements HostObjects {
  private readonly domain: SoftXrcDomain;
  private readonly pd: ProtectionDomain;
  /** A queue that stays empty: a queue pair needs one. */
  private readonly cq: CompletionQueue;

  constructor(
    private readonly device: HcaDevice,
    private readonly cm: HandedCm,
    private readonly memory: MemoryMapper,
  ) {
    this.domain = device.createXrcDomain() as SoftXrcDomain;
    this.pd = device.createProtectionDomain();
    this.cq = device.createCompletionQueue({
      minEntries: 1,
      onNotify: () => undefined,
      onEvent: () => undefined,
    });
  }

  createSpace(): HostedSpace {
    return new Space(this.device, this.memory, this.domain);
  }

  createTarget(onEvent: (event: AsyncEventType) => void): HostedTargetObject {
    const { pd, cq, domain } = this;
    const qp = this.device.createQueuePair({
      ...TARGET_CAPABILITIES,
      type: QpType.XRC_TGT,
      pd,
      sendCq: cq,
      receiveCq: cq,
      context: 0,
      onEvent,
      xrcDomain: domain,
    });
    return new HostedQp(qp, this.cm);
  }

  repeat(request: HandedRequest): void {
    this.cm.repeatHanded?.(request);
  }
}

/** The calls of a CM module that answer for other processes. */
export type HandedCm = Pick<CmModule, 'acceptHanded' | 'repeatHanded'>;

class HostedQp implements HostedTargetObject {
  private connection: CmConnection | undefined;

  constructor(
    private readonly qp: QueuePair,
    private readonly cm: HandedCm,
  ) {}

  get qpn(): number {
    return this.qp.qpn;
  }

  modify(attributes: object): void {
    this.qp.modify(attributes);
  }

  query(): Readonly<QueuePairAttributes> {
    return this.qp.query();
  }

  accept(request: HandedRequest, answer: HandedAnswer, onEvent: (event: CmEvent) => void): void {
    this.connection = this.cm.acceptHanded?.(request, { ...answer, qp: this.qp, onEvent });
    if (this.connection === undefined) {
      throw new SpiError('EOPNOTSUPP', 'the CM module of the host answers for itself only');
    }
  }

  /** Destroys it, and tells its peer. */
  destroy(): void {
    this.connection?.disconnect();
    this.qp.destroy();
  }
}

class Space implements HostedSpace {
  private readonly pd: Domain;
  private readonly hca: Hca;

  constructor(
    private readonly device: HcaDevice,
    private readonly memory: MemoryMapper,
    private readonly domain: SoftXrcDomain,
  ) {
    this.pd = device.createProtectionDomain() as Domain;
    this.hca = device.hca;
  }

  addRegion(request: Of<'addRegion'>, descriptor: number): HostedObject {
    const { key, access, iova, memoryBytes, offset, lengthBytes } = request;
    if (offset + lengthBytes > memoryBytes) {
      throw new SpiError('EINVAL', `${offset} + ${lengthBytes} of ${memoryBytes} bytes`);
    }
    const memory = this.map(descriptor, memoryBytes);
    const bytes = new Uint8Array(memory, offset, lengthBytes);
    return this.hca.memory.register(this.pd, bytes, access, iova, key);
  }

  addQueue(request: Of<'addQueue'>, descriptor: number, events: QueueEvents): HostedQueue {
    const { srqn, maxWr, maxSge } = request;
    const { maxSge: mostSge, maxSharedReceiveQueueWr: mostWr } = this.device.attributes;
    if (maxWr < 1 || maxWr > mostWr || maxSge > mostSge) {
      throw new SpiError(
        'EINVAL',
        `${maxWr} receives of ${maxSge} segments: ${mostWr}, ${mostSge}`,
      );
    }
    const memory = this.map(descriptor, queueRingsBytes(maxWr, maxSge));
    const rings = queueRings(memory, maxWr, maxSge);
    const cq = this.device.createCompletionQueue({
      minEntries: rings.completions.entries,
      onNotify: () => {
        events.onCompletions();
        cq.arm(false);
      },
      onEvent: () => undefined,
    });
    cq.arm(false);
    const { receives, completions } = rings;
    try {
      const srq = hostSharedReceiveQueue(
        this.hca,
        {
          pd: this.pd,
          maxWr,
          maxSge,
          onEvent: (event) => events.onEvent(event),
          xrc: { domain: this.domain, cq },
        },
        { srqn, receives, completions },
      );
      return {
        look: () => srq.ringDoorbell(),
        setLimit: (limit) => srq.setLimit(limit),
        fail: () => srq.onCqOverrun(),
        destroy: () => {
          srq.destroy();
          cq.destroy();
        },
      };
    } catch (error) {
      cq.destroy();
      throw error;
    }
  }

  destroy(): void {
    this.pd.destroy();
  }

  /** @throws SpiError('EINVAL') it is no memory of that length; ('EOVERFLOW') */
  private map(descriptor: number, lengthBytes: number): ArrayBuffer {
    // A buffer of more bytes than Node.js allows would end the process.
    if (lengthBytes > constants.MAX_LENGTH) {
      const message = `${lengthBytes} bytes; a region has at most ${constants.MAX_LENGTH}`;
      throw new SpiError('EOVERFLOW', message);
    }
    try {
      return this.memory.mapSharedTable(descriptor, lengthBytes);
    } catch (cause) {
      throw new SpiError('EINVAL', `no shared memory of ${lengthBytes} bytes`, { cause });
    }
  }
}

// XRC receive queues of other processes, in the process that hosts their domain.

export interface HostedReceives {
  /** The number given out by the process that made the queue. */
  readonly srqn: number;
  /** In memory shared by both processes. */
  readonly receives: SharedReceiveRing;
  readonly completions: Ring;
}

/** @throws SpiError('EBUSY') the number is in use */
export function hostSharedReceiveQueue(
  hca: Hca,
  init: SharedReceiveQueueInit & Required<Pick<SharedReceiveQueueInit, 'xrc'>>,
  { srqn, receives, completions }: HostedReceives,
): SoftSharedReceiveQueue {
  if (srqn === 0 || hca.sharedReceives.find(srqn) !== undefined) {
    throw new SpiError('EBUSY', `receive queue number ${srqn} is in use`);
  }
  const srq = new SoftSharedReceiveQueue(hca, srqn, init, init.maxWr);
  srq.ring = receives;
  srq.words = receives.slots.words;
  (init.xrc.cq as SoftCompletionQueue).ring = completions;
  hca.sharedReceives.insert(srq);
  countSharedReceives(srq, 1);
  return srq;
}
