/**
 * A reusable batch for `Evd.dequeueInto`: columns of numbers, so that a completion costs no object.
 * Slot i of each column belongs to the i-th event taken.
 */
import { showAs } from '../../spi/checks/index.js';
import { CQE, WcFlags, WcStatus } from '../../spi/index.js';
import { DatDto, dtoEventNumber, dtoOf, dtoStatusOf } from '../events/dto-status.js';
import type { DatEvent } from '../events/event.js';
import { checkInteger } from '../../errors/guards.js';
import type { Ep } from '../../dat/endpoint/ep.js';

const MAX_CAPACITY = 2 ** 20;

export class EventBatch {
  static {
    showAs(this, 'EventBatch', ({ count, capacity }) => ({ count, capacity }));
  }

  /** Events of the last `dequeueInto`; slots from here on are stale. */
  count = 0;
  /** DatEventNumber. */
  readonly numbers: Uint32Array;
  /** Safe integers. */
  readonly cookies: Float64Array;
  /** DatDtoStatus. */
  readonly statuses: Uint8Array;
  /** DatDto. */
  readonly operations: Uint8Array;
  /** Bytes transferred; 0 unless the status is SUCCESS. */
  readonly lengths: Uint32Array;
  /** Immediate data or the invalidated RMR context; 0 without. */
  readonly immediates: Uint32Array;
  /** The endpoint of a completion; that of a datagram is in its event. */
  readonly eps: (Ep | undefined)[];
  /** The event itself where columns do not hold it: all but DTO completions. */
  readonly events: (DatEvent | undefined)[];

  /**
   * @param capacity events, 1 to 2^20
   * @throws DatError DAT_INVALID_PARAMETER for another capacity
   */
  constructor(readonly capacity: number) {
    checkInteger('EventBatch', 'capacity', capacity, 1, MAX_CAPACITY);
    this.numbers = new Uint32Array(capacity);
    this.cookies = new Float64Array(capacity);
    this.statuses = new Uint8Array(capacity);
    this.operations = new Uint8Array(capacity);
    this.lengths = new Uint32Array(capacity);
    this.immediates = new Uint32Array(capacity);
    this.eps = new Array<Ep | undefined>(capacity).fill(undefined);
    this.events = new Array<DatEvent | undefined>(capacity).fill(undefined);
  }

  /** Fills a slot from the words of a DTO completion (CQE at `words[at]`). */
  setDto(slot: number, ep: Ep, words: Uint32Array, at: number): void {
    const control = words[at + CQE.CONTROL] ?? 0;
    const status = control & 0xff;
    const flags = (control >>> 16) & 0xff;
    this.cookies[slot] =
      (words[at + CQE.COOKIE_LO] ?? 0) + (words[at + CQE.COOKIE_HI] ?? 0) * 0x1_0000_0000;
    this.statuses[slot] = dtoStatusOf(status);
    const operation = dtoOf((control >>> 8) & 0xff, flags);
    this.operations[slot] = operation;
    this.numbers[slot] = dtoEventNumber(operation);
    this.lengths[slot] = status === WcStatus.SUCCESS ? (words[at + CQE.BYTE_LENGTH] ?? 0) : 0;
    this.immediates[slot] =
      (flags & (WcFlags.WITH_IMM | WcFlags.WITH_INV)) === 0 || operation === DatDto.RDMA_WRITE_IMMED
        ? 0
        : (words[at + CQE.IMMEDIATE_OR_INVALIDATE] ?? 0);
    this.eps[slot] = ep;
    this.events[slot] = undefined;
  }

  /** Fills a slot with an event object. */
  setEvent(slot: number, event: DatEvent): void {
    this.numbers[slot] = event.number;
    this.events[slot] = event;
    const isDatagram = event.type === 'datagram';
    this.eps[slot] = 'ep' in event && !isDatagram ? event.ep : undefined;
    if (event.type !== 'dto' && event.type !== 'rmr-bind' && !isDatagram) return;
    this.cookies[slot] = event.cookie;
    this.statuses[slot] = event.status;
    if (event.type === 'rmr-bind') return;
    this.operations[slot] = event.operation;
    this.lengths[slot] = event.transferredLength;
    const invalidated = event.type === 'dto' ? event.invalidatedRmrContext : undefined;
    this.immediates[slot] = event.immediate ?? invalidated ?? 0;
  }

  /** Fills a slot with an event that had been taken as an object, as if it had never been one. */
  setTaken(slot: number, event: DatEvent): void {
    this.setEvent(slot, event);
    if (event.type === 'dto') this.events[slot] = undefined;
  }

  /** Forgets the objects of all slots, so that they can be collected. */
  clear(): void {
    this.count = 0;
    this.eps.fill(undefined);
    this.events.fill(undefined);
  }
}
