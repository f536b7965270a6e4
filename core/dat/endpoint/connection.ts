/**
 * The connection of an endpoint: its state machine over the CM module (tables in states.ts and
 * outcomes.ts). Consumers rely on the order of an end: the failed completion, then the flushed
 * ones, then exactly one event. "Then" is the order in which they are generated; nothing waits for
 * the consumer to dequeue.
 */
import { toDatError } from '../../errors/index.js';
import type { ConnectionCause } from '../../evd/index.js';
import { type CmConnection, type CmEvent, nameOf } from '../../spi/index.js';
import { type FlightLog, NO_ROW } from '../../spi/internal/index.js';
import { changeHold, hasRef, HOLD } from '../../spi/time/hold.js';
import { type BreakReason, breakReason } from '../work/break-causes.js';
import type { ConnectTarget, Service } from './connect-options.js';
import type { EndpointState } from './endpoint-state.js';
import {
  type ConnectionEventName,
  detailOf,
  EP_TRANSITIONS,
  type EpInitialState,
  EpState,
  type EpStateName,
  type EpTrigger,
  refusalOf,
} from './states.js';

// The transitions of an endpoint, as rows of the adapter's flight log, and in words.

/** Reason for a change of state: a trigger, or a failed call. */
type TransitionReason = EpTrigger | 'connect threw' | 'accept threw';

const REASONS: readonly TransitionReason[] = [
  ...(Object.keys(EP_TRANSITIONS) as EpTrigger[]),
  'connect threw',
  'accept threw',
];
/** Number of an endpoint's last transitions in its flight record. */
const TRANSITIONS = 32;

/** @returns the endpoint's new last row */
function noteTransition(
  log: FlightLog,
  last: number,
  nowUs: number,
  from: EpStateName,
  to: EpStateName,
  why: TransitionReason,
): number {
  return log.add(last, nowUs, REASONS.indexOf(why), EpState[from], EpState[to]);
}

/** The endpoint's rows up to `last`, oldest first. */
function transitionLines(log: FlightLog, last: number): string[] {
  return log.read(last, TRANSITIONS).map(({ timeUs, event, a, b }) => {
    const [from, to] = [nameOf(EpState, a), nameOf(EpState, b)];
    return `${Math.round(timeUs)} us ${from} -> ${to} (${REASONS[event]})`;
  });
}

const EMPTY = new Uint8Array(0);

/** Details of a connection event. */
export interface ConnectionEventDetails {
  readonly privateData: Uint8Array;
  /** Reject reason of the CM, where there is one. */
  readonly rejectReason?: number;
  /** Why, for people; empty when there is nothing to say. */
  readonly detail: string;
  readonly cause?: ConnectionCause | undefined;
  /** For BROKEN: transitions of the endpoint, then of the queue pair, then messages of the CM. */
  readonly flightRecord: readonly string[];
}

/** A pending end: the queues must run empty up to these indices. */
interface Ending {
  readonly name: ConnectionEventName;
  readonly details: ConnectionEventDetails;
  readonly sendTarget: number;
  readonly receiveTarget: number;
  /** A graceful disconnect ends after the CM's handshake. */
  awaitsCm: boolean;
  /** With a shared receive queue, the provider says when no receive will complete any more. */
  readonly awaitsReceives: boolean;
}

/** One attempt at a connection; events of an earlier one are ignored. */
class Attempt {
  connection: CmConnection | undefined = undefined;

  /** @param service requested by a connect; undefined for an accept */
  constructor(
    private readonly owner: EpConnection,
    private readonly service: Service | undefined,
  ) {}

  get active(): boolean {
    return this.service !== undefined;
  }

  /** Target; undefined when it has accepted. */
  get target(): ConnectTarget | undefined {
    const { connection, service } = this;
    if (connection === undefined || service === undefined) return undefined;
    return { remoteGid: connection.remoteGid, service };
  }

  /** Called by the CM. */
  onEvent(event: CmEvent): void {
    this.owner.onCmEvent(event, this);
  }
}

export class EpConnection {
  private current: EpStateName;
  private attempt: Attempt | undefined = undefined;
  private ending: Ending | undefined = undefined;
  /** Graceful disconnect: requests up to this index finish first. */
  private drainTarget: number | undefined = undefined;
  private watching = false;
  /** Bits of HOLD. */
  private processHold = 0;
  private lastTransition = NO_ROW;

