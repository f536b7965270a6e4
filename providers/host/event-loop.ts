/**
 * Drives a device by the event loop of Node. Work requested by a consumer's task is done together,
 * after the task. Packets and deadlines wake the loop. `providers/hca/pacing` decides on the order.
 */
import type { Clock, Random } from '../../core/spi/index.js';
import { CONVERSATION, LoopPacer, type Polled, PollGain, REQUEST } from '../hca/pacing/index.js';
import type { NextTurn } from './next-turn.js';
import type { RealTimer } from './real-timer.js';

const { LAST_MICROTASK, MICROTASK } = REQUEST.actions;
const { END, LOOK } = CONVERSATION.actions;

/** Ways to call a task later: those of Node, of virtual time, or of a test. */
export interface LoopCalls {
  microtask(task: () => void): () => void;
  /** Calls a task when all microtasks have run. */
  lastMicrotask(task: () => void): () => void;
  turn(task: () => void): Pick<NextTurn, 'request' | 'cancel'> & Partial<Holding>;
  timer(
    clock: Clock,
    onDeadline: () => void,
    onEarly: () => void,
  ): Pick<RealTimer, 'arm' | 'close'> & Partial<Holding>;
}

/** Time and chance of a device: those of the machine (`machineTime`), or simulated. */
export interface HostTime {
  readonly clock: Clock;
  readonly calls: LoopCalls;
  readonly random: Random;
  /** Absent where time passes only between two calls: nothing is polled then. */
  readonly machine?: {
    /** The time at 0 of the clock, by a clock that all programs share. */
    readonly originUs: number;
    /** Processors that no other thread runs on at this moment. */
    readonly countCores: () => number;
    /** Runs a task when the process exits; returns a function that takes it back. */
    onExit(task: () => void): () => void;
  };
}

/** Part of a device that can keep the process alive. */
interface Holding {
  setProcessHold(alive: boolean): void;
}

/** The device driven by the event loop. */
export interface Driven {
  /**
   * Moves what can move, and runs handlers. True when there is more to do at once.
   * @param untilHandlers ends as soon as handlers have run and nothing is to be sent
   * @param goesOn in the turn of the event loop of the pump before
   */
  pump(untilHandlers: boolean, goesOn: boolean): boolean;
  /** The latest time to call `pump`, in microseconds of the clock; Infinity for never. */
  nextDeadlineUs(): number;
  /** True if that time must be met to a fraction of a millisecond. */
  readonly isExact: boolean;
}

/** A device with a port that can be looked at unasked. */
export interface Looked {
  readonly pacer: Polled;
  /** The time at the last look, in microseconds. */
  readonly nowUs: number;
  /** Since the device was opened; so are the following. */
  readonly receivedPackets: number;
  /** Packets sent, without ACKs: those leave whatever the consumer does. */
  readonly answers: number;
  readonly completions: number;
  /** Packets received and sent, and completions: a turn that adds none was in vain. */
  readonly moves: number;
  /** Counts a turn of the event loop that nothing asked for. */
  onEmptyTurn(): void;
  /** Its port may tell no time any more, and needs a turn of the event loop to end. */
  readonly isClosing: boolean;
  /** Looks once, without handlers; true when something has arrived. */
  look(): boolean;
}

const NO_PORT: Looked = {
  pacer: { adaptiveQueues: 0, readStreams: { nextUs: () => 0 }, acksLeft: false },
  nowUs: 0,
  receivedPackets: 0,
  answers: 0,
  completions: 0,
  moves: 0,
  onEmptyTurn: () => undefined,
  isClosing: false,
  look: () => false,
};

export class EventLoop {
  private readonly timer: ReturnType<LoopCalls['timer']>;
  /** Pumps again after the event loop has had its turn. */
  private readonly nextTurn: ReturnType<LoopCalls['turn']>;
  private readonly pumpSoon: () => void;
  private readonly pumpLast: () => void;
  private readonly goOnLast: () => void;
  private pumpQueued = false;
  /** `onTurn` is going to run. */
  private turnAsked = false;
  /** `goOn` is going to run. */
  private goesOn = false;
  private closed = false;

