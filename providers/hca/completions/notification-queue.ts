/**
 * Work deferred to the end of the pump: notifications of queues, events and tasks, in the order of
 * their causes. A circular array of targets and arguments, so that notifying the owner of a
 * completion queue allocates nothing.
 */

/** Something that can be told; `argument` says what. */
export interface Notifiable {
  deliver(argument: number): void;
}

export class NotificationQueue {
  private targets: (Notifiable | (() => void) | undefined)[] = new Array<undefined>(64);
  private args = new Float64Array(64);
  private mask = 63;
  private head = 0;
  private tail = 0;

  /** @param onFirst called when the queue has been empty and no longer is */
  constructor(private readonly onFirst: () => void) {}

  get length(): number {
    return this.tail - this.head;
  }

  push(target: Notifiable | (() => void), argument = 0): void {
    if (this.tail - this.head > this.mask) this.grow();
    const at = this.tail & this.mask;
    this.targets[at] = target;
    this.args[at] = argument;
    this.tail += 1;
    if (this.tail - this.head === 1) this.onFirst();
  }

  /** Takes out the oldest entry and runs it. */
  runOne(): void {
    const at = this.head & this.mask;
    const target = this.targets[at]!;
    this.targets[at] = undefined;
    this.head += 1;
    if (typeof target === 'function') target();
    else target.deliver(this.args[at]!);
  }

  /** Runs the entries of this target and drops the others; those added meanwhile wait. */
  runOnly(wanted: Notifiable): void {
    for (let left = this.length; left > 0; left--) {
      if (this.targets[this.head & this.mask] === wanted) this.runOne();
      else {
        this.targets[this.head & this.mask] = undefined;
        this.head += 1;
      }
    }
  }

  private grow(): void {
    const size = (this.mask + 1) * 2;
    const targets = new Array<Notifiable | (() => void) | undefined>(size);
    const args = new Float64Array(size);
    for (let i = this.head; i < this.tail; i++) {
      targets[i - this.head] = this.targets[i & this.mask];
      args[i - this.head] = this.args[i & this.mask]!;
    }
    this.targets = targets;
    this.args = args;
    this.tail -= this.head;
    this.head = 0;
    this.mask = size - 1;
  }
}
