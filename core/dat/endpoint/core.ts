/**
 * What an endpoint is made of, and how its parts work together: queues (one life each), connection,
 * events, watermarks, counters. The consumer's calls are in ep.ts and observing.ts; postings in
 * work/posts.ts and work/ib-posts.ts.
 */
import { DatError, spiCall } from '../../errors/index.js';
import type { Evd } from '../../evd/index.js';
import type { AsyncEventType, CmRequest, FlightLog, ProcessHold, Timers } from '../../spi/index.js';
import { type BreakReason, breakReason } from './break-causes.js';
import type { Ep } from './ep.js';
import type { EpAttributes } from './attributes.js';
import { EpConnection } from './connection.js';
import { EpCounters } from './counters.js';
import { EpEvents } from './events.js';
import type { LossListener } from './events.js';
import { EpBindPosts } from '../work/bind-posts.js';
import type { ConnectionEventDetails, EpConnectionPorts } from './attempt.js';
import { EpKeepAlive, type KeepAlivePorts } from './keep-alive.js';
import { isRequestGone } from './outcomes.js';
import type { ConnectionEventName } from './outcomes.js';
import { EP_ACCESS } from '../work/queue-pair.js';
import { EpQueues } from '../work/queues.js';
import type { EpQueuesListener } from '../work/queues-init.js';
import type { EpStateName } from './states.js';
import type { EpInit } from './types.js';
import { EpWatermarks } from './watermarks.js';
import type { WatermarkActions } from './watermarks.js';
import type { IaCore } from '../ia/core.js';
import type { Ia } from '../ia/ia.js';
import type { Pz } from '../memory/pz.js';
import type { Srq } from '../srq/srq.js';

/** A service point's hold on an endpoint. */
export type EpHold = 'reserve' | 'unreserve' | 'request' | 'reject';

export abstract class EpCore extends EpBindPosts {
  readonly handleType = 'EP';
  protected queues: EpQueues;
  protected readonly connection: EpConnection;
  protected readonly events: EpEvents;
  protected readonly counts: EpCounters;
  /** There while one is armed. */
  protected watermarks: EpWatermarks | undefined = undefined;
  /** There from the first connection on, where the attributes ask for it. */
  private keepAlive: EpKeepAlive | undefined = undefined;

  /** What the parts see of the endpoint: methods that all endpoints share, and no closures. */
  private static readonly Inside = class
    implements EpConnectionPorts, EpQueuesListener, LossListener, WatermarkActions, KeepAlivePorts
  {
    constructor(private readonly ep: EpCore) {}

    get processHold(): ProcessHold {
      return this.ep.core.context.processHold;
    }

    get flights(): FlightLog {
      return this.ep.core.flights;
    }

    get queues(): EpQueues {
      return this.ep.queues;
    }

    get timers(): Timers {
      return this.ep.core.context.timers;
    }

    get keepAliveMs(): number {
      return this.ep.attributes.keepAliveMs;
    }

    post(name: ConnectionEventName, details: ConnectionEventDetails, before: boolean): void {
      if (name === 'BROKEN') this.ep.counts.count('broken');
      this.ep.events.post(name, details, before);
    }

    postBrokenAsync(reason: string): void {
      this.ep.events.postBrokenAsync(reason);
    }

    watchCompletions(watch: boolean): void {
      this.ep.events.watchCompletions(watch);
    }

    watchRequests(watch: boolean): void {
      this.ep.events.watchRequests(watch);
    }

    takeInCompletions(): void {
      this.ep.events.takeInCompletions();
    }

    onTransition(from: EpStateName, to: EpStateName): void {
      const { ep } = this;
      ep.events.onTransition(from, to);
      if (to === 'CONNECTED') {
        ep.watermarks?.look(ep.receiveBuffers ?? 0);
        if (ep.attributes.keepAliveMs > 0) (ep.keepAlive ??= new EpKeepAlive(this)).start();
      } else ep.keepAlive?.stop();
    }

    nowUs(): number {
      return this.ep.core.context.clock.now();
    }

    onReceived(): void {
      const { ep } = this;
      ep.connection.onReceived();
      // Messages come one after the other: it held the receive that completes now, and no other.
      if (ep.init.srq !== undefined) ep.watermarks?.look(1);
    }

    onCompletionsLost(reason: BreakReason): void {
      this.ep.connection.onCompletionsLost(reason);
    }

    onFailed(reason: BreakReason): void {
      this.ep.connection.onFailed(reason);
    }

    onReclaimed(): void {
      this.ep.connection.onReclaimed();
    }

    onSoft(count: number, mark: number): void {
      this.ep.events.postWatermark(count, mark);
    }

    onHard(count: number, mark: number): void {
      const more = `${count} receives: the hard high watermark is ${mark}`;
      this.ep.connection.onOverrun(breakReason('WATERMARK', more));
    }
  };
  private readonly inside = new EpCore.Inside(this);

  /** @internal */
  constructor(
    /** @internal */
    readonly core: IaCore,
    protected init: EpInit,
  ) {
    super();
    const { initialState = 'UNCONNECTED' } = init;
    this.events = new EpEvents(this.asEp(), init, this.inside);
    this.counts = new EpCounters(core.slab);
    try {
      this.events.attach();
      this.queues = this.createQueues(init);
    } catch (error) {
      this.events.close();
      this.counts.free();
      throw error;
    }
    this.connection = new EpConnection(this.inside, initialState);
    this.armWatermarks(init.attributes.srqSoftHighWatermark, Infinity);
    init.pz.users++;
    if (init.srq !== undefined) init.srq.users++;
  }

  get ia(): Ia {
    return this.core.ia;
  }

  protected get bindEvd(): Evd {
    return this.init.requestEvd;
  }

