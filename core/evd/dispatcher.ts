/**
 * The pump of an EVD. It hands events to their consumer, then arms the completion queue and looks
 * once more. It runs from the scheduler and from the device's notification, never from inside a
 * call of the consumer.
 */
import type { Scheduler } from '../spi/index.js';
import type { Cno } from './cno/cno.js';
import { type ArmController, Want } from './queue/arm-controller.js';
import {
  EVD_CONFIGURATIONS,
  type EvdConfiguration,
  type EventConsumerKind,
} from './common/evd-states.js';
import type { EventSink } from './queue/event-sink.js';
import type { EventStore } from './queue/event-store.js';
import { NotifyLevel } from './queue/completion-cursor.js';
import type { UpcallRunner } from './upcall/runner.js';
import type { Waiting } from './queue/waiter.js';
import type { EvdRecord } from './evd-record.js';

/**
 * Events handed over in one turn, so that a busy EVD does not delay packets; fewer when handlers
 * have used up their time.
 */
const BURST = 256;

export class Dispatcher {
  waiter: Waiting | undefined;
  /** True during an iteration, even between its waits. */
  iterating = false;
  sink: EventSink | undefined;
  configuration: EvdConfiguration = 'THRESHOLD';
  /** Connect EVDs that must learn of failed completions here. */
  watchers = 0;
  /** Endpoints that need their completions even if nothing takes events. */
  holders = 0;
  /** Notified of new events while nothing takes them. */
  cno: Cno | undefined;
  private open = true;
  /** A queued event has been announced, and the present consumer does not know yet. */
  private noticed = false;
  /** True during the scan after arming, or after a notification. */
  private looking = false;
  private scheduled = false;
  private pumping = false;
  private again = false;

  constructor(
    private readonly store: EventStore,
    private readonly upcalls: UpcallRunner,
    private readonly arm: ArmController | undefined,
    private readonly scheduler: Scheduler,
    private readonly record: EvdRecord,
  ) {}

  get taker(): EventConsumerKind {
    if (this.iterating) return 'iterator';
    if (this.waiter !== undefined) return 'waiter';
    if (this.sink !== undefined) return 'subscription';
    return this.upcalls.gate.enabled ? 'upcall' : 'none';
  }

  /** The notification wanted for the next completion. */
  get want(): Want {
    if (!this.open) return Want.NOTHING;
    if (this.holders > 0) return Want.NEXT;
    if (this.wantsNext()) return this.nextByConfiguration;
    return this.watchers > 0 ? Want.SOLICITED_OR_FAILED : Want.NOTHING;
  }

  /** Runs the pump soon: there may be work. */
  kick(): void {
    if (this.pumping) this.again = true;
    else if (!this.scheduled && this.open) {
      this.scheduled = true;
      this.scheduler.defer(this.runScheduled);
    }
  }

  /** A new event is queued. */
  arrived(notice: NotifyLevel): void {
    if (notice >= this.audible) this.alert();
  }

  /** Announces queued events to the consumer of events, or to the CNO. */
  alert(): void {
    this.noticed = true;
    this.upcalls.gate.arrived();
    if (this.wantsNext()) this.kick();
  }

  /** The device has notified. */
  notified(): void {
    if (this.arm?.fired(this.want) !== true) return;
    this.run(this.isSolicited);
  }

  /** Arms if needed, and looks once more; the pump hands over any new events. */
  armAndLook(): void {
    if (this.arm?.request(this.want) === true) this.look();
  }

  /** The consumer of events has changed or left: the CNO may need to hear of queued events. */
  takerChanged(): void {
    if (this.cno === undefined || !this.open) return;
    this.armAndLook();
    if (this.noticed) this.kick();
  }

  /** Arms although nothing is wanted yet: the first half of enabling with `refuse`. */
  armAhead(): void {
    this.arm?.request(this.nextByConfiguration);
  }

  /** Stops handing over events. */
  close(): void {
    this.open = false;
  }

  /** True if only solicited and failed completions notify. */
  private get isSolicited(): boolean {
    return EVD_CONFIGURATIONS[this.configuration].solicited;
  }

  private get nextByConfiguration(): Want {
    return this.isSolicited ? Want.SOLICITED_OR_FAILED : Want.NEXT;
  }

  private wantsNext(): boolean {
    if (this.waiter !== undefined || this.sink !== undefined) return true;
    return this.upcalls.gate.wantsNext || this.cnoWants;
  }

  /** Notifies the CNO of events without a consumer, while the EVD is ENABLED. */
  private get cnoWants(): boolean {
    return this.cno !== undefined && !this.upcalls.gate.blocked && this.taker === 'none';
  }

  /** The lowest level that notifies. */
  private get audible(): NotifyLevel {
    if (!this.isSolicited) return NotifyLevel.UNSOLICITED;
    return this.looking ? NotifyLevel.UNKNOWN : NotifyLevel.ALWAYS;
  }

  private look(): void {
    this.looking = true;
    this.store.scan();
    this.looking = false;
  }

  /** The notified completion may have been seen already, without knowing that it is solicited. */
  private findSolicited(): void {
    this.look();
    if (this.store.pending > 0 && !this.store.reportsSolicited) this.alert();
  }

  private readonly runScheduled = (): void => {
    this.scheduled = false;
    // The EVD may have been freed since, with its completion queue.
    if (this.open) this.run(false);
  };

  /** Runs outside any call of the consumer: an error would otherwise leave a waiter pending. */
  private run(mayBeSolicited: boolean): void {
    try {
      if (mayBeSolicited) this.findSolicited();
      this.pump();
    } catch (error) {
      this.record.unreadable(error);
    }
  }

  private pump(): void {
    this.pumping = true;
    let budget = BURST;
    try {
      do {
        this.again = false;
        if (this.store.pending === 0) this.clearAttention();
        this.store.scan();
        budget = this.serve(budget);
        if (budget > 0) this.armAndLook();
      } while (this.again && budget > 0 && this.open && this.scheduler.mayStart());
    } finally {
      this.pumping = false;
      if (this.again || budget <= 0) this.kick();
    }
  }

  /** Clears the announcement: no event is queued. */
  private clearAttention(): void {
    this.noticed = false;
    this.upcalls.gate.due = false;
  }

  /** Hands over events within the budget; returns the rest of it. */
  private serve(budget: number): number {
    if (!this.open) return budget;
    if (this.waiter !== undefined) return this.serveWaiter(this.waiter, budget);
    if (this.sink !== undefined) return this.serveSink(budget);
    if (this.cnoWants) this.serveCno();
    return this.upcalls.run(budget);
  }

  private serveCno(): void {
    if (!this.noticed || this.store.pending === 0) return;
    this.noticed = false;
    this.cno?.notify(this.record.evd);
  }

  private serveWaiter(waiter: Waiting, budget: number): number {
    if (!this.noticed || this.store.pending < waiter.threshold) return budget;
    this.waiter = undefined;
    if (waiter.satisfy()) return budget - 1;
    // The endpoints of the counted completions have been freed meanwhile.
    this.waiter = waiter;
    return budget;
  }

  private serveSink(budget: number): number {
    let left = budget;
    const sink = this.sink;
    while (this.noticed && left > 0 && sink !== undefined && this.sink === sink) {
      const event = this.store.take();
      if (event === undefined) break;
      sink.next(event);
      left--;
      if (this.store.pending > 0 && !this.scheduler.mayStart()) return 0;
    }
    return left;
  }
}
