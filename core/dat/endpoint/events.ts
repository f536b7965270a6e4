/** The event dispatchers of an endpoint, and its reasons to scan completions. */
import {
  AsyncErrorReason,
  type ConnectionEvent,
  type DatEvent,
  DatEventNumber,
  type Evd,
  type OverrunListener,
} from '../../evd/index.js';
import { type Observable, PresentValue } from '../../stream/index.js';
import type { AdapterState } from '../common/adapter-state.js';
import { epBrokenEvent, lossReason } from '../common/async-events.js';
import { streamOf } from '../common/private-evd.js';
import { ownRequests } from '../work/attributes.js';
import { breakReason } from '../work/break-causes.js';
import type { RetiredCompletions, EpQueues } from '../work/queues.js';
import type { EndpointState } from './endpoint-state.js';
import type { ConnectionEventDetails } from './connection.js';
import { configurationOf } from './attributes.js';
import type { ConnectionEventName, EpStateName } from './states.js';
import type { EpInit } from './types.js';

/**
 * The registration of an endpoint on its event dispatchers: it takes resources step by step, and
 * gives them back in reverse.
 */
interface Step {
  take(init: EpInit, listener: OverrunListener): void;
  giveBack(init: EpInit, listener: OverrunListener): void;
}

/** Resources that an endpoint takes on an event dispatcher of its completions. */
function completionSteps(evd: 'recvEvd' | 'requestEvd'): readonly Step[] {
  return [
    {
      take: (init) => init[evd].feed.addReserve(uncounted(init, evd)),
      giveBack: (init) => init[evd].feed.removeReserve(uncounted(init, evd)),
    },
    {
      take: (init) => init.connectEvd.feed.addErrorSource(init[evd].feed),
      giveBack: (init) => init.connectEvd.feed.removeErrorSource(init[evd].feed),
    },
    {
      take: (init, listener) => init[evd].feed.addOverrunListener(listener),
      giveBack: (init, listener) => init[evd].feed.removeOverrunListener(listener),
    },
  ];
}

/** Completions that the consumer does not count: those of a marker, and of a keep-alive's probe. */
function uncounted(init: EpInit, evd: 'recvEvd' | 'requestEvd'): number {
  return init[evd] === init.requestEvd ? ownRequests(init.attributes) : 1;
}

/** With one event dispatcher for both kinds of completions. */
const STEPS: readonly Step[] = [
  {
    take: ({ connectEvd }) => connectEvd.feed.addUser(),
    giveBack: ({ connectEvd }) => connectEvd.feed.removeUser(),
  },
  {
    take: ({ recvEvd, attributes }) =>
      recvEvd.feed.addUser(configurationOf(attributes.recvCompletionFlags)),
    giveBack: ({ recvEvd, attributes }) =>
      recvEvd.feed.removeUser(configurationOf(attributes.recvCompletionFlags)),
  },
  {
    take: ({ requestEvd, attributes }) =>
      requestEvd.feed.addUser(configurationOf(attributes.requestCompletionFlags)),
    giveBack: ({ requestEvd, attributes }) =>
      requestEvd.feed.removeUser(configurationOf(attributes.requestCompletionFlags)),
  },
  ...completionSteps('recvEvd'),
];
const STEPS_OF_TWO: readonly Step[] = [
  ...STEPS,
  ...completionSteps('requestEvd'),
  {
    take: ({ recvEvd, requestEvd }) => recvEvd.feed.addErrorSource(requestEvd.feed),
    giveBack: ({ recvEvd, requestEvd }) => recvEvd.feed.removeErrorSource(requestEvd.feed),
  },
  {
    take: ({ recvEvd, requestEvd }) => requestEvd.feed.addErrorSource(recvEvd.feed),
    giveBack: ({ recvEvd, requestEvd }) => requestEvd.feed.removeErrorSource(recvEvd.feed),
  },
];

function stepsOf(init: EpInit): readonly Step[] {
  return init.requestEvd === init.recvEvd ? STEPS : STEPS_OF_TWO;
}

