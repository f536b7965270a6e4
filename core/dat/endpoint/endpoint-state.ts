/**
 * The state behind an endpoint: its parts (queues, replaced by each reset; connection, events,
 * watermarks, counters), and how they work together. The modules beside it implement the consumer's
 * calls; work/ has the postings.
 */
import { DatError, spiCall } from '../../errors/index.js';
import { isInteger, kindOf } from '../../spi/checks/index.js';
import { AsyncEventType, nameOf, TimerEntry } from '../../spi/index.js';
import type { AdapterState } from '../common/adapter-state.js';
import { begin, endedError } from '../common/handle.js';
import type { TraceFields } from '../common/trace.js';
import { OUT_OF } from '../common/unsupported.js';
import { breakReason, causeOfEvent } from '../work/break-causes.js';
import { EpCounters } from '../work/counters.js';
import { EpQueues } from '../work/queues.js';
import type { EpAttributes } from './attributes.js';
import { type ConnectionEventDetails, EpConnection } from './connection.js';
import { EpEvents } from './events.js';
import {
  type ConnectionEventName,
  EP_STATES,
  type EpCall,
  type EpStateName,
  type Legality,
  stateAdvice,
} from './states.js';
import type { EpInit } from './types.js';
import type { Ep } from './ep.js';

// High watermarks of the receives that an endpoint holds (dat_ep_set_watermark). The soft one
// reports once per setting; the hard one breaks the connection.

class EpWatermarks {
  /** @param soft, hard Infinity when it is not armed */
  constructor(
    public soft: number,
    readonly hard: number,
    private readonly record: EndpointState,
  ) {}

  /** The endpoint holds that many receives now. */
  look(count: number): void {
    if (count > this.soft) {
      const mark = this.soft;
      this.soft = Infinity;
      this.record.onSoft(count, mark);
    }
    if (count > this.hard) this.record.onHard(count, this.hard);
  }
}

/** A count, or Infinity: no mark (DAT_WATERMARK_INFINITE). */
export const WATERMARK = kindOf<number>(
  'an integer from 0 on, or Infinity',
  (value) => value === Infinity || isInteger(value, 0, Infinity),
);

/**
 * Receives that may be posted while DISCONNECTED, beyond the length of the queue, before a warning:
 * a consumer may learn of the end later than of its flushed receives.
 */
const FLUSHED_POSTS = 1000;
const POSTS_IN_VAIN = 'receives are posted again and again while it is DISCONNECTED';
const LOOK_FIRST = 'before a receive is posted again, look at ep.state or the status FLUSHED';

/** One object for each endpoint: its parts report to it, so no closures are needed. */
export class EndpointState {
  /** The current queues: a reset replaces them. */
  queues: EpQueues;
  readonly connection: EpConnection;
  readonly events: EpEvents;
  readonly counts: EpCounters;
  /** Set while a watermark is armed. */
  watermarks: EpWatermarks | undefined = undefined;
  /** The call that has freed it. */
  freedBy: string | undefined = undefined;
  /** Receives posted while DISCONNECTED, of all connections. */
  private flushedPosts = 0;
  /** Set from the first connection on, if the attributes ask for it. */
  private keepAlive: EpKeepAlive | undefined = undefined;

  constructor(
    /** The public object, named in its events. */
    readonly ep: Ep,
    readonly core: AdapterState,
    public init: EpInit,
  ) {
    const { initialState = 'UNCONNECTED' } = init;
    this.events = new EpEvents(this, init);
    this.counts = new EpCounters(core.slab);
    try {
      this.events.attach();
      this.queues = this.createQueues(init);
    } catch (error) {
      this.events.close();
      this.counts.free();
      throw error;
    }
    this.connection = new EpConnection(this, initialState);
    this.armWatermarks(init.attributes.srqSoftHighWatermark, Infinity);
    init.pz.users++;
    if (init.srq !== undefined) init.srq.users++;
  }

  get attributes(): EpAttributes {
    return this.init.attributes;
  }

  /** The state by the completions scanned so far: posts use it. */
  get knownState(): EpStateName {
    return this.connection.state;
  }

  /** The state after a scan: a failure still in a completion queue counts. */
  get state(): EpStateName {
    if (this.knownState === 'CONNECTED') this.takeInCompletions();
    return this.knownState;
  }

  /**
   * Receive buffers that the endpoint holds: allocated to it and not completed. Its own count from
   * the post on. Those of a shared queue count from when a message takes them, which not every
   * provider reports.
   */
  get receiveBuffers(): number | undefined {
    const { queues, init } = this;
    return init.srq === undefined ? queues.receives.outstanding : queues.qp.receivesTaken;
  }

  /** @throws DatError DAT_INVALID_HANDLE */
  assertLive(operation: string): void {
    if (this.freedBy !== undefined) throw endedError(this.ep, this.freedBy, operation);
  }

  /** @throws DatError DAT_INVALID_STATE */
  checkLegal(operation: string, call: EpCall): Legality {
    const { subtype, calls } = EP_STATES[this.knownState];
    const legality = calls[call];
    if (legality !== 'illegal') return legality;
    throw new DatError('DAT_INVALID_STATE', {
      subtype,
      operation,
      message: `endpoint ${this.ep.id} is ${this.knownState}`,
      value: this.knownState,
      hint: stateAdvice(this.knownState, call),
    });
  }

  /** Begins a call: traces it, and checks the handle. @returns the call @throws DatError */
  begin(operation: string, fields: TraceFields = {}): string {
    return begin(this.ep, operation, fields);
  }

  /**
   * A receive that a peer takes from a shared queue counts on arrival, even if the consumer does
   * not look. The endpoint's own queue fills by its own posts.
   */
  armWatermarks(soft: number, hard: number): void {
    const armed = soft !== Infinity || hard !== Infinity;
    this.watermarks = armed ? new EpWatermarks(soft, hard, this) : undefined;
    this.events.watchReceives(this.init.srq !== undefined && armed);
  }

