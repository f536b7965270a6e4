/**
 * The one queue of an EVD: software events merged with completions by place. Software events wait
 * in a bounded queue, completions in their ring until they are taken.
 */
import { assert } from '../../spi/checks/index.js';
import type { CompletionQueue } from '../../spi/index.js';
import type { EvdRecord } from '../evd-record.js';
import type { DatEvent, PostedEvent } from '../events/event.js';
import { CompletionCursor, NotifyLevel } from './completion-cursor.js';
import type { CompletionOwners } from './completion-owner.js';
import type { EventBatch } from './event-batch.js';

/**
 * The software queue of an EVD: a bounded ring of events, each with its place among the
 * completions. A place is the number (u32, free-running) of the next completion behind the event.
 * Places never decrease along the queue, since the poster scans the completion queue first.
 */
class EventQueue {
  private events: (PostedEvent | undefined)[];
  private places: Uint32Array;
  private head = 0;
  private count = 0;

  /** @param limit events, at least 1 */
  constructor(private limit: number) {
    this.events = new Array<PostedEvent | undefined>(limit).fill(undefined);
    this.places = new Uint32Array(limit);
  }

  get length(): number {
    return this.count;
  }

  get capacity(): number {
    return this.limit;
  }

  get full(): boolean {
    return this.count === this.limit;
  }

  /** Appends an event; there is room. */
  push(event: PostedEvent, place: number): void {
    assert(!this.full, 'there is room in the queue of an EVD', this.limit);
    const at = (this.head + this.count) % this.limit;
    this.events[at] = event;
    this.places[at] = place;
    this.count++;
  }

  /** True if the oldest event is in front of completion number `next`. */
  ready(next: number): boolean {
    return this.count > 0 && (((this.places[this.head] ?? 0) - next) | 0) <= 0;
  }

  /** Takes the oldest event; there is one. */
  shift(): PostedEvent | undefined {
    assert(this.count > 0, 'an event that is taken is in the queue');
    const event = this.events[this.head];
    this.events[this.head] = undefined;
    this.head = (this.head + 1) % this.limit;
    this.count--;
    return event;
  }

  /** Changes the limit, which must be at least `length`; nothing is lost. */
  resize(limit: number): void {
    assert(limit >= this.count, 'no event is lost by a change of length', limit);
    const events = new Array<PostedEvent | undefined>(limit).fill(undefined);
    const places = new Uint32Array(limit);
    for (let i = 0; i < this.count; i++) {
      const from = (this.head + i) % this.limit;
      events[i] = this.events[from];
      places[i] = this.places[from] ?? 0;
    }
    this.events = events;
    this.places = places;
    this.limit = limit;
    this.head = 0;
  }

  clear(): void {
    this.events.fill(undefined);
    this.head = 0;
    this.count = 0;
  }
}

/**
 * Place of a posted event on an EVD with completions. `behind`: behind all completions in the queue
 * now (they are scanned first). `here`: behind those scanned so far, in front of the next one.
 * Within `onCompletion`, both mean in front of that completion, and `after` means behind it.
 */
export type EventPlace = 'behind' | 'here' | 'after';

export class EventStore {
  private readonly cursor: CompletionCursor | undefined;
  private readonly queue: EventQueue;
  /** Events put back: in front of everything else. */
  private back: DatEvent[] | undefined;
  /** The events put back last, as long as none of them has been taken. */
  private lastBack: readonly DatEvent[] | undefined;
  /** An event to be queued as soon as there is room. */
  private late: PostedEvent | undefined;

  constructor(
    qlen: number,
    private readonly cq: CompletionQueue | undefined,
    owners: CompletionOwners,
    /** True if completions say whether they are solicited. */
    readonly reportsSolicited: boolean,
    private readonly record: EvdRecord,
  ) {
    this.queue = new EventQueue(qlen);
    const plain = reportsSolicited ? NotifyLevel.UNSOLICITED : NotifyLevel.UNKNOWN;
    this.cursor = cq === undefined ? undefined : new CompletionCursor(cq, owners, plain);
  }

  get qlen(): number {
    return this.queue.capacity;
  }

  /** Queued events, including completions scanned so far. */
  get pending(): number {
    return this.queue.length + (this.cursor?.pending ?? 0) + (this.back?.length ?? 0);
  }

  /** Completions lost because their endpoint was freed. */
  get dropped(): number {
    return this.cursor?.dropped ?? 0;
  }

  get full(): boolean {
    return this.queue.full;
  }

  /** Looks at the completion queue; returns how many new events the consumer may see. */
  scan(): number {
    if (this.cursor === undefined) return 0;
    const found = this.cursor.scan();
    if (found > 0) this.record.arrived(this.cursor.notice);
    return found;
  }

