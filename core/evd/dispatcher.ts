/**
 * The pump of an EVD: hands events to whoever takes them, then arms the completion queue and looks
 * once more. It runs from the scheduler and from the device's notification, never from inside a
 * call of the consumer.
 */
import type { Scheduler } from '../spi/index.js';
import { type ArmController, Want } from './arm-controller.js';
import { EVD_CONFIGURATIONS, type EvdConfiguration, type EvdTaker } from './evd-states.js';
import type { EventSink } from './event-sink.js';
import type { EventStore } from './event-store.js';
import type { UpcallRunner } from './upcall-runner.js';
import type { Waiter } from './waiter.js';

/** Events handed over in one turn, so that a busy EVD does not keep packets from being served. */
const BURST = 256;

export class Dispatcher {
  waiter: Waiter | undefined;
  /** An iteration is under way, whether or not it waits just now. */
  iterating = false;
  sink: EventSink | undefined;
  configuration: EvdConfiguration = 'THRESHOLD';
  /** Connect EVDs that want to know of failed completions here. */
  watchers = 0;
  /** Endpoints that wait for their completions whether or not anybody takes events. */
  holders = 0;
  private open = true;
  /** Something that notifies has come, or somebody new takes events: there is work to hand over. */
  private due = false;
  private scheduled = false;
  private pumping = false;
  private again = false;

  constructor(
    private readonly store: EventStore,
    private readonly upcalls: UpcallRunner,
    private readonly arm: ArmController | undefined,
    private readonly scheduler: Scheduler,
  ) {}

  get taker(): EvdTaker {
    if (this.iterating) return 'iterator';
    if (this.waiter !== undefined) return 'waiter';
    if (this.sink !== undefined) return 'subscription';
    return this.upcalls.gate.enabled ? 'upcall' : 'none';
  }

  /** What is wanted of the next completion. */
  get want(): Want {
    if (this.open && this.holders > 0) return Want.NEXT;
    if (this.open && this.wantsNext()) {
      const { solicited } = EVD_CONFIGURATIONS[this.configuration];
      return solicited ? Want.SOLICITED_OR_FAILED : Want.NEXT;
    }
    return this.open && this.watchers > 0 ? Want.SOLICITED_OR_FAILED : Want.NOTHING;
  }

  /** Something may have to be done: run the pump soon. */
  kick(): void {
    this.due = true;
    if (this.pumping) this.again = true;
    else if (!this.scheduled && this.open) {
      this.scheduled = true;
      this.scheduler.defer(this.runScheduled);
    }
  }

  /** Something new that notifies is in the queue. */
  arrived(): void {
    this.due = true;
    this.upcalls.gate.arrived();
    if (this.wantsNext()) this.kick();
  }

  /** The device has notified. */
  notified(): void {
    if (this.arm?.fired(this.want) === true) this.pump();
  }

  /** Arms if need be, and looks once more; what that finds is handed over by the pump. */
  armAndLook(): void {
    if (this.arm?.request(this.want) === true) this.store.scan();
  }

  /** Arms although nothing is wanted yet: the first half of enabling with `refuse`. */
  armAhead(): void {
    const { solicited } = EVD_CONFIGURATIONS[this.configuration];
    this.arm?.request(solicited ? Want.SOLICITED_OR_FAILED : Want.NEXT);
  }

  /** Nothing is handed over any more. */
  close(): void {
    this.open = false;
  }

  private wantsNext(): boolean {
    if (this.waiter !== undefined || this.sink !== undefined) return true;
    return this.upcalls.gate.wantsNext;
  }

  private readonly runScheduled = (): void => {
    this.scheduled = false;
    this.pump();
  };

  private pump(): void {
    this.pumping = true;
    let budget = BURST;
    try {
      do {
        this.again = false;
        this.store.scan();
        if (this.due) {
          this.due = false;
          budget = this.serve(budget);
        }
        if (budget > 0) this.armAndLook();
      } while (this.again && budget > 0 && this.open);
    } finally {
      this.pumping = false;
      if (this.again || budget <= 0) this.kick();
    }
  }

  /** Hands over what may be handed over; returns what is left of the budget. */
  private serve(budget: number): number {
    if (!this.open) return budget;
    if (this.waiter !== undefined) return this.serveWaiter(this.waiter, budget);
    if (this.sink !== undefined) return this.serveSink(budget);
    return this.upcalls.run(budget);
  }

  private serveWaiter(waiter: Waiter, budget: number): number {
    if (this.store.pending < waiter.threshold) return budget;
    this.waiter = undefined;
    if (waiter.satisfy()) return budget - 1;
    // The endpoints of what was counted have been freed meanwhile.
    this.waiter = waiter;
    return budget;
  }

  private serveSink(budget: number): number {
    let left = budget;
    const sink = this.sink;
    while (left > 0 && sink !== undefined && this.sink === sink) {
      const event = this.store.take();
      if (event === undefined) break;
      sink.next(event);
      left--;
    }
    return left;
  }
}
