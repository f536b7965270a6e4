/** Time and a device that move only when a test says so, one small step at a time. */
import {
  CQE,
  QpState,
  type QueuePairAttributes,
  type QueuePairInit,
  type TimerEntry,
  WcStatus,
} from '../../core/spi/index.js';
import { FakeDevice } from './fake-gsi-device.js';
import { FakeQueuePair } from './fake-queue-pair.js';
import { VirtualWorld } from './virtual-world.js';

/**
 * A scheduler that runs one task at a time. Any timer may expire at any time, so that the clock
 * need not move: an event that takes long is another that comes soon.
 */
export class StepWorld extends VirtualWorld {
  /** Names the step under way: two tasks with the same name do the same. */
  step = 'start';
  private readonly waiting: { readonly name: string; readonly task: () => void }[] = [];
  private readonly timers = new Set<TimerEntry>();

  override now(): number {
    return 1;
  }

  override defer(task: () => void): void {
    this.waiting.push({ name: this.step, task });
  }

  override start(timer: TimerEntry, deadlineUs: number): void {
    timer.deadlineUs = deadlineUs;
    timer.slot = 0;
    this.timers.add(timer);
  }

  override stop(timer: TimerEntry): void {
    timer.slot = -1;
    this.timers.delete(timer);
  }

  override get activeTimers(): number {
    return this.timers.size;
  }

  get hasTasks(): boolean {
    return this.waiting.length > 0;
  }

  runTask(): void {
    this.waiting.shift()?.task();
  }

  /** The n-th of the active timers expires. */
  expire(n: number): void {
    const timer = [...this.timers][n];
    if (!timer) return;
    this.stop(timer);
    timer.expire(timer.deadlineUs);
  }
}

export class StepQueuePair extends FakeQueuePair {
  /** Index of entries that have no completion yet. */
  readonly outstanding: number[] = [];

  override ringSendDoorbell(): void {
    this.stepDevice.checkAlive();
    const { sendRing } = this;
    while (sendRing.length > 0) {
      const index = sendRing.consumer;
      sendRing.consumer += 1;
      if (this.state === QpState.RTS) {
        this.transmit(index);
        this.outstanding.push(index);
      } else this.completeSend(index, WcStatus.WR_FLUSH_ERR);
    }
  }

  override modify(attributes: QueuePairAttributes): void {
    super.modify(attributes);
    if (attributes.state === QpState.ERR) this.flushSends();
  }

  protected override forget(): void {
    super.forget();
    this.outstanding.length = 0;
  }

  constructor(
    private readonly stepDevice: StepDevice,
    init: QueuePairInit,
    qpn: number,
  ) {
    super(stepDevice, init, qpn);
  }

  /** The oldest entry completes; a failure stops the queue and flushes those behind it. */
  completeOldest(status: WcStatus): void {
    const index = this.outstanding.shift();
    if (index === undefined) return;
    this.completeSend(index, status);
    if (status === WcStatus.SUCCESS) return;
    this.state = QpState.SQE;
    this.flushSends();
  }

  /** Status, kind and entry of the completions that have not been read. */
  get unread(): readonly number[] {
    const { ring } = this.init.sendCq;
    const list: number[] = [];
    for (let i = ring.consumer; i !== ring.producer; i++) {
      const at = ring.wordOf(i);
      for (const word of [CQE.CONTROL, CQE.WQE_INDEX]) list.push(ring.words[at + word] ?? 0);
    }
    return list;
  }

  private flushSends(): void {
    for (const index of this.outstanding.splice(0)) this.completeSend(index, WcStatus.WR_FLUSH_ERR);
  }
}

export class StepDevice extends FakeDevice {
  get stepQp(): StepQueuePair {
    if (this.qp1 instanceof StepQueuePair) return this.qp1;
    throw new Error('no QP1');
  }

  protected override makeQueuePair(init: QueuePairInit, qpn: number): FakeQueuePair {
    return new StepQueuePair(this, init, qpn);
  }
}
