/** An XRC receive queue that a host process fills: its rings lie in memory that both have. */
import {
  AsyncEventType,
  CQE,
  type SharedReceiveQueue,
  type SharedReceiveQueueInit,
  type SharedReceiveRing,
  SpiError,
} from '../../../core/spi/index.js';
import { checkInteger } from '../../../core/spi/checks/index.js';
import { einval } from '../../../core/spi/errors/einval.js';
import type { SoftCompletionQueue } from '../../hca/completions/completion-queue.js';
import type { Hca } from '../../hca/hca.js';
import type { Domain } from '../../hca/memory/domain.js';
import type { SoftXrcDomain } from '../../hca/srq/xrc-domain.js';
import { countSharedReceives, type SharedReceives } from '../../hca/reference-counts.js';
import type { HostLink } from './host-link.js';
import { askIfThere } from './hosted-target.js';
import { type QueueRings, queueRings, queueRingsBytes } from './rings.js';

export interface HostedQueueInit {
  readonly hca: Hca;
  readonly init: SharedReceiveQueueInit;
  /** Number of its protection zone at the host. */
  readonly zone: number;
  readonly link: Pick<HostLink, 'ask' | 'look'>;
  readonly createTable: (bytes: number) => { memory: ArrayBuffer; descriptor: number };
  readonly closeDescriptor: (descriptor: number) => void;
  readonly onDestroy: () => void;
}

export class HostedQueue implements SharedReceiveQueue, SharedReceives {
  readonly srqn: number;
  readonly ring: SharedReceiveRing;
  readonly completionQueue: SoftCompletionQueue;
  readonly domain: Domain;
  readonly xrcDomain: SoftXrcDomain;
  private readonly rings: QueueRings;
  private destroyed = false;
  private failed = false;

  /** @throws SpiError of the host; ('ENOMEM') */
  constructor(private readonly parts: HostedQueueInit) {
    const { init } = parts;
    const { maxWr, maxSge, pd, xrc } = init;
    checkInteger('maxWr', maxWr, 1, parts.hca.parameters.maxQueuePairWr, einval);
    this.completionQueue = xrc!.cq as SoftCompletionQueue;
    this.domain = pd as Domain;
    this.xrcDomain = xrc!.domain as SoftXrcDomain;
    const { memory, descriptor } = parts.createTable(queueRingsBytes(maxWr, maxSge));
    try {
      this.rings = queueRings(memory, maxWr, maxSge);
      this.ring = this.rings.receives;
      this.srqn = this.announce(descriptor);
    } finally {
      parts.closeDescriptor(descriptor);
    }
    countSharedReceives(this, 1);
  }

  /** A number that is taken at the host, by one that is gone here, is not tried again. */
  private announce(descriptor: number): number {
    const { hca, link, init, zone } = this.parts;
    const { maxWr, maxSge } = init;
    for (;;) {
      const srqn = hca.sharedReceives.freshNumber();
      try {
        link.ask({ op: 'addQueue', zone, srqn, maxWr, maxSge }, [descriptor]);
        return srqn;
      } catch (error) {
        if (!(error instanceof SpiError) || error.code !== 'EBUSY') throw error;
      }
    }
  }

  ringDoorbell(): void {
    this.checkThere();
    this.parts.link.look();
  }

  setLimit(limit: number): void {
    this.checkThere();
    checkInteger('limit', limit, 0, this.parts.init.maxWr, einval);
    this.parts.link.ask({ op: 'limit', srqn: this.srqn, limit });
  }

  resize(): void {
    throw new SpiError('EOPNOTSUPP', 'a receive queue of a shared XRC domain keeps its size', {
      hint: 'make it as large as it is to become',
    });
  }

  destroy(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    this.parts.onDestroy();
    countSharedReceives(this, -1);
    askIfThere(this.parts.link, { op: 'removeQueue', srqn: this.srqn });
  }

  /** Moves the host's completions to the consumer's queue. */
  takeCompletions(): void {
    const { completions } = this.rings;
    const { words } = completions;
    const end = completions.producer;
    let index = completions.consumer;
    if (index === end || this.destroyed) return;
    for (; index !== end; index = (index + 1) >>> 0) this.copy(words, completions.wordOf(index));
    completions.consumer = index;
    const { hca } = this.parts;
    hca.publish();
    hca.requestPump();
  }

  private copy(words: Uint32Array, from: number): void {
    const cq = this.completionQueue;
    const at = cq.push(
      { qpn: words[from + CQE.QPN]!, context: words[from + CQE.QP_CONTEXT]! },
      words[from + CQE.CONTROL]!,
      words[from + CQE.WQE_INDEX]!,
      words,
      from + CQE.COOKIE_LO,
      words[from + CQE.BYTE_LENGTH]!,
    );
    // Lost: the completion queue tells all that complete there.
    if (at < 0) return;
    const { words: own } = cq.ring;
    for (const word of [CQE.IMMEDIATE_OR_INVALIDATE, CQE.VENDOR_ERROR, CQE.SRQN]) {
      own[at + word] = words[from + word]!;
    }
  }

  onCqOverrun(): void {
    if (this.failed || this.destroyed) return;
    this.failed = true;
    askIfThere(this.parts.link, { op: 'failQueue', srqn: this.srqn });
    this.parts.hca.notifications.push(() => this.onEvent(AsyncEventType.SRQ_ERR));
  }

  onEvent(event: AsyncEventType): void {
    if (this.destroyed) return;
    if (event === AsyncEventType.SRQ_ERR && this.told) return;
    if (event === AsyncEventType.SRQ_ERR) this.told = true;
    this.parts.init.onEvent(event);
  }

  /** SRQ_ERR comes once, whatever tells of it. */
  private told = false;

  private checkThere(): void {
    if (this.destroyed) throw new SpiError('EINVAL', `SRQ ${this.srqn} is destroyed`);
  }
}