/**
 * Registers the endpoint on the event dispatchers of `init`.
 * @param listener is told when completions are lost
 * @throws DatError DAT_INVALID_STATE when the streams of an EVD do not go together: nothing is
 * registered then
 */
function joinEvds(init: EpInit, listener: OverrunListener): void {
  const steps = stepsOf(init);
  let taken = 0;
  try {
    for (const step of steps) {
      step.take(init, listener);
      taken++;
    }
  } catch (error) {
    giveBack(steps, taken, init, listener);
    throw error;
  }
}

/** Unregisters the endpoint that was registered with the same `init`. */
function leaveEvds(init: EpInit, listener: OverrunListener): void {
  const steps = stepsOf(init);
  giveBack(steps, steps.length, init, listener);
}

function giveBack(
  steps: readonly Step[],
  taken: number,
  init: EpInit,
  listener: OverrunListener,
): void {
  for (let at = taken - 1; at >= 0; at--) steps[at]!.giveBack(init, listener);
}

/** A prepared change of event dispatchers; call one of the two. */
export interface EvdSwap {
  commit(): void;
  abort(): void;
}

export class EpEvents implements OverrunListener {
  /** The registered event dispatchers; undefined before and after registration. */
  private place: EpInit | undefined = undefined;
  /** Created for the first subscriber. */
  private states: PresentValue<EpStateName> | undefined = undefined;
  private holds: (() => void)[] | undefined = undefined;
  /** Looks for failures while the state is watched. */
  private vigils: (() => void)[] | undefined = undefined;
  private receiveHold: (() => void) | undefined = undefined;
  private requestHold: (() => void) | undefined = undefined;
  /** Completions still to come from queue pairs before a reset. */
  private leftovers: readonly RetiredCompletions[] | undefined = undefined;

  constructor(
    private readonly record: EndpointState,
    private init: EpInit,
  ) {}

  private get core(): AdapterState {
    return this.record.core;
  }

  /**
   * Registers the endpoint on its EVDs, for its lifetime.
   * @throws DatError DAT_INVALID_STATE when the streams of an EVD do not go together
   */
  attach(): void {
    joinEvds(this.init, this);
    this.place = this.init;
  }

  private leave(): void {
    if (this.place !== undefined) leaveEvds(this.place, this);
    this.place = undefined;
  }

  onOverrun(evd: number): void {
    this.record.connection.onCompletionsLost(breakReason('COMPLETIONS_LOST', lossReason(evd)));
  }

  /**
   * Registers the endpoint on its future EVDs, in place of the present ones: its own present
   * configuration must not conflict.
   * @throws DatError DAT_INVALID_STATE when the streams of an EVD do not go together
   */
  prepare(next: EpInit): EvdSwap {
    const old = this.init;
    const restore = (): void => {
      this.leave();
      this.attach();
    };
    this.leave();
    try {
      joinEvds(next, this);
    } catch (error) {
      restore();
      throw error;
    }
    this.place = next;
    return {
      commit: () => {
        const watching = this.receiveHold !== undefined;
        const isWatched = this.vigils !== undefined;
        this.watchReceives(false);
        this.watchFailures(false);
        this.init = next;
        this.watchReceives(watching);
        this.watchFailures(isWatched);
        for (const evd of old.privateEvds) {
          if (!next.privateEvds.includes(evd)) this.core.freePrivateEvd(evd);
        }
      },
      abort: restore,
    };
  }

  /** The endpoint is freed, or its creation failed. */
  close(): void {
    this.watchCompletions(false);
    this.watchReceives(false);
    this.watchRequests(false);
    for (const leftovers of this.leftovers ?? []) leftovers.drop();
    this.watchFailures(false);
    this.leave();
    this.states?.complete();
    for (const evd of this.init.privateEvds) this.core.freePrivateEvd(evd);
  }