  /** @param looked default: there is nothing to look at between pumps */
  constructor(
    clock: Clock,
    calls: LoopCalls,
    private readonly driven: Driven,
    private readonly looked = NO_PORT,
    private readonly pacer = new LoopPacer(looked.pacer, new PollGain()),
  ) {
    this.timer = calls.timer(clock, this.wake, () => looked.onEmptyTurn());
    this.nextTurn = calls.turn(this.onTurn);
    this.pumpSoon = calls.microtask(this.onMicrotask);
    this.pumpLast = calls.lastMicrotask(this.onMicrotask);
    // From the tick it takes a further microtask, for what that wakes comes right behind it.
    this.goOnLast = calls.lastMicrotask(calls.microtask(this.goOn));
  }

  /** Asks for a pump behind the present task. */
  readonly request = (): void => {
    if (this.pumpQueued || this.closed) return;
    this.pumpQueued = true;
    const when = this.pacer.onRequest();
    if (when === MICROTASK) this.pumpSoon();
    else if (when === LAST_MICROTASK) this.pumpLast();
    else this.askForTurn();
  };

  /** Pumps now: the port is readable or writable, or the deadline has come. */
  readonly wake = (): void => {
    // Several descriptors may wake it in one turn: where handlers wait for the next, they wait on.
    if (!this.turnAsked) this.pacer.turned();
    this.pump(false);
  };

  /** Sets whether future work keeps the process alive. */
  setProcessHold(alive: boolean): void {
    this.timer.setProcessHold?.(alive);
    this.nextTurn.setProcessHold?.(alive);
  }

  /** The device is pumped no more. */
  close(): void {
    this.closed = true;
    this.timer.close();
    this.nextTurn.cancel();
  }

  private readonly onMicrotask = (): void => {
    if (!this.pumpQueued || this.closed) return;
    const before = this.looked.answers;
    this.pump(false);
    if (this.decide(before, false, false) !== END) this.goOnInMicrotask();
  };

  private askForTurn(): void {
    this.turnAsked = true;
    this.nextTurn.request();
  }

  private readonly onTurn = (): void => {
    this.turnAsked = false;
    const before = this.looked.moves;
    this.pacer.turned();
    this.pacer.beginSlice(this.looked.nowUs);
    this.converse();
    if (this.looked.moves === before) this.looked.onEmptyTurn();
  };

  private goOnInMicrotask(): void {
    if (this.goesOn) return;
    this.goesOn = true;
    this.goOnLast();
  }

  private readonly goOn = (): void => {
    this.goesOn = false;
    if (!this.closed && this.pacer.inSlice(this.looked.nowUs)) this.converse();
  };

  /** Continues with a consumer that answers each message. */
  private converse(): void {
    let next: number;
    let came: boolean;
    do {
      const before = this.looked.answers;
      came = this.look();
      this.pump(came);
      next = this.decide(before, true, came);
    } while (next === LOOK);
    if (next !== END) this.goOnInMicrotask();
  }

  /** An action of CONVERSATION. @param before `answers` at the beginning of the pump */
  private decide(before: number, inTurn: boolean, came: boolean): number {
    const { answers, nowUs } = this.looked;
    return this.closed ? END : this.pacer.goesOn(nowUs, answers !== before, inTurn, came);
  }

  /** Looks at the port until something comes, for a slice of the time that it is polled. */
  private look(): boolean {
    const { looked } = this;
    const untilUs = this.pacer.lookUntilUs(looked.nowUs);
    if (untilUs === 0) return false;
    this.pumpQueued = true;
    while (!looked.look()) {
      if (looked.isClosing || looked.nowUs >= untilUs) return false;
    }
    return true;
  }

  private pump(untilHandlers: boolean): void {
    const { driven, looked } = this;
    this.pumpQueued = false;
    if (this.closed) return;
    const before = looked.completions;
    const busy = driven.pump(untilHandlers, this.pacer.goesOnInTurn());
    // A handler has closed the device: a port that is gone has no time that could pass.
    if (this.closed) return;
    const told = looked.completions - before;
    const sleeps = this.pacer.sleeps(busy, told, looked);
    if (sleeps) this.timer.arm(driven.nextDeadlineUs(), driven.isExact);
    else this.askForTurn();
  }
}
