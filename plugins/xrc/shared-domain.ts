/**
 * A domain that consumers share: the device's domain, its targets, and the consumers' handles.
 * Targets need a protection domain and a completion queue only because every queue pair has them;
 * the domain has one of each, which stay unused.
 */
import { show } from '../../core/spi/checks/index.js';
import {
  Access,
  type AsyncEventType,
  type CompletionQueue,
  type Device,
  type Logger,
  type ProtectionDomain,
  QpState,
  QpType,
  type QueuePair,
  type QueuePairAttributes,
  SpiError,
  type XrcConsumer,
  type XrcDomainHandle,
  type XrcPreparedTargetInit,
  type XrcTargetInit,
  type XrcTargetOwner,
} from '../../core/spi/index.js';
import { Target } from './target.js';
import { TARGET_CAPABILITIES, planTarget } from './target-attributes.js';

const EVERY_ACCESS =
  Access.LOCAL_WRITE | Access.REMOTE_WRITE | Access.REMOTE_READ | Access.REMOTE_ATOMIC;

export class SharedDomain {
  private readonly targets = new Map<number, Target>();
  /** Number of handles of each consumer. */
  private readonly holds = new Map<XrcConsumer, number>();
  private pd: ProtectionDomain | undefined;
  private cq: CompletionQueue | undefined;

  /** @param onEnd is called when the last handle is closed */
  constructor(
    readonly key: string | undefined,
    readonly handle: XrcDomainHandle,
    private readonly device: Device,
    private readonly logger: Logger,
    private readonly onEnd: () => void,
  ) {}

  get qpns(): number[] {
    return [...this.targets.keys()];
  }

  hold(consumer: XrcConsumer): void {
    this.holds.set(consumer, (this.holds.get(consumer) ?? 0) + 1);
  }

  /**
   * Closes a handle. With a consumer's last one it is unregistered everywhere; the last of all
   * destroys the domain.
   */
  leave(consumer: XrcConsumer): void {
    const left = (this.holds.get(consumer) ?? 1) - 1;
    if (left > 0) {
      this.holds.set(consumer, left);
      return;
    }
    this.holds.delete(consumer);
    for (const target of [...this.targets.values()]) {
      if (target.has(consumer)) target.unregister(consumer);
    }
    if (this.holds.size === 0) this.end();
  }

  /** @throws SpiError of the table, or of the device: then nothing is created */
  createTarget(consumer: XrcConsumer, init: XrcTargetInit): Target {
    const plan = planTarget(init.attributes);
    return this.newTarget(consumer, init, plan.init, plan.rtr);
  }

  /** Creates a target in INIT. */
  prepareTarget(consumer: XrcConsumer, init: XrcPreparedTargetInit): Target {
    const { accessFlags = EVERY_ACCESS, pkeyIndex = 0, portNumber } = init.attributes ?? {};
    return this.newTarget(consumer, init, {
      state: QpState.INIT,
      accessFlags,
      pkeyIndex,
      portNumber: portNumber ?? this.device.attributes.portNumber,
    });
  }

  /** @throws SpiError('EINVAL') no target has that number */
  target(qpn: number): Target {
    const target = this.targets.get(qpn);
    if (target) return target;
    const key = this.key === undefined ? 'a private domain' : `domain ${show(this.key)}`;
    throw new SpiError('EINVAL', `no target ${qpn} in ${key}`);
  }

  /**
   * Like `target`, for a target to be registered with: another process may have created it.
   * @throws SpiError('EINVAL') no target has that number
   */
  targetOfAnyone(qpn: number): Target {
    const { handle } = this;
    if (this.targets.has(qpn) || !handle.openTarget) return this.target(qpn);
    const qp = handle.openTarget(qpn, (event) => target.deliver(event));
    const target: Target = this.add(qp, 'consumer');
    return target;
  }

  /** Calls `action` with a target, including one of another process that is not registered here. */
  with<T>(qpn: number, action: (qp: QueuePair) => T): T {
    const { handle } = this;
    if (this.targets.has(qpn) || !handle.openTarget) return action(this.target(qpn).qp);
    const qp = handle.openTarget(qpn, () => undefined);
    try {
      return action(qp);
    } finally {
      qp.destroy();
    }
  }

  private newTarget(
    consumer: XrcConsumer,
    { owner, onEvent, onEnd }: Omit<XrcPreparedTargetInit, 'attributes'>,
    ...transitions: readonly QueuePairAttributes[]
  ): Target {
    checkOwner(owner);
    const qp = this.createQueuePair(owner, (event) => target.deliver(event));
    const target = this.add(qp, owner, onEnd);
    if (owner === 'consumer') target.register(consumer, onEvent);
    try {
      for (const attributes of transitions) qp.modify(attributes);
    } catch (error) {
      target.end();
      throw error;
    }
    return target;
  }

  private add(qp: QueuePair, owner: XrcTargetOwner, onEnd?: () => void): Target {
    const { qpn } = qp;
    const target = new Target(qp, owner, this.logger, () => {
      this.targets.delete(qpn);
      onEnd?.();
    });
    onDestroy(qp, () => target.end());
    this.targets.set(qpn, target);
    return target;
  }

  private createQueuePair(
    xrcOwner: XrcTargetOwner,
    onEvent: (event: AsyncEventType) => void,
  ): QueuePair {
    const { device } = this;
    this.pd ??= device.createProtectionDomain();
    this.cq ??= device.createCompletionQueue({
      minEntries: 1,
      onNotify: () => undefined,
      onEvent: () => undefined,
    });
    return device.createQueuePair({
      ...TARGET_CAPABILITIES,
      type: QpType.XRC_TGT,
      pd: this.pd,
      sendCq: this.cq,
      receiveCq: this.cq,
      // No consumer's: messages of its peers complete on the SRQ that they name.
      context: 0,
      onEvent,
      xrcDomain: this.handle,
      xrcOwner,
    });
  }

  private end(): void {
    this.onEnd();
    for (const target of [...this.targets.values()]) target.end();
    this.cq?.destroy();
    this.pd?.destroy();
    this.handle.destroy();
  }
}

function checkOwner(owner: XrcTargetOwner): void {
  if (owner === 'consumer' || owner === 'domain') return;
  throw new SpiError('EINVAL', `owner is ${show(owner)}, must be 'consumer' or 'domain'`);
}

export interface Destroyable {
  destroy(): void;
}

/**
 * Calls `then` once, when an object of the device has been destroyed, however that happens. The
 * device sees one destroy, although `then` may call it again. The object is not wrapped: a wrapper
 * would slow down the data path.
 */
export function onDestroy(object: Destroyable, then: () => void): void {
  const destroy = object.destroy.bind(object);
  let gone = false;
  object.destroy = () => {
    if (gone) return;
    destroy();
    gone = true;
    then();
  };
}
