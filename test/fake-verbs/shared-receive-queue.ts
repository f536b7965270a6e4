/** Slots and their order of submission, over ibv_post_srq_recv. */
import type { SharedReceiveQueue, SharedReceiveQueueInit } from '../../core/spi/device.js';
import { Ring, ringEntries, rqeBytes, type SharedReceiveRing } from '../../core/spi/ring.js';
import { SpiError } from '../../core/spi/spi-error.js';
import { memoryOf } from './completion-queue.js';
import type { Dispatch, VerbsProtectionDomain } from './device.js';
import { check, made } from './library.js';

export class VerbsSharedReceiveQueue implements SharedReceiveQueue {
  readonly number: number;
  readonly srqn: number;
  readonly ring: SharedReceiveRing;

  constructor(
    private readonly dispatch: Dispatch,
    readonly init: SharedReceiveQueueInit,
  ) {
    const entries = ringEntries(init.maxWr);
    const slots = Ring.allocate(entries, rqeBytes(init.maxSge));
    const submissions = Ring.allocate(entries, 4);
    this.ring = { slots, submissions };
    const out = new Uint32Array(1);
    this.number = made(
      'ibv_create_srq',
      dispatch.library.createSrq(
        (init.pd as VerbsProtectionDomain).number,
        init.maxWr,
        init.maxSge,
        ...[memoryOf(slots), slots.entries, slots.strideBytes],
        ...[memoryOf(submissions), submissions.entries, submissions.strideBytes],
        out,
      ),
    );
    this.srqn = out[0] ?? 0;
    dispatch.shared.set(this.number, this);
  }

  ringDoorbell(): void {
    check('ibv_post_srq_recv', this.dispatch.library.postShared(this.number));
  }

  setLimit(limit: number): void {
    check('ibv_modify_srq', this.dispatch.library.limitSrq(this.number, limit));
  }

  resize(): void {
    throw new SpiError('EOPNOTSUPP', 'the size of this shared receive queue is fixed');
  }

  destroy(): void {
    check('ibv_destroy_srq', this.dispatch.library.destroySrq(this.number));
    this.dispatch.shared.delete(this.number);
  }
}