  constructor(
    private readonly record: EndpointState,
    initialState: EpInitialState,
  ) {
    this.current = initialState;
  }

  get state(): EpStateName {
    return this.current;
  }

  get remoteGid(): Uint8Array | undefined {
    return this.attempt?.connection?.remoteGid;
  }

  /** Own port of the present or last attempt; 0 without one. */
  get localPort(): number | undefined {
    return this.attempt?.connection?.localPort;
  }

  /** Target of the present or last attempt; undefined when it has accepted. */
  get target(): ConnectTarget | undefined {
    return this.attempt?.target;
  }

  /**
   * Starts an attempt; the outcome is an event.
   * @param service to be requested by `begin`
   * @param begin the CM's call; if it throws, the endpoint is unchanged
   */
  connect(service: Service, begin: (onEvent: (event: CmEvent) => void) => CmConnection): void {
    this.start('connect', new Attempt(this, service), begin);
  }

  accept(begin: (onEvent: (event: CmEvent) => void) => CmConnection): void {
    this.start('accept', new Attempt(this, undefined), begin);
  }

  private start(
    trigger: 'connect' | 'accept',
    attempt: Attempt,
    begin: (onEvent: (event: CmEvent) => void) => CmConnection,
  ): void {
    const before = this.current;
    this.move(trigger);
    this.attempt = attempt;
    try {
      attempt.connection = begin(attempt.onEvent.bind(attempt));
    } catch (error) {
      this.attempt = undefined;
      this.enter(before, `${trigger} threw`);
      throw error;
    }
  }

  /** The request was gone when it was answered: the handshake has failed. */
  acceptFailed(detail: string): void {
    this.move('accept');
    this.refuse('ACCEPT_COMPLETION_ERROR', { detail });
  }

  onCmEvent(event: CmEvent, attempt: Attempt): void {
    if (this.attempt !== attempt) return;
    if (event.type === 'established') {
      this.establish(attempt, event.privateData);
      this.record.queues.openSendDoorbell();
    } else if (event.type === 'disconnected') {
      if (event.failure !== undefined) this.onLost(event.failure);
      else this.onDisconnected(event.byPeer ? 'the peer disconnected' : '', event.byPeer);
    } else if (event.type !== 'timewait-exit') this.onRefusal(event, attempt);
  }

  private onRefusal(
    event: Exclude<CmEvent, { type: 'established' | 'disconnected' | 'timewait-exit' }>,
    attempt: Attempt,
  ): void {
    // Data may have arrived before the refusal: then the connection had begun.
    this.record.takeInCompletions();
    if (this.current === 'DISCONNECT_PENDING') {
      this.onDisconnected('');
    } else if (this.current === 'CONNECTED') {
      this.fail(breakReason('HANDSHAKE', detailOf(event)));
    } else if (this.isPending) {
      this.refuse(refusalOf(event, attempt.active), {
        detail: detailOf(event),
        ...(event.type === 'rejected' && {
          privateData: event.privateData,
          rejectReason: event.reason,
        }),
      });
    }
  }

  private get isPending(): boolean {
    return this.current === 'ACTIVE_CONNECTION_PENDING' || this.current === 'COMPLETION_PENDING';
  }

  private establish(attempt: Attempt, privateData: Uint8Array): void {
    if (!this.isPending) return;
    this.move('established');
    const visible = attempt.active ? privateData : EMPTY;
    this.record.post('ESTABLISHED', { privateData: visible, detail: '', flightRecord: [] }, true);
  }

  /** Placed behind the flushed completions, as the other ends are. */
  private refuse(name: ConnectionEventName, details: Partial<ConnectionEventDetails>): void {
    this.move('refused');
    // A queue pair that was never ready to receive does not report its last receive.
    this.beginEnding(name, details, { awaitsReceives: this.attempt?.active === false });
  }

  /**
   * A receive has succeeded. If an accepting endpoint still waits, that proves that the peer is
   * connected (IBTA 12.9.6; mailing list, June 2006). It is established now, before that receive
   * becomes visible; the CM's later report is dropped.
   */
  onReceived(): void {
    if (this.current !== 'COMPLETION_PENDING') return;
    const { attempt } = this;
    if (attempt?.connection === undefined) return;
    this.establish(attempt, EMPTY);
    attempt.connection.notifyEstablished();
    this.record.queues.onEstablishedByData();
  }

