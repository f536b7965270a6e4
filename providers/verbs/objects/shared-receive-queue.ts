/** Slots and their order of submission, over ibv_post_srq_recv. */
import { checkInteger } from '../../../core/spi/checks/index.js';
import { einval } from '../../../core/spi/errors/einval.js';
import {
  type AsyncEventType,
  Ring,
  type SharedReceiveQueue,
  type SharedReceiveQueueInit,
  type SharedReceiveRing,
  ringEntries,
  rqeBytes,
} from '../../../core/spi/index.js';
import { ringArguments } from './completion-queue.js';
import type { OpenDevice } from './open-device.js';
import { CALLS, check, made } from '../system/errno.js';
import { domainOf, queueOf, xrcDomainOf } from './parents.js';
import { VerbsObject } from './verbs-object.js';

/** `ibv_srq_attr_mask`. */
const MAX_WR = 1;
const LIMIT = 2;
const SUBMISSION_BYTES = 4;

export class VerbsSharedReceiveQueue extends VerbsObject implements SharedReceiveQueue {
  readonly srqn: number;
  private rings: SharedReceiveRing;
  private maxWr: number;

  constructor(
    device: OpenDevice,
    readonly init: SharedReceiveQueueInit,
  ) {
    super(device, 'shared receive queue');
    const { pd, maxWr, maxSge, xrc } = init;
    const { maxSharedReceiveQueueWr } = device.attributes;
    checkInteger('maxWr', maxWr, 1, maxSharedReceiveQueueWr, einval);
    checkInteger('maxSge', maxSge, 0, device.attributes.maxSge, einval);
    this.maxWr = maxWr;
    this.rings = allocateRings(maxWr, maxSge);
    const out = new Uint32Array(1);
    const { addon } = device;
    const sizes = [domainOf(device, pd).number, maxWr, Math.max(1, maxSge)] as const;
    const slots = ringArguments(this.rings.slots);
    const rings = [...slots, ...ringArguments(this.rings.submissions), out] as const;
    const number = xrc
      ? addon.createXrcSrq(...sizes, ...rings, ...xrcNumbers(device, xrc))
      : addon.createSrq(...sizes, ...rings);
    const call = xrc ? CALLS.xrcSrq : 'ibv_create_srq';
    this.created(made(call, number, `${maxWr} entries of ${maxSge} segments`));
    this.srqn = out[0] ?? 0;
    device.events.sharedQueues.set(this.number, this);
  }

  get ring(): SharedReceiveRing {
    return this.rings;
  }

  ringDoorbell(): void {
    check('ibv_post_srq_recv', this.device.addon.postShared(this.number));
  }

  setLimit(limit: number): void {
    checkInteger('limit', limit, 0, this.maxWr, einval);
    check('ibv_modify_srq', this.device.addon.modifySrq(this.number, LIMIT, 0, limit));
  }

  resize(maxWr: number): void {
    checkInteger('maxWr', maxWr, 1, this.device.attributes.maxSharedReceiveQueueWr, einval);
    const errno = this.device.addon.modifySrq(this.number, MAX_WR, maxWr, 0);
    check('ibv_modify_srq', errno, `resize to ${maxWr} entries`);
    this.maxWr = maxWr;
    if (ringEntries(maxWr) > this.rings.slots.entries) this.grow(maxWr);
  }

  deliver(type: AsyncEventType): void {
    if (!this.destroyed) this.init.onEvent(type);
  }

  protected release(number: number): [string, number] {
    return ['ibv_destroy_srq', this.device.addon.destroySrq(number)];
  }

  protected override onDestroyed(number: number): void {
    this.device.events.sharedQueues.delete(number);
  }

  /** Slots keep their numbers, submissions their indices. */
  private grow(maxWr: number): void {
    const from = this.rings;
    const to = allocateRings(maxWr, this.init.maxSge);
    to.slots.copyEntries(from.slots);
    to.submissions.producer = from.submissions.producer;
    to.submissions.consumer = from.submissions.consumer;
    for (let i = 0; i < from.submissions.length; i++) {
      const index = from.submissions.consumer + i;
      to.submissions.words[to.submissions.wordOf(index)] =
        from.submissions.words[from.submissions.wordOf(index)] ?? 0;
    }
    const rings = [...ringArguments(to.slots), ...ringArguments(to.submissions)] as const;
    check('resize', this.device.addon.replaceSrqRings(this.number, ...rings));
    this.rings = to;
  }
}

function allocateRings(maxWr: number, maxSge: number): SharedReceiveRing {
  const entries = ringEntries(maxWr);
  return {
    slots: Ring.allocate(entries, rqeBytes(maxSge)),
    submissions: Ring.allocate(entries, SUBMISSION_BYTES),
  };
}

function xrcNumbers(
  device: OpenDevice,
  { domain, cq }: NonNullable<SharedReceiveQueueInit['xrc']>,
): [domain: number, cq: number] {
  return [xrcDomainOf(device, domain).number, queueOf(device, cq).number];
}
