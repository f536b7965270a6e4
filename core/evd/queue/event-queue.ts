/**
 * The software queue of an EVD: a bounded ring of events, each with its place among the
 * completions. A place is the (u32, free-running) number of the completion that the event stands in
 * front of. Places never decrease along the queue, since the poster scans the completion queue
 * first.
 */
import { assert } from '../../spi/checks/index.js';
import type { PostedEvent } from '../events/event.js';

export class EventQueue {
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

  /** True when the oldest event stands in front of completion number `next`. */
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