  /**
   * A request or receive has failed, not flushed.
   * @param unrequested no request or receive reports it: an asynchronous error does
   */
  onFailed(reason: BreakReason, unrequested = false): void {
    if (this.current === 'DISCONNECT_PENDING') this.leave(false);
    else if (this.current === 'CONNECTED' || this.isPending) {
      if (unrequested) this.record.events.postBrokenAsync(reason.detail);
      this.fail(reason);
    }
  }

  /** The queue pair went to its error state without a failed request. */
  onQueuePairError(reason: BreakReason): void {
    this.record.takeInCompletions();
    this.onFailed(reason, true);
  }

  /** More receives are held than the consumer allows. */
  onOverrun(reason: BreakReason): void {
    if (this.current === 'CONNECTED') this.fail(reason);
  }

  /** Completions are lost, so the end cannot wait for any. */
  onCompletionsLost(reason: BreakReason): void {
    this.onQueuePairError(reason);
    this.finishEnding();
  }

  private fail({ cause, detail }: BreakReason): void {
    const trouble = this.record.queues.qp.networkTrouble?.();
    this.move('ended');
    const text = trouble === undefined ? detail : `${detail}: ${trouble}`;
    this.beginEnding('BROKEN', { detail: text, cause });
  }

  /** The CM has ended a connection without a disconnect of either side. */
  private onLost(failure: string): void {
    this.record.takeInCompletions();
    if (this.current === 'CONNECTED') this.fail(breakReason('CONNECTION_LOST', failure));
    else this.onDisconnected('');
  }

  /** The CM reports an orderly end: by the peer, or by our own disconnect. */
  private onDisconnected(detail: string, byPeer = false): void {
    // The end may be the consequence of a failure of ours that has not been scanned yet.
    this.record.takeInCompletions();
    if (this.ending !== undefined) {
      this.ending.awaitsCm = false;
      this.onReclaimed();
      return;
    }
    if (this.current === 'DISCONNECTED' || this.current === 'UNCONNECTED') return;
    if (this.current !== 'DISCONNECT_PENDING') this.move('ended');
    const unmet = byPeer && this.record.queues.qp.lacksReceive === true;
    const why = unmet ? breakReason('NO_RECEIVE_POSTED') : undefined;
    const text = why === undefined ? detail : `${detail}: ${why.detail}`;
    this.beginEnding('DISCONNECTED', { detail: text, cause: why?.cause });
  }

  private beginEnding(
    name: ConnectionEventName,
    details: Partial<ConnectionEventDetails>,
    waits: Partial<Pick<Ending, 'awaitsCm' | 'awaitsReceives'>> = {},
  ): void {
    this.drainTarget = undefined;
    const { queues } = this.record;
    this.attempt?.connection?.disconnect();
    const stuck = queues.toError();
    if (stuck === undefined && queues.sends.endsUnsignalled) queues.postMarker();
    const { detail = '' } = details;
    this.ending = {
      name,
      details: {
        privateData: EMPTY,
        flightRecord: [],
        ...details,
        detail: stuck === undefined ? detail : `${detail}; nothing is flushed: ${stuck}`,
      },
      sendTarget: queues.sends.producer,
      receiveTarget: queues.receives.producer,
      awaitsCm: false,
      awaitsReceives: this.attempt !== undefined,
      ...waits,
    };
    this.watch();
    if (stuck === undefined) this.onReclaimed();
    else this.finishEnding();
  }

  /** No receive of the shared queue will complete here any more. */
  onLastReceive(): void {
    this.record.takeInCompletions();
    this.record.queues.receivesEnded = true;
    this.onReclaimed();
  }

  /** Entries have been reclaimed: a drain or an end may be complete. */
  onReclaimed(): void {
    if (this.drainTarget === undefined && this.ending === undefined) return;
    const { sends, receives } = this.record.queues;
    if (this.drainTarget !== undefined && reached(sends.reclaimed, this.drainTarget)) {
      this.leave(true);
      return;
    }
    const { ending } = this;
    if (ending === undefined || ending.awaitsCm) return;
    if (ending.awaitsReceives && !this.record.queues.receivesEnded) return;
    if (!reached(sends.reclaimed, ending.sendTarget)) return;
    if (reached(receives.reclaimed, ending.receiveTarget)) this.finishEnding();
  }