  /** Installs new queues, after a reset or under other attributes. */
  createQueues(init: EpInit): EpQueues {
    const { pz, recvEvd, requestEvd, attributes, srq } = init;
    return spiCall(
      { operation: 'ia.createEndpoint', map: OUT_OF.queuePairs },
      () =>
        new EpQueues({
          ep: this.ep,
          device: this.core.context.device,
          owners: this.core.owners,
          pd: pz.pd,
          recvCq: recvEvd.feed.cq,
          requestCq: requestEvd.feed.cq,
          attributes,
          srq,
          xrc: init.xrc,
          counters: this.counts,
          // Not a closure, which would keep its whole scope alive.
          onQueuePairEvent: this.onQueuePairEvent.bind(this),
          record: this,
        }),
    );
  }

  destroyQueues(by: string, queues: EpQueues): void {
    spiCall({ operation: by }, () => queues.destroy(this.events.dtoEvds()));
  }

  private onQueuePairEvent(event: AsyncEventType): void {
    const reason = causeOfEvent(event, this.queues.qp.networkTrouble?.());
    const { logger } = this.core.context;
    if (event === AsyncEventType.QP_LAST_WQE_REACHED) this.connection.onLastReceive();
    else if (reason !== undefined) this.connection.onQueuePairError(reason);
    else logger.debug(`ep ${this.ep.id}: ${nameOf(AsyncEventType, event)}`);
  }

  /** Queues an event on the connect EVD; behind the completion being scanned, unless `before`. */
  post(name: ConnectionEventName, details: ConnectionEventDetails, before: boolean): void {
    if (name === 'BROKEN') this.noteBroken(details);
    this.events.post(name, details, before);
  }

  private noteBroken({ cause, detail }: ConnectionEventDetails): void {
    this.counts.count('broken');
    this.core.context.logger.info(`ep ${this.ep.id}: BROKEN: ${detail}`, { cause });
  }

  /** Scans for completions now. */
  takeInCompletions(): void {
    this.events.takeInCompletions();
  }

  onTransition(from: EpStateName, to: EpStateName): void {
    this.events.onTransition(from, to);
    if (to === 'CONNECTED') {
      this.watermarks?.look(this.receiveBuffers ?? 0);
      if (this.attributes.keepAliveMs > 0) (this.keepAlive ??= new EpKeepAlive(this)).start();
    } else this.keepAlive?.stop();
  }

  /** Warns once of a consumer that posts its flushed receives again without end. */
  onFlushedPost(): void {
    this.flushedPosts++;
    if (this.flushedPosts !== FLUSHED_POSTS + this.attributes.maxRecvDtos) return;
    const { logger } = this.core.context;
    logger.warn(`ep ${this.ep.id}: ${POSTS_IN_VAIN}: ${LOOK_FIRST}`, { posts: this.flushedPosts });
  }

  /** A receive has succeeded; it is about to become dequeuable. */
  onReceived(): void {
    this.connection.onReceived();
    // Messages arrive one after the other: it held only the receive that completes now.
    if (this.init.srq !== undefined) this.watermarks?.look(1);
  }

  /** The soft high watermark is passed. */
  onSoft(count: number, mark: number): void {
    this.events.postWatermark(count, mark);
  }

  /** The hard high watermark is passed. */
  onHard(count: number, mark: number): void {
    const more = `${count} receives: the hard high watermark is ${mark}`;
    this.connection.onOverrun(breakReason('WATERMARK', more));
  }
}

// keepAliveMs: detects a dead peer of an idle connection. A peer whose process was killed, or
// whose machine is off, sends nothing, and a consumer that only waits for it would wait for ever.
// So after a time without a sign of life an empty RDMA write asks for an acknowledgement. The
// queue pair's own retries then detect the loss.

/** Checks per `keepAliveMs`: the silence may be under-estimated by one interval. */
const LOOKS = 4;

/** Runs while the endpoint is CONNECTED. Its timer does not keep the process alive. */
export class EpKeepAlive extends TimerEntry {
  private running = false;
  private heard = 0;
  /** Checks without a sign of life. */
  private quiet = 0;

  constructor(private readonly record: EndpointState) {
    super();
  }

  start(): void {
    this.running = true;
    this.onHeard(this.record.queues.lifeSign());
    this.lookAgain();
  }

  stop(): void {
    if (!this.running) return;
    this.running = false;
    this.record.core.context.timers.stop(this);
    this.record.events.watchRequests(false);
  }

  override expire(): void {
    this.record.takeInCompletions();
    if (!this.running) return;
    const heard = this.record.queues.lifeSign();
    if (heard !== this.heard) this.onHeard(heard);
    else if (++this.quiet >= LOOKS - 1) this.probe();
    if (this.running) this.lookAgain();
  }

  private onHeard(heard: number): void {
    this.heard = heard;
    this.quiet = 0;
    this.record.events.watchRequests(false);
  }

  /** A request in flight already is a probe: only its failure has to be noticed. */
  private probe(): void {
    const { queues } = this.record;
    this.record.events.watchRequests(true);
    // The scan may have ended the connection.
    if (!this.running) this.record.events.watchRequests(false);
    if (!this.running || queues.sends.awaitsCompletion) return;
    try {
      queues.postProbe();
    } catch {
      // The device is gone, and reports that itself.
      this.stop();
    }
  }

  private lookAgain(): void {
    const { core, attributes } = this.record;
    const { timers, clock } = core.context;
    timers.start(this, clock.now() + (attributes.keepAliveMs * 1000) / LOOKS);
  }
}
