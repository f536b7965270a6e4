/**
 * A connection over an identifier of librdmacm: runs the rows of its table. What both sides have in
 * common is here; connecting is active.ts and passive.ts.
 */
import {
  type Clock,
  type CmConnection,
  type CmEvent,
  type CmParameters,
  type Device,
  type Gid,
  type Logger,
  nameOf,
  type QueuePair,
  Timer,
  type Timers,
} from '../../../core/spi/index.js';
import {
  type Actions,
  type CommEstListener,
  type Machine,
  messageOf,
  NO_DATA,
  type QpControl,
} from '../../../plugins/cm/provider.js';
import { CmEventType } from '../addon/rdmacm.js';
import type { CmCalls, ConnectionParameters } from './calls.js';
import type { CmNativeEvent } from './channel.js';
import { failureText, statusText } from './failures.js';
import type { LocalAddresses } from './local-addresses.js';
import type { PortGate } from './port-gate.js';
import type { CmAction, CmInput, CmState } from './states.js';

/** The last events and transitions of a connection, oldest first. */
const CAPACITY = 48;

class FlightRecord {
  private readonly notes: { readonly afterUs: number; readonly text: string }[] = [];

  constructor(private readonly originUs: number) {}

  add(nowUs: number, text: string): void {
    if (this.notes.length === CAPACITY) this.notes.shift();
    this.notes.push({ afterUs: nowUs - this.originUs, text });
  }

  read(): readonly string[] {
    return this.notes.map(({ afterUs, text }) => `+${(afterUs / 1000).toFixed(3)} ms ${text}`);
  }
}

/** Receives the events of an identifier. */
export interface CmIdOwner {
  onNativeEvent(event: CmNativeEvent): void;
  /** The module closes. */
  close(): void;
}

/** Services that a connection needs from the module. */
export interface CmServices {
  readonly calls: CmCalls;
  readonly device: Device;
  readonly addresses: LocalAddresses;
  readonly gate: PortGate;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly logger: Logger;
  /** The channel of everything but listeners. */
  readonly channel: number;
  /** Limit of address resolution and of route resolution, each. */
  readonly resolveTimeoutMs: number;
  own(id: number, owner: CmIdOwner): void;
  /** rdma_destroy_id; none of its events is heard afterwards. */
  destroyId(id: number): void;
  /** Called when the device is removed, before the owners of its connections are notified. */
  onRemoval(): void;
  /** Runs a task of the consumer's after the present stack has unwound, in order. */
  defer(task: () => void): void;
}

/** Delay of TIMEWAIT_EXIT after which it is no longer awaited. */
const TIMEWAIT_GRACE_US = 5_000_000;
const COMM_EST = 4;