  private finishEnding(): void {
    const { ending } = this;
    if (ending === undefined) return;
    this.ending = undefined;
    if (this.current === 'DISCONNECT_PENDING') this.move('ended');
    const { name, details } = ending;
    const flightRecord = name === 'BROKEN' ? this.flightRecord() : [];
    this.record.post(name, { ...details, flightRecord }, false);
    this.watch();
  }

  /** dat_ep_disconnect; the caller has checked the state. */
  disconnect(graceful: boolean): void {
    if (this.current === 'ACTIVE_CONNECTION_PENDING') {
      this.attempt?.connection?.abandon();
      this.attempt = undefined;
      this.move('ended');
      this.beginEnding('DISCONNECTED', {});
      return;
    }
    if (this.current !== 'DISCONNECT_PENDING') this.move('disconnecting');
    const { sends } = this.record.queues;
    if (!graceful || !this.record.queues.sendDoorbellOpen) {
      this.leave(false);
      return;
    }
    if (sends.endsUnsignalled) this.record.queues.postMarker();
    this.drainTarget = sends.producer;
    this.watch();
    this.onReclaimed();
  }

  /** Nothing of ours is in flight any more (or it shall be flushed): DREQ, and the end. */
  private leave(graceful: boolean): void {
    if (this.ending === undefined) {
      this.beginEnding('DISCONNECTED', {}, { awaitsCm: graceful });
    } else {
      this.ending.awaitsCm &&= graceful;
      this.onReclaimed();
    }
  }

  /** dat_ep_reset: reports a pending end now; outstanding requests are lost. */
  reset(): void {
    this.finishEnding();
    this.attempt = undefined;
    this.move('reset');
  }

  /** dat_ep_free, and teardown: no event follows. */
  shutdown(): void {
    const wasPending = this.current === 'ACTIVE_CONNECTION_PENDING';
    const { attempt } = this;
    this.attempt = undefined;
    this.ending = undefined;
    this.drainTarget = undefined;
    if (wasPending) attempt?.connection?.abandon();
    else attempt?.connection?.disconnect();
    for (const trigger of ['ended', 'torn-down'] as const) {
      if (EP_TRANSITIONS[trigger].from.includes(this.current)) this.move(trigger);
    }
    this.watch();
  }

  /** Transitions of the endpoint and the queue pair, and messages of the CM, each oldest first. */
  flightRecord(): readonly string[] {
    const { flights } = this.record.core;
    return [
      ...transitionLines(flights, this.lastTransition).map((line) => `ep: ${line}`),
      ...this.record.queues.qp.flightRecord().map((line) => `qp: ${line}`),
      ...(this.attempt?.connection?.flightRecord() ?? []).map((line) => `cm: ${line}`),
    ];
  }

  /** Only changes the state: for a reserved service point. */
  hold(trigger: 'reserve' | 'unreserve' | 'request' | 'reject'): void {
    this.move(trigger);
  }

  private move(trigger: EpTrigger): void {
    const { from, to } = EP_TRANSITIONS[trigger];
    if (!from.includes(this.current)) {
      throw toDatError(new Error(`trigger ${trigger} in state ${this.current}`), {
        operation: 'ep',
      });
    }
    this.enter(to, trigger);
  }

  private enter(state: EpStateName, why: TransitionReason): void {
    const before = this.current;
    this.current = state;
    const { flights, context } = this.record.core;
    const nowUs = context.clock.now();
    this.lastTransition = noteTransition(flights, this.lastTransition, nowUs, before, state, why);
    this.changeHold(HOLD.ENGAGED, this.isPending);
    this.record.onTransition(before, state);
  }

  get hasRef(): boolean {
    return hasRef(this.processHold);
  }

  /** Sets whether connecting keeps the process alive. */
  keepProcess(wanted: boolean): void {
    this.changeHold(HOLD.UNREF, !wanted);
  }

  private changeHold(bit: number, on: boolean): void {
    const { processHold } = this.record.core.context;
    this.processHold = changeHold(processHold, this.processHold, bit, on);
  }

  /** While an end or a drain is pending, completions are scanned without the consumer. */
  private watch(): void {
    const wanted = this.ending !== undefined || this.drainTarget !== undefined;
    if (wanted === this.watching) return;
    this.watching = wanted;
    this.record.events.watchCompletions(wanted);
  }
}

/** True if `index` has reached `target`; free-running u32 indices. */
function reached(index: number, target: number): boolean {
  return ((index - target) | 0) >= 0;
}
