/**
 * The pump: moves packets, timers and completions of a device, then runs the handlers and deferred
 * tasks that are due, then sends what those posted. Sans-IO: the provider supplies the clock, calls
 * `pump` when the port is readable, at the deadline or when `requestPump` asks, and arms one real
 * timer for `nextDeadlineUs`.
 */
import {
  type Clock,
  GSI_QPN,
  type HandedPacket,
  type NetworkReport,
  type PacketPortHandlers,
  type Random,
  type Scheduler,
  TimerWheel,
} from '../../core/spi/index.js';
import { HcaDevice } from './device.js';
import { type DeviceSetup, Hca } from './hca.js';
import { HandlerPacer, LIMITS, type Pacer, ROUND } from './pacing/index.js';

const { ROUND: GO_ON, SEND_AND_TURN, SLEEP, WAIT_FOR_CONSUMER } = ROUND.actions;
const MAX_ROUNDS = LIMITS.MAX_ROUNDS.value;
/** Tasks that handlers defer, of one pump. */
const MAX_TASKS = MAX_ROUNDS;

export interface HcaDriverOptions extends DeviceSetup {
  readonly clock: Clock;
  readonly random: Random;
  /**
   * Work waits for `pump`: a doorbell rang, a timer was started or something was deferred, outside
   * of one. Called at most once until the next pump, possibly from inside a consumer's call: it
   * must only schedule.
   */
  readonly requestPump: () => void;
  /** A consumer that spins has looked; `busy` if something has come, or waits to be sent. */
  readonly onSpin?: (busy: boolean, nowUs: number) => void;
}

export class HcaDriver implements Scheduler {
  readonly device: HcaDevice;
  /** Timers, for modules and core too. */
  readonly timers: TimerWheel;
  private readonly hca: Hca;
  /** @internal what the event loop goes by, too */
  readonly pacer: Pacer;
  private readonly handlers = new HandlerPacer();
  /** `look` has already done the work of the first round of the next pump. */
  private ahead = false;

  constructor(private readonly options: HcaDriverOptions) {
    const { name, clock, random, hooks } = options;
    this.timers = new TimerWheel(clock.now(), () => this.hca.requestPump());
    this.hca = new Hca(options, this.timers, (cq) => this.device.onCqGone(cq));
    this.hca.nowUs = clock.now();
    this.pacer = this.hca.pacer;
    this.device = new HcaDevice(name, this.hca, random, this, hooks);
  }

  /** Runs a task at the end of the current pump, or of the next one. */
  defer(task: () => void): void {
    this.hca.notifications.push(task);
  }

  mayStart(): boolean {
    const { handlers } = this;
    return handlers.startsUnseen() || handlers.startsAt(this.options.clock.now());
  }

  /** @internal a packet that came to another process of the device */
  takeHanded(packet: HandedPacket): void {
    this.hca.takeHanded(packet);
  }

  /** Handlers for the port's `watch`; `wake` schedules a pump. */
  portHandlers(wake: () => void): PacketPortHandlers {
    return {
      onReadable: wake,
      onWritable: wake,
      onReport: (report: NetworkReport) => {
        this.hca.readClock();
        this.device.onReport(report);
      },
    };
  }

  /**
   * Moves everything that can move, and runs handlers. True when there is more to do at once: the
   * provider lets its event loop turn and pumps again.
   * @param untilHandlers ends as soon as handlers have run and nothing is to be sent: what they
   * woke goes on in a microtask, which the next look at the port would keep waiting
   * @param goesOn in the turn of the event loop of the pump before; else handlers have their time
   * anew
   */
  pump(untilHandlers = false, goesOn = false): boolean {
    const { pacer } = this;
    if (!pacer.begins()) return false;
    try {
      return this.rounds(untilHandlers, goesOn);
    } finally {
      pacer.ends();
    }
  }

  // --- what the event loop looks at -------------------------------------------------------------

  /** The time at the last look, in microseconds. */
  get nowUs(): number {
    return this.hca.nowUs;
  }

  /** Packets received. */
  get receivedPackets(): number {
    return this.hca.port.counters.receivedPackets;
  }

