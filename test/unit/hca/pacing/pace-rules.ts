/**
 * What the pacing promises, as rules that a world of the search reports to. Each breach is an error
 * that says whom or what it starves.
 */
import type { PollingMode } from '../../../../core/spi/index.js';

/** How the consumer learns of completions, and when it answers. */
export type Consumer = 'handler' | 'awaits' | 'polls';

export interface Scenario {
  readonly name: string;
  readonly consumer: Consumer;
  readonly polling: PollingMode;
  /** The peer counts on its ACK before the answer. */
  readonly foreign: boolean;
  /** Messages of the peer; each is answered. */
  readonly messages: number;
  /** Of these so many come together. */
  readonly burst: number;
  /** Further messages of the peer: one as soon as it has an answer, while the device looks. */
  readonly volley: number;
  /** At every so many looks it is there. */
  readonly lag: number;
  /** Tasks in which the consumer sends unasked, and how many messages in each. */
  readonly own: number;
  readonly posts: number;
  /** Tasks that one deferred task defers, one after the other. */
  readonly deferred: number;
}

/** Looks at the port in one task: rounds of a pump; polled, those of a slice, by a us. */
const MOST_LOOKS = { event: 40, adaptive: 100, spin: 40 } as const;
/** Microtasks and ticks that may follow one another without a turn: polled, six a message. */
const MOST_MICROTASKS = { event: 120, adaptive: 600, spin: 120 } as const;
/** Turns until a device with nothing to do sleeps: polled, slices of 20 us for 200 us, and some. */
const MOST_IDLE_TURNS = { event: 8, adaptive: 20, spin: 8 } as const;
/** Turns that an owed response may wait for. */
const MOST_TURNS_OWED = 4;
/** Steps that a consumer who polls may take until the port is looked at again. */
const PATIENT_STEPS = 3;
/** Packets of a burst whose responses may wait for the handlers: of our peers, and of others. */
const PATIENT_PACKETS = { ours: 16, foreign: 1 } as const;
/** Requests of one task that may wait for its end. */
const MOST_UNSENT = 32;
/** Messages of a volley in a turn, at least. */
const MESSAGES_A_TURN = 4;

export class PaceRules {
  /** The first breach. */
  broken: string | undefined = undefined;
  private looks = 0;
  private microtasks = 0;
  private idleTurns = 0;
  private turnsOwed = 0;
  /** Steps since completions were shown that the consumer has yet to fetch; -1 for none. */
  private stepsUnseen = -1;
  private sendsInTask = 0;
  private hasAcked = false;
  private turns = 0;

  constructor(private readonly scenario: Scenario) {}

  /** For the fingerprint of a world. */
  get state(): readonly unknown[] {
    const { microtasks, idleTurns, turnsOwed, stepsUnseen, sendsInTask, hasAcked } = this;
    return [microtasks, idleTurns, turnsOwed, stepsUnseen, sendsInTask, hasAcked];
  }

  onStep(step: string): void {
    this.looks = 0;
    if (this.stepsUnseen >= 0) this.stepsUnseen += 1;
    if (step === 'microtask' || step === 'tick') {
      this.microtasks += 1;
      if (this.microtasks > MOST_MICROTASKS[this.scenario.polling])
        this.fail('the event loop starves: microtasks');
      return;
    }
    this.microtasks = this.sendsInTask = 0;
    if (step === 'turn') this.turns += 1;
    this.idleTurns = step === 'turn' ? this.idleTurns + 1 : 0;
    if (this.idleTurns > MOST_IDLE_TURNS[this.scenario.polling] + this.scenario.deferred) {
      this.fail('it spins while idle');
    }
  }

  /** Packets have come. */
  onCame(): void {
    this.idleTurns = 0;
  }

  /**
   * @param unasked not by a consumer that spins
   * @param unseen there are completions that the consumer has not fetched
   */
  onLook(unasked: boolean, unseen: boolean): void {
    const { polling, consumer } = this.scenario;
    this.onShown(unseen);
    if (++this.looks > MOST_LOOKS[polling]) this.fail('the event loop starves: looks');
    if (!unasked || consumer !== 'polls' || this.stepsUnseen < 0) return;
    if (this.stepsUnseen <= PATIENT_STEPS)
      this.fail('the consumer starves: a look before its turn');
  }

  /** @param packets of which some were messages, whose handlers run now */
  beforeHandlers(packets: number): void {
    const most = PATIENT_PACKETS[this.scenario.foreign ? 'foreign' : 'ours'];
    if (packets > most && !this.hasAcked)
      this.fail('the sender starves: its window waits for handlers');
  }

  /** The consumer has not fetched, and has not asked to be told. */
  onShown(unseen: boolean): void {
    if (!unseen) this.stepsUnseen = -1;
    else if (this.stepsUnseen < 0) this.stepsUnseen = 0;
  }

  /** A packet leaves. @param isAnswer the consumer has been told of messages before */
  onPacket(isAck: boolean, isAnswer: boolean): void {
    if (isAck) this.hasAcked = true;
    else if (this.scenario.foreign && isAnswer && !this.hasAcked) {
      this.fail('an answer overtakes the ACK');
    }
  }

  /** A call of the port has sent messages. */
  onMessagesSent(): void {
    this.sendsInTask += 1;
    const { consumer, burst } = this.scenario;
    if (consumer === 'awaits' && burst > 2 && this.sendsInTask > 1) {
      this.fail('answers to a burst leave one by one');
    }
  }

  /** @param lone it was the answer to a message that had come by itself */
  onPosted(unsent: number, lone: boolean): void {
    if (lone && unsent > 0) this.fail('the peer starves: an answer waits for the pump');
    if (unsent >= MOST_UNSENT)
      this.fail('the receiver starves: requests wait for the end of the task');
  }

  /** All microtasks have run. */
  onQuiet(
    requestsWait: boolean,
    responsesWait: boolean,
    isPolled: boolean,
    turnIsAsked: boolean,
    step: string,
  ): void {
    const { deferred, polling, volley } = this.scenario;
    if (requestsWait && deferred + volley === 0)
      this.fail('the receiver starves: a request waits for a turn');
    this.turnsOwed = responsesWait ? this.turnsOwed + (step === 'turn' ? 1 : 0) : 0;
    if (this.turnsOwed > MOST_TURNS_OWED) this.fail('the sender starves: an ACK is kept');
    if (polling === 'adaptive' && isPolled && !turnIsAsked)
      this.fail('it sleeps while it is to poll');
  }

  onEnd(messages: number): void {
    const { volley, polling } = this.scenario;
    if (volley === 0 || polling !== 'adaptive') return;
    if (this.turns > volley / MESSAGES_A_TURN)
      this.fail(`${this.turns} turns for ${messages} messages`);
  }

  /** Kept, for a device logs what a handler throws, and goes on. */
  private fail(what: string): never {
    this.broken ??= what;
    throw new Error(what);
  }
}
