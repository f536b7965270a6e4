/** A completion ring filled by ibv_poll_cq. */
import { checkInteger } from '../../../core/spi/checks/index.js';
import { einval } from '../../../core/spi/errors/einval.js';
import {
  type AsyncEventType,
  type CompletionQueue,
  type CompletionQueueInit,
  CQE_BYTES,
  type PollingMode,
  Ring,
  ringEntries,
  SpiError,
} from '../../../core/spi/index.js';
import { BoundedPolling } from './bounded-polling.js';
import type { OpenDevice } from './open-device.js';
import { check, made } from '../system/errno.js';
import type { RingArguments } from '../addon/native-addon.js';
import { VerbsObject } from './verbs-object.js';

/** A ring as the addon takes it. */
export function ringArguments(ring: Ring): RingArguments {
  return [new Uint32Array(ring.buffer), ring.entries, ring.strideBytes];
}

export class VerbsCompletionQueue extends VerbsObject implements CompletionQueue {
  private current: Ring;
  private readonly polling: BoundedPolling;

  constructor(
    device: OpenDevice,
    readonly init: CompletionQueueInit,
  ) {
    super(device, 'completion queue');
    const { minEntries } = init;
    const { maxCompletionQueueEntries } = device.attributes;
    checkEntries(minEntries, maxCompletionQueueEntries);
    const ring = Ring.allocate(ringEntries(minEntries), CQE_BYTES);
    this.current = ring;
    const number = device.addon.createCq(device.number, ...ringArguments(ring));
    this.created(made('ibv_create_cq', number, `${ring.entries} entries`));
    device.events.completionQueues.set(this.number, this);
    this.polling = new BoundedPolling({
      hasArrived: () => this.hasArrived(),
      arm: () => this.armDevice(false) === 0,
      notify: () => device.handle(() => this.notify()),
    });
  }

  get ring(): Ring {
    return this.current;
  }

  poll(): number {
    const readable = this.device.addon.poll(this.number);
    if (readable < 0) throw new SpiError('EIO', 'ibv_poll_cq failed: the device is gone');
    if (readable > 0) this.polling.active();
    return readable;
  }

  arm(solicitedOnly: boolean): void {
    if (!solicitedOnly && this.polling.takesOver()) return;
    check('ibv_req_notify_cq', this.armDevice(solicitedOnly));
  }

  setPolling(mode: PollingMode): void {
    this.polling.setMode(mode === 'event' ? this.device.polling : mode);
  }

  resize(minEntries: number): void {
    checkEntries(minEntries, this.device.attributes.maxCompletionQueueEntries);
    const from = this.current;
    const to = Ring.allocate(ringEntries(minEntries), CQE_BYTES);
    const unread = from.length;
    if (unread > to.entries) {
      throw new SpiError('EINVAL', `resize to ${to.entries}: ${unread} completions are unread`);
    }
    for (let i = 0; i < unread; i++) {
      const at = from.wordOf(from.consumer + i);
      to.words.set(from.words.subarray(at, at + from.strideWords), to.wordOf(i));
    }
    to.producer = unread;
    const errno = this.device.addon.resizeCq(this.number, ...ringArguments(to));
    check('ibv_resize_cq', errno, `${to.entries} entries`);
    this.current = to;
  }

  /** The device says that a completion has come. */
  notify(): void {
    if (this.destroyed) return;
    this.polling.active();
    this.init.onNotify();
  }

  deliver(type: AsyncEventType): void {
    if (!this.destroyed) this.init.onEvent(type);
  }

  protected release(number: number): [string, number] {
    return ['ibv_destroy_cq', this.device.addon.destroyCq(number)];
  }

  protected override onDestroyed(number: number): void {
    this.polling.stop();
    this.device.events.completionQueues.delete(number);
  }

  private armDevice(solicitedOnly: boolean): number {
    return this.device.addon.arm(this.number * 2 + (solicitedOnly ? 1 : 0));
  }

  /** True if something is there that core has not read; a device that is gone counts. */
  private hasArrived(): boolean {
    return this.device.addon.poll(this.number) !== 0;
  }
}

function checkEntries(minEntries: number, max: number): void {
  checkInteger('minEntries', minEntries, 1, 2 ** Math.floor(Math.log2(max)), einval);
}