export abstract class VerbsConnection
  implements CmConnection, CmIdOwner, CommEstListener, Machine<CmState, CmInput>
{
  state: CmState;
  protected failure: string | undefined;
  protected qpControl: QpControl | undefined;
  abstract readonly localPort: number;
  protected abstract readonly onEvent: ((event: CmEvent) => void) | undefined;
  /** The time that packets of this connection may linger, in microseconds. */
  protected timewaitUs = 0;
  private idHeld = true;
  private muted = false;
  /** One event ends a connection for the consumer; `timewait-exit` may follow it. */
  private endReported = false;
  private readonly flight: FlightRecord;
  private readonly timewait = new Timer(() => void this.dispatch('timewaitOver'));

  constructor(
    protected readonly services: CmServices,
    initial: CmState,
    protected readonly id: number,
    readonly remoteGid: Gid,
  ) {
    this.state = initial;
    this.flight = new FlightRecord(services.clock.now());
    services.own(id, this);
  }

  disconnect(): void {
    if (this.state !== 'IDLE' && !this.endReported) this.dispatch('disconnect');
  }

  notifyEstablished(): void {
    if (this.state !== 'IDLE') this.dispatch('commEst');
  }

  /** Data has come: the peer's side is established. */
  onCommEst(): void {
    this.dispatch('commEst');
  }

  abandon(): void {
    if (this.state !== 'IDLE') this.dispatch('abandon');
  }

  close(): void {
    if (this.state !== 'IDLE') this.dispatch('close');
  }

  flightRecord(): readonly string[] {
    return this.flight.read();
  }

  onNativeEvent(event: CmNativeEvent): void {
    const name = nameOf(CmEventType, event.type);
    this.failure = failureText(event);
    this.note(`RDMA_CM_EVENT_${name}${statusText(event)}`);
    this.dispatch(name as CmInput);
  }

  /** Takes an input to the table; false if it is unexpected there. */
  protected abstract dispatch(input: CmInput): boolean;

  onUnexpected(input: CmInput): void {
    this.note(`${input} is unexpected in ${this.state}`);
  }

  onInput(input: CmInput, from: CmState): void {
    if (this.state !== from) this.note(`${from} -> ${this.state} (${input})`);
  }

  onActionsDone(_from: CmState): void {
    if (this.state === 'IDLE') this.qpControl?.release();
  }

  protected note(text: string): void {
    this.flight.add(this.services.clock.now(), text);
  }

  protected emit(event: CmEvent): void {
    if (this.muted) return;
    this.note(`told: ${event.type}`);
    this.services.defer(() => {
      if (!this.muted) this.onEvent?.(event);
    });
  }

  /** An event that ends the connection: the first one counts. */
  protected emitEnd(event: CmEvent): void {
    if (this.endReported) return;
    this.endReported = true;
    this.emit(event);
  }

  /** A call that must work for the connection to go on. */
  protected attempt(call: () => void): void {
    try {
      call();
    } catch (error) {
      this.fail('callFailed', messageOf(error));
    }
  }

  /** Moves the queue pair on: raises qpReady, or qpFailed with what that means. */
  protected moveQp(meaning: string, move: () => void): void {
    try {
      move();
    } catch (error) {
      this.fail('qpFailed', `${meaning}: ${messageOf(error)}`);
      return;
    }
    this.dispatch('qpReady');
  }

  private fail(input: CmInput, failure: string): void {
    this.failure = failure;
    this.note(failure);
    this.dispatch(input);
  }

  /** As rdma_connect and rdma_accept take them. */
  protected parametersOf(
    qp: QueuePair,
    wanted: Omit<CmParameters, 'accessFlags' | 'minRnrTimer'>,
  ): ConnectionParameters {
    const { maxResponderResources, maxInitiatorDepth } = this.services.device.attributes;
    return {
      qpn: qp.qpn,
      responderResources: Math.min(wanted.responderResources, maxResponderResources),
      initiatorDepth: Math.min(wanted.initiatorDepth, maxInitiatorDepth),
      retryCount: wanted.retryCount,
      rnrRetryCount: wanted.rnrRetryCount,
      usesSharedReceives: qp.receiveRing === undefined,
    };
  }

  /** A call that may be too late. */
  protected courtesy(call: () => void): void {
    try {
      call();
    } catch (error) {
      this.note(messageOf(error));
    }
  }

  protected stopTimers(): void {
    this.services.timers.stop(this.timewait);
  }

  private destroyId(): void {
    if (!this.idHeld) return;
    this.idHeld = false;
    const { gate } = this.services;
    if (gate.isOpen) this.services.destroyId(this.id);
    else gate.wait(() => this.services.destroyId(this.id));
  }

  /** Sends a DREQ. If the port is down, it waits: there would be no answer. */
  private sendDreq(): void {
    const { gate, calls } = this.services;
    if (gate.isOpen) {
      this.attempt(() => calls.disconnect(this.id));
      return;
    }
    this.note('the port is down: DREQ waits');
    gate.wait(() => this.courtesy(() => calls.disconnect(this.id)));
    this.dispatch('callFailed');
  }

  /** The request may have come just before the port went down. */
  private sendDrep(): void {
    const { gate, calls } = this.services;
    const send = (): void => this.courtesy(() => calls.disconnect(this.id));
    if (gate.isOpen) return send();
    this.note('the port is down: DREP waits');
    gate.wait(send);
  }

  /** Starts timewait. It ends by the kernel's event, or by our clock if there will be none. */
  private startTimewait(): void {
    const { timers, clock } = this.services;
    const waitUs = this.idHeld && this.timewaitUs > 0 ? TIMEWAIT_GRACE_US : 0;
    timers.start(this.timewait, clock.now() + this.timewaitUs + waitUs);
  }

  /** Actions common to both sides. */
  protected static readonly COMMON: Actions<VerbsConnection, CmAction> = {
    stopTimers: (c) => c.stopTimers(),
    startTimewait: (c) => c.startTimewait(),
    failQp: (c) => c.qpControl?.toError(),
    notify: (c) => c.courtesy(() => c.services.calls.notify(c.id, COMM_EST)),
    sendDreq: (c) => c.sendDreq(),
    sendDrep: (c) => c.sendDrep(),
    destroyId: (c) => c.destroyId(),
    mute: (c) => (c.muted = true),
    reportAcceptFailed: (c) => {
      c.emitEnd({ type: 'accept-failed', detail: c.failure ?? 'the handshake failed' });
    },
    reportEstablished: (c) => c.emit({ type: 'established', privateData: NO_DATA }),
    reportDisconnected: (c) => c.emitEnd({ type: 'disconnected', byPeer: false }),
    reportDisconnectedByPeer: (c) => c.emitEnd({ type: 'disconnected', byPeer: true }),
    reportLost: (c) => {
      const failure = c.failure ?? 'no answer';
      c.emitEnd({ type: 'disconnected', byPeer: false, failure });
    },
    reportTimewaitExit: (c) => c.emit({ type: 'timewait-exit' }),
  };
}
