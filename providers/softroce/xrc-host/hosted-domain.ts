/** The opener's side of a domain in a host process, where its work is done. */
import {
  AsyncEventType,
  type CmEvent,
  type QueuePair,
  type QueuePairEventHandler,
  type QueuePairInit,
  type SharedReceiveQueue,
  type SharedReceiveQueueInit,
  SpiError,
  type XrcOpenMode,
} from '../../../core/spi/index.js';
import type { Hca } from '../../hca/hca.js';
import type { Domain } from '../../hca/memory/domain.js';
import { SoftXrcDomain, type XrcHostProcess } from '../../hca/srq/xrc-domain.js';
import { HostLink, type HostLinkInit } from './host-link.js';
import { HostedQueue } from './hosted-queue.js';
import { HostedTarget } from './hosted-target.js';
import type { Note } from './messages.js';
import { Mirror, type SharedNames } from './mirror.js';

export interface HostedDomainInit {
  readonly hca: Hca;
  readonly names: SharedNames;
  readonly link: Pick<HostLinkInit, 'socket' | 'turn'>;
  readonly createTable: (bytes: number) => { memory: ArrayBuffer; descriptor: number };
  readonly closeDescriptor: (descriptor: number) => void;
  readonly memoryDescriptor: (name: string) => number;
}

export class HostedDomain extends SoftXrcDomain implements XrcHostProcess {
  override readonly hostProcess: XrcHostProcess = this;
  readonly link: HostLink;
  private readonly queues = new Map<number, HostedQueue>();
  /** Each is a hold: an opener may have several of one target. */
  private readonly targets = new Set<HostedTarget>();
  private readonly mirrors = new Map<Domain, Mirror>();
  /** Zone numbers given out. */
  private zones = 0;
  /** Event handlers of connections whose target was accepted here. */
  private readonly connections = new Map<number, (event: CmEvent) => void>();

  /** It is `open`ed before anything else. */
  constructor(private readonly init: HostedDomainInit) {
    super(init.hca);
    this.link = new HostLink({
      ...init.link,
      onNote: (note) => this.onNote(note),
      onEnd: () => this.onEnd(),
    });
  }

  /** Rejects with SpiError('EINVAL', 'ENODEV') by the mode; ('EIO') the host has ended. */
  async open(mode: XrcOpenMode): Promise<void> {
    try {
      await this.link.askLater({ op: 'open', mode });
    } catch (error) {
      this.link.close();
      throw error;
    }
  }

  createSharedReceiveQueue(init: SharedReceiveQueueInit): SharedReceiveQueue {
    const pd = init.pd as Domain;
    const { zone } = this.mirrorOf(pd);
    const { hca, createTable, closeDescriptor } = this.init;
    const queue: HostedQueue = new HostedQueue({
      hca,
      init,
      zone,
      link: this.link,
      createTable,
      closeDescriptor,
      onDestroy: () => this.queues.delete(queue.srqn),
    });
    this.queues.set(queue.srqn, queue);
    return queue;
  }

  createTarget(init: QueuePairInit): QueuePair {
    const { xrcOwner: owner = 'consumer' } = init;
    const qpn = this.link.ask({ op: 'createTarget', owner }) as number;
    return this.held(qpn, init.onEvent);
  }

  openTarget(qpn: number, onEvent: QueuePairEventHandler): QueuePair {
    this.link.ask({ op: 'hold', qpn });
    return this.held(qpn, onEvent);
  }

  override destroy(): void {
    if (this.destroyed) return;
    super.destroy();
    for (const mirror of this.mirrors.values()) mirror.detach();
    this.link.close();
  }

  private held(qpn: number, onEvent: QueuePairEventHandler): HostedTarget {
    const target: HostedTarget = new HostedTarget(qpn, this.link, onEvent, {
      onDestroy: () => {
        this.targets.delete(target);
        this.children -= 1;
      },
      onAccept: (onConnection) => this.connections.set(qpn, onConnection),
    });
    this.targets.add(target);
    this.children += 1;
    return target;
  }

  /** The host places in the regions of a protection domain from its first queue here on. */
  private mirrorOf(pd: Domain): Mirror {
    const found = this.mirrors.get(pd);
    if (found !== undefined && !pd.destroyed) return found;
    if (pd.mirror !== undefined) {
      throw new SpiError('EOPNOTSUPP', 'the protection zone is in use in another XRC domain', {
        hint: 'take a zone for each domain that processes share',
      });
    }
    const { names, memoryDescriptor } = this.init;
    const mirror = new Mirror(pd, ++this.zones, this.link, names, memoryDescriptor);
    mirror.begin(this.init.hca.memory.regionsOf(pd));
    this.mirrors.set(pd, mirror);
    return mirror;
  }

  private onNote(note: Note): void {
    switch (note.note) {
      case 'look':
        for (const queue of this.queues.values()) queue.takeCompletions();
        return;
      case 'targetEvent':
        this.tellTargets(note.event as AsyncEventType, note.qpn);
        return;
      case 'connectionEvent':
        this.connections.get(note.qpn)?.(note.event);
        return;
      case 'queueEvent':
        this.queues.get(note.srqn)?.onEvent(note.event as AsyncEventType);
    }
  }

  /** Ends what the host shared. Completions that it has shown are not lost. */
  private onEnd(): void {
    for (const queue of [...this.queues.values()]) {
      queue.takeCompletions();
      queue.onEvent(AsyncEventType.SRQ_ERR);
    }
    this.tellTargets(AsyncEventType.QP_FATAL);
  }

  private tellTargets(event: AsyncEventType, qpn?: number): void {
    for (const target of [...this.targets]) {
      const isMeant = qpn === undefined || target.qpn === qpn;
      if (isMeant && this.targets.has(target)) target.eventHandler(event);
    }
  }
}