  /** This endpoint, as its events name it. */
  protected abstract asEp(): Ep;

  get attributes(): EpAttributes {
    return this.init.attributes;
  }

  /** A failure that is in a completion queue, and has not been looked at, counts (see `query`). */
  get state(): EpStateName {
    if (this.knownState === 'CONNECTED') this.takeInCompletions();
    return this.knownState;
  }

  /** As far as completions have been looked at: what posts go by. */
  protected get knownState(): EpStateName {
    return this.connection.state;
  }

  get pz(): Pz {
    return this.init.pz;
  }

  /** The shared receive queue that it was made with. */
  get srq(): Srq | undefined {
    return this.init.srq;
  }

  /** Queue pair number; another one after each reset. */
  get qpn(): number {
    return this.queues.qp.qpn;
  }

  /** @internal `cr.accept` */
  accept(request: CmRequest, privateData: Uint8Array): void {
    const own = this.cmParameters();
    const parameters = {
      ...own,
      responderResources: Math.min(own.responderResources, request.responderResources),
      initiatorDepth: Math.min(own.initiatorDepth, request.initiatorDepth),
      qp: this.queues.qp,
      privateData,
    };
    try {
      this.connection.accept((onEvent) => request.accept({ ...parameters, onEvent }));
    } catch (error) {
      if (!isRequestGone(error)) throw error;
      this.connection.acceptFailed('the peer gave up before it was answered');
    }
    this.counts.count('accept');
  }

  /**
   * @internal a service point takes hold of the endpoint, or lets it go
   * @throws DatError DAT_INVALID_STATE when an endpoint to reserve is not UNCONNECTED
   */
  hold(operation: string, what: EpHold): void {
    if (what === 'reserve') this.checkLegal(operation, 'reserve');
    this.connection.hold(what);
  }

  /** @internal the device went away by force */
  onDeviceGone(reason: string): void {
    this.connection.onQueuePairError(breakReason('DEVICE', reason));
  }

  /** @internal teardown, first part: the CM tells the peer */
  shutdown(): void {
    this.connection.shutdown();
  }

  /** @internal teardown, second part */
  destroy(by: string): void {
    this.destroyQueues(by, this.queues);
    this.markFreed(by);
    this.events.close();
    this.counts.free();
    this.init.pz.users--;
    if (this.init.srq !== undefined) this.init.srq.users--;
    this.core.forget(this.asEp());
  }

  protected takeInCompletions(): void {
    this.events.takeInCompletions();
  }

  protected checkOwnReceives(operation: string): void {
    const { srq } = this.init;
    if (srq === undefined) return;
    throw new DatError('DAT_INVALID_STATE', {
      subtype: 'DAT_INVALID_STATE_SRQ_IN_USE',
      operation,
      message: `endpoint ${this.id} receives from shared receive queue ${srq.id}`,
      hint: 'post to that: srq.postRecv()',
      value: srq,
    });
  }

  protected afterReceivePosted(): void {
    this.counts.receivePosted();
    this.watermarks?.look(this.receiveBuffers ?? 0);
  }

  /**
   * What a peer takes from a shared queue counts when it comes, whether or not the consumer looks;
   * the endpoint's own queue fills by its own posts.
   */
  protected armWatermarks(soft: number, hard: number): void {
    const armed = soft !== Infinity || hard !== Infinity;
    this.watermarks = armed ? new EpWatermarks(soft, hard, this.inside) : undefined;
    this.events.watchReceives(this.init.srq !== undefined && armed);
  }

  /**
   * Receive buffers that the endpoint holds: allocated to it and not completed. Its own are from
   * the post on; those of a shared queue from when a message takes them, which not every provider
   * tells.
   */
  protected get receiveBuffers(): number | undefined {
    const { queues, init } = this;
    return init.srq === undefined ? queues.receives.outstanding : queues.qp.receivesTaken;
  }

  protected createQueues(init: EpInit): EpQueues {
    const { pz, recvEvd, requestEvd, attributes, srq } = init;
    const create = (): EpQueues =>
      new EpQueues({
        ep: this.asEp(),
        device: this.core.context.device,
        owners: this.core.owners,
        pd: pz.pd,
        recvCq: this.events.cqOf(recvEvd),
        requestCq: this.events.cqOf(requestEvd),
        attributes,
        srq,
        xrc: init.xrc,
        counters: this.counts,
        // Not a closure, which would keep what it has around it.
        onQueuePairEvent: this.onQueuePairEvent.bind(this),
        listener: this.inside,
      });
    return spiCall({ operation: 'ia.createEndpoint', map: NO_QUEUE_PAIR }, create);
  }

  private onQueuePairEvent(event: AsyncEventType): void {
    this.events.onQueuePairEvent(event, this.connection);
  }

  protected destroyQueues(by: string, queues: EpQueues): void {
    const purge = (context: number): void => this.events.purge(context);
    spiCall({ operation: by }, () => queues.destroy(purge));
  }

  protected cmParameters(): {
    responderResources: number;
    initiatorDepth: number;
    retryCount: number;
    rnrRetryCount: number;
    minRnrTimer: number;
    accessFlags: number;
  } {
    const { maxRdmaReadIn, maxRdmaReadOut, transport } = this.attributes;
    const { retryCount, rnrRetryCount, minRnrTimer } = transport;
    return {
      responderResources: maxRdmaReadIn,
      initiatorDepth: maxRdmaReadOut,
      retryCount,
      rnrRetryCount,
      minRnrTimer,
      accessFlags: EP_ACCESS,
    };
  }
}

const NO_QUEUE_PAIR = {
  ENOMEM: ['DAT_INSUFFICIENT_RESOURCES', 'DAT_RESOURCE_TEP'],
} as const;