  /** Packets sent, without ACKs: those leave whatever the consumer does. */
  get answers(): number {
    return this.hca.port.counters.sentPackets - this.hca.counters.acksSent;
  }

  /** The total over all completion queues. */
  get completions(): number {
    return this.hca.counters.completions;
  }

  get moves(): number {
    const { receivedPackets, sentPackets } = this.hca.port.counters;
    return receivedPackets + sentPackets + this.hca.counters.completions;
  }

  onEmptyTurn(): void {
    this.hca.counters.emptyTurns++;
  }

  get isClosing(): boolean {
    return this.device.isClosing;
  }

  /** Makes progress in a spin loop. */
  progress(): boolean {
    const { hca } = this;
    const moved = this.look();
    this.options.onSpin?.(moved || hca.sendsWaiting, hca.nowUs);
    return moved;
  }

  /** Does one round without handlers; those are left to the next pump. */
  look(): boolean {
    const { hca, pacer } = this;
    if (!pacer.looks()) return this.round();
    let moved: boolean;
    try {
      moved = this.round();
    } finally {
      pacer.ends();
    }
    this.ahead = moved;
    // The pump to come arms the real timer for what has been started here.
    const waits = moved || hca.sendsWaiting || hca.notifications.length > 0;
    if (waits) hca.requestPump();
    return moved;
  }

  /**
   * The process is ending: sends what waits, MADs above all, and runs no handler of the consumer's
   * any more. To be called as the last.
   * @param endUs when to leave it at that
   */
  sendLast(endUs: number): void {
    const { hca } = this;
    const mads = hca.queuePairs.find(GSI_QPN)?.sendCq;
    do {
      this.round();
      if (mads !== undefined) hca.notifications.runOnly(mads);
    } while ((hca.sendsWaiting || hca.notifications.length > 0) && hca.nowUs < endUs);
  }

  /** The latest time to call `pump`, in microseconds of the clock; Infinity for never. */
  nextDeadlineUs(): number {
    return this.timers.nextDeadlineUs();
  }

  get isExact(): boolean {
    return this.timers.isExact;
  }

  private rounds(untilHandlers: boolean, goesOn: boolean): boolean {
    const { hca, pacer } = this;
    if (pacer.leavesToConsumer()) {
      hca.readClock();
      hca.transmit();
      this.runNotifications(goesOn);
      return true;
    }
    for (let round = 1; ; round++) {
      const moved = this.ahead || this.round();
      this.ahead = false;
      const handlers = hca.notifications.length > 0;
      const late = handlers && !this.runNotifications(goesOn || round > 1);
      const isLast = late || round === MAX_ROUNDS;
      const next = pacer.afterRound(moved, handlers, hca.scheduler, untilHandlers, isLast);
      if (next === GO_ON) continue;
      if (next === WAIT_FOR_CONSUMER || next === SEND_AND_TURN) hca.transmit();
      return next !== SLEEP;
    }
  }

  /**
   * Transmit, receive, place, complete; timers. What that led to is sent by the next round, which
   * comes at once. True when packets came in or timers ran.
   */
  private round(): boolean {
    const { hca, pacer, timers } = this;
    pacer.shown = undefined;
    if (hca.sendsWaiting) hca.readClock();
    hca.transmit();
    const received = hca.receive();
    const expired = hca.nowUs < timers.dueUs ? 0 : timers.advance(hca.nowUs);
    if (expired > 0) hca.publish();
    if (received > 0 && pacer.answersAtOnce(received, hca.scheduler)) hca.transmit();
    return received > 0 || expired > 0;
  }

  /**
   * Runs a limited number: tasks that handlers defer again and again must not keep the pump from
   * the port.
   * @returns false when they have had their time
   */
  private runNotifications(goesOn: boolean): boolean {
    const { hca } = this;
    const { notifications } = hca;
    if (!this.handlers.begins(hca.nowUs, goesOn)) return false;
    for (let rest = notifications.length + MAX_TASKS; rest > 0; rest--) {
      if (notifications.length === 0) return true;
      try {
        notifications.runOne();
      } catch (error) {
        this.options.logger.error('a handler threw', { device: this.options.name, error });
      }
      if (notifications.length > 0 && !this.mayStart()) return false;
    }
    return true;
  }
}