  /** A reset: completions that have arrived stay until they are dequeued. */
  retire(queues: EpQueues): void {
    const all = [...(this.leftovers ?? []), queues.retire(this.dtoEvds())];
    for (const leftovers of all) if (leftovers.isOver) leftovers.drop();
    this.leftovers = all.filter(({ isOver }) => !isOver);
  }

  /** Scans the endpoint's completion queues. */
  takeInCompletions(): void {
    for (const evd of this.dtoEvds()) evd.feed.scan();
  }

  /** While true, completions are scanned even if nothing takes the EVD's events. */
  watchCompletions(watch: boolean): void {
    for (const end of this.holds ?? []) end();
    this.holds = watch ? this.dtoEvds().map((evd) => evd.feed.hold()) : undefined;
  }

  /** As above for receives alone: a watermark is armed. */
  watchReceives(watch: boolean): void {
    if (watch === (this.receiveHold !== undefined)) return;
    this.receiveHold?.();
    this.receiveHold = watch ? this.init.recvEvd.feed.hold() : undefined;
  }

  /** As above for requests alone: a keep-alive probe is in flight. */
  watchRequests(watch: boolean): void {
    if (watch === (this.requestHold !== undefined)) return;
    this.requestHold?.();
    this.requestHold = watch ? this.init.requestEvd.feed.hold() : undefined;
  }

  /** While true, failed completions are scanned even if nothing takes the EVD's events. */
  private watchFailures(watch: boolean): void {
    for (const end of this.vigils ?? []) end();
    this.vigils = watch ? this.dtoEvds().map((evd) => evd.feed.watchFailures()) : undefined;
  }

  post(name: ConnectionEventName, details: ConnectionEventDetails, before: boolean): void {
    const { privateData, detail, cause, flightRecord } = details;
    const event: ConnectionEvent = {
      type: 'connection',
      number: DatEventNumber[name],
      ep: this.record.ep,
      privateData,
      ...(details.rejectReason !== undefined && { rejectReason: details.rejectReason }),
      ...(detail !== '' && { reason: detail }),
      ...(cause !== undefined && { cause }),
      ...(name === 'BROKEN' && { flightRecord }),
    };
    this.init.connectEvd.feed.post(event, before ? 'here' : 'after');
  }

  postBrokenAsync(reason: string): void {
    this.core.reportAsync(
      epBrokenEvent(this.record.ep, `endpoint ${this.record.ep.id}: ${reason}`),
    );
  }

  /** More receives are held than the soft high watermark. */
  postWatermark(count: number, mark: number): void {
    const { ep, core } = this.record;
    core.reportAsync({
      type: 'async-error',
      number: DatEventNumber.ASYNC_PROVIDER_INTERNAL_ERROR,
      object: ep,
      reason: AsyncErrorReason.EP.SRQ_SOFT_HIGH_WATERMARK,
      message: `endpoint ${ep.id}: ${count} receives: the soft high watermark is ${mark}`,
    });
  }

  onTransition(from: EpStateName, to: EpStateName): void {
    this.core.context.logger.debug(`ep ${this.record.ep.id}: ${from} -> ${to}`);
    this.states?.set(to);
  }

  /** The state, now and whenever it changes. @param state the present one */
  statesFrom(state: EpStateName): Observable<EpStateName> {
    const onWatched = (isWatched: boolean): void => this.watchFailures(isWatched);
    this.states ??= new PresentValue(state, this.core.context.scheduler, onWatched);
    if (this.record.ep.isFreed) this.states.complete();
    return this.states.stream$;
  }

  /** The stream of the private one of those event dispatchers. */
  stream<E extends DatEvent>(operation: string, ...evds: readonly Evd[]): Observable<E> {
    const own = evds.find((evd) => this.init.privateEvds.includes(evd));
    return streamOf<E>(operation, own ?? (evds[0] as Evd), own !== undefined);
  }

  /** Event dispatchers of completions: one or two. */
  dtoEvds(): Evd[] {
    return [...new Set([this.init.recvEvd, this.init.requestEvd])];
  }
}