  /** A queue that cannot be read must not lose an event: the next look reports the error. */
  private scanIfPossible(): void {
    try {
      this.scan();
    } catch {
      this.record.arrived(NotifyLevel.ALWAYS);
    }
  }

  /** Queues an event at its place; false when the queue is full. */
  post(event: PostedEvent, place: EventPlace): boolean {
    const cursor = this.cursor;
    const inScan = cursor?.scanning ?? false;
    if (place === 'behind' && !inScan) this.scanIfPossible();
    if (this.queue.full) return false;
    const scanned = cursor?.scanned ?? 0;
    const follows = place === 'after' && inScan;
    if (follows && cursor !== undefined) cursor.followed = true;
    this.queue.push(event, follows ? (scanned + 1) >>> 0 : scanned);
    this.record.arrived(NotifyLevel.ALWAYS);
    return true;
  }

  /** Posts an event as soon as the full queue has room. At most one waits: all are alike. */
  postLate(event: PostedEvent): void {
    this.late ??= event;
  }

  /** Takes the oldest event; looks at the completion queue if none is known. */
  take(): DatEvent | undefined {
    if (this.back !== undefined) return this.takeBack(this.back);
    const cursor = this.cursor;
    if (cursor === undefined) return this.shift();
    while (this.advanceTo(cursor)) {
      if (this.queue.ready(cursor.next)) return this.shift();
      const event = cursor.take();
      if (event !== undefined) return event;
    }
    return undefined;
  }

  /** Takes up to `end` events into a batch, from slot 0 on; returns how many. */
  takeBatch(batch: EventBatch, end: number): number {
    const cursor = this.cursor;
    let count = 0;
    while (count < end && this.back !== undefined) {
      batch.setTaken(count++, this.takeBack(this.back)!);
    }
    if (cursor === undefined) {
      while (count < end && this.shiftInto(batch, count)) count++;
      return count;
    }
    while (count < end && this.advanceTo(cursor)) {
      if (this.queue.ready(cursor.next)) this.shiftInto(batch, count++);
      else if (cursor.takeInto(batch, count)) count++;
      if (cursor.empty || count === end) cursor.commit();
    }
    return count;
  }

  /** Puts taken events back, in front of all queued ones. */
  putBack(events: readonly DatEvent[]): void {
    this.back = [...events, ...(this.back ?? [])];
    this.lastBack = events;
    this.record.arrived(NotifyLevel.ALWAYS);
  }

  /** True if none of the events put back has been taken. */
  hasStill(events: readonly DatEvent[]): boolean {
    return this.lastBack === events;
  }

  /** Takes all events that were put back and are still there. */
  takeAgain(events: readonly DatEvent[]): void {
    for (let left = events.length; left > 0 && this.back !== undefined; left--) {
      this.takeBack(this.back);
    }
  }

  private takeBack(back: DatEvent[]): DatEvent | undefined {
    this.lastBack = undefined;
    const event = back.shift();
    if (back.length === 0) this.back = undefined;
    return event;
  }

  /** Drops and counts the completions that a freed endpoint leaves. */
  purge(context: number, srqn?: number): void {
    this.scanIfPossible();
    this.cursor?.purge(context, srqn);
  }

  /** Completions of a context that are scanned and not taken. */
  left(context: number): number {
    return this.cursor?.left(context) ?? 0;
  }

  /** Sets the limit of both queues; the caller has checked that queued events fit. */
  resize(qlen: number, cqEntries: number): void {
    this.resizeCq(cqEntries);
    this.queue.resize(qlen);
  }

  /** Sets the size of the completion queue alone. */
  resizeCq(entries: number): void {
    this.cq?.resize(entries);
    this.cursor?.rebase();
  }

  clear(): void {
    this.queue.clear();
    this.back = this.lastBack = undefined;
  }

  /** Makes the next event available; false when there is none. */
  private advanceTo(cursor: CompletionCursor): boolean {
    if (!cursor.empty || this.queue.ready(cursor.next)) return true;
    this.scan();
    return !cursor.empty || this.queue.ready(cursor.next);
  }

  private shift(): PostedEvent | undefined {
    if (this.queue.length === 0) return undefined;
    const event = this.queue.shift();
    if (this.late !== undefined) {
      this.queue.push(this.late, this.cursor?.scanned ?? 0);
      this.late = undefined;
    }
    return event;
  }

  private shiftInto(batch: EventBatch, slot: number): boolean {
    const event = this.shift();
    if (event === undefined) return false;
    batch.setEvent(slot, event);
    return true;
  }
}
