/** Types for an endpoint's connection: its ports, an attempt, and a pending disconnect. */
import type { ConnectionCause } from '../../evd/index.js';
import type { CmConnection, CmEvent } from '../../spi/index.js';
import type { IaCore } from '../common/adapter-state.js';
import type { EpAttributes } from './attributes.js';
import type { ConnectTarget, Service } from './connect-options.js';
import type { EpEvents } from './events.js';
import type { ConnectionEventName } from './outcomes.js';
import type { EpQueues } from '../work/queues.js';
import type { EpStateName } from './states.js';

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

/** The endpoint, as its connection and keep-alive see it. */
export interface EpPorts {
  readonly core: IaCore;
  readonly attributes: EpAttributes;
  /** The current queues: a reset replaces them. */
  readonly queues: EpQueues;
  readonly events: EpEvents;
  /** Queues an event on the connect EVD; behind the completion being scanned, unless `before`. */
  post(name: ConnectionEventName, details: ConnectionEventDetails, before: boolean): void;
  /** Scans for completions now. */
  takeInCompletions(): void;
  onTransition(from: EpStateName, to: EpStateName): void;
}

/** A pending end: the queues must run empty up to these indices. */
export interface Ending {
  readonly name: ConnectionEventName;
  readonly details: ConnectionEventDetails;
  readonly sendTarget: number;
  readonly receiveTarget: number;
  /** A graceful disconnect ends after the CM's handshake. */
  awaitsCm: boolean;
  /** With a shared receive queue, the provider says when no receive will complete any more. */
  readonly awaitsReceives: boolean;
}

/** Receives the CM's events of an attempt. */
export interface AttemptListener {
  onCmEvent(event: CmEvent, attempt: Attempt): void;
}

/** One attempt at a connection; events of an earlier one are ignored. */
export class Attempt {
  connection: CmConnection | undefined = undefined;

  /** @param service requested by a connect; undefined for an accept */
  constructor(
    private readonly listener: AttemptListener,
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
    this.listener.onCmEvent(event, this);
  }
}
