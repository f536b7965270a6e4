/**
 * The common part of both sides of a connection: ids, the wait for an answer, disconnecting and
 * timewait. active.ts and passive.ts have the two ways to connect.
 */
import {
  type Clock,
  type CmConnection,
  type CmEvent,
  type DeviceShare,
  type Gid,
  type Timers,
} from '../../../core/spi/index.js';
import { NO_ROW } from '../../../core/spi/internal/index.js';
import { AP_STATUS, aprOf } from '../wire/lap.js';
import { type CmAction, type CmInput, type CmRole, type CmState, transition } from './states.js';
import type { ConnectionTable } from './table.js';
import type { FlightNotes, Noting } from './flight-notes.js';
import type { Origin, TransactionId } from '../common/transaction-id.js';
import type { Actions, Machine } from '../common/table-runner.js';
import type { CommEstListener, QpControl } from './qp-control.js';
import type { AnsweredRequests } from '../messages/answered-requests.js';
import { guidInfo, rejOf } from '../messages/rej.js';
import {
  ATTEMPTS_THAT_COUNT,
  DREQ_RETRIES,
  type RetryPolicy,
  timewaitUs,
} from '../common/timing.js';
import type { LimitedRequest, RequestLimiter } from './request-limiter.js';
import { Wait, type Waiter } from './wait.js';
import { NO_DATA } from '../wire/cm-codec.js';
import type { CmMessage } from '../wire/message.js';
import { type CmRej, MESSAGE_REJECTED, REJECT_REASON } from '../wire/rej.js';

/** The peer's address, and our own. */
export interface CmPath {
  readonly gid: Gid;
  readonly localGidIndex: number;
}

/** Services of the module that a connection needs. */
export interface ConnectionServices {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly notes: FlightNotes;
  readonly table: ConnectionTable;
  readonly limiter: RequestLimiter;
  readonly rejected: AnsweredRequests<CmRej>;
  /** REQs that were handed over, each with a function that passes on a copy. */
  readonly handed: AnsweredRequests<() => void>;
  /** Our node GUID. */
  readonly guid: bigint;
  newTransactionId(): TransactionId;
  /** Sends a message. A failure is only counted: retries and timeouts handle it. */
  send(message: CmMessage, transactionId: TransactionId, path: CmPath): void;
  /** Messages to send if a signal ends the process; undefined if the device has no such feature. */
  readonly exitMessages: ExitMessages | undefined;
  /** Defined if several processes share the device. */
  readonly share: Pick<DeviceShare, 'noteConnection' | 'forgetConnection'> | undefined;
  /** Runs a task that calls the consumer after the current stack has unwound, in order. */
  defer(task: () => void): void;
  onUnexpected(connection: Connection, input: CmInput): void;
}

/** Stores messages to send if a signal ends the process. */
export interface ExitMessages {
  /** @returns a handle for `drop`, or NO_EXIT_MESSAGE */
  keep(message: CmMessage, path: CmPath): number;
  drop(exitMessage: number): void;
}

export const NO_EXIT_MESSAGE = -1;

/** States in which a request is unanswered or queued (request-limiter.ts). */
const LIMITED: ReadonlySet<CmState> = new Set([
  'REQ_QUEUED',
  'REQ_SENT',
  'DREQ_QUEUED',
  'DREQ_SENT',
]);

/** States in which the connection may be established at the peer, which then needs a DREQ. */
const MAY_BE_ESTABLISHED: ReadonlySet<CmState> = new Set([
  'REP_SENT',
  'MRA_REP_RCVD',
  'ESTABLISHED',
  'DREQ_QUEUED',
  'DREQ_SENT',
]);

export abstract class Connection
  implements
    CmConnection,
    LimitedRequest,
    Noting,
    Waiter,
    CommEstListener,
    Machine<CmState, CmInput>
{
  abstract readonly role: CmRole;
  abstract readonly localPort: number;
  state: CmState;
  remoteCommId = 0;
  remoteGuid = 0n;
  remoteQpn = 0;
  /** The only UDP port that the peer sends from, if it has agreed to that; else 0. */
  sourcePort = 0;
  lastNote = NO_ROW;
  private exitMessage = NO_EXIT_MESSAGE;
  protected qpControl: QpControl | undefined;
  /** The transaction id of the REQ, which REP, RTU, MRA and REJ repeat. */
  protected abstract readonly transactionId: TransactionId;
  /** Time code: how long packets of this connection may be in flight. */
  protected abstract readonly ackTimeout: number;
  protected abstract readonly onEvent: ((event: CmEvent) => void) | undefined;
  /** `MESSAGE_MRAED`: the only message of ours that an MRA can be about. */
  protected abstract readonly messageToMra: number;
  /** Defined while the connection waits for an answer, or for the end of timewait. */
  private wait: Wait | undefined = undefined;
  private muted = false;
  /** True after the one event that ends the connection; only `timewait-exit` may follow. */
  private endReported = false;
  private dreqTransactionId: TransactionId | undefined = undefined;
  /** The transaction id of the peer's last DREQ or LAP. */
  private peerTransactionId: TransactionId | undefined = undefined;

  constructor(
    protected readonly services: ConnectionServices,
    initial: CmState,
    readonly localCommId: number,
    readonly path: CmPath,
  ) {
    this.state = initial;
  }

  get remoteGid(): Gid {
    return this.path.gid;
  }

  get localQpn(): number {
    return this.qpControl?.qp.qpn ?? 0;
  }

  disconnect(): void {
    if (this.state !== 'IDLE' && !this.endReported) this.dispatch('disconnect');
  }

  notifyEstablished(): void {
    if (this.state !== 'IDLE') this.dispatch('commEst');
  }

  abandon(): void {
    if (this.state !== 'IDLE') this.dispatch('abandon');
  }

  flightRecord(): readonly string[] {
    return this.services.notes.lines(this);
  }

  /** Data has arrived, so the peer's side is established. */
  onCommEst(): void {
    this.dispatch('commEst');
  }

  /** The connection may send its request. */
  onTurn(): void {
    this.dispatch('turn');
  }

  /**
   * Takes an ICMP hint that the peer is unreachable: repeats the message soon.
   * @returns the verdict as text after enough hints
   */
  weighHint(what: string): string | undefined {
    const { wait, services } = this;
    if (!wait || !transition(this.role, this.state, 'hint')) return undefined;
    const nowUs = services.clock.now();
    const hint = wait.hints.add(nowUs);
    if (hint === 'new') this.dispatch('hint');
    return hint === 'enough' ? wait.hints.verdict(what, nowUs) : undefined;
  }

  /** Ends the connection: the peer does not answer. */
  onUnreachable(_detail: string): void {
    this.dispatch('unreachable');
  }

  /** Takes a message of the peer for this connection. */
  receive(message: CmMessage, { transactionId }: Origin): void {
    this.wait?.hints.forget();
    if (message.name === 'DREQ' || message.name === 'LAP') this.peerTransactionId = transactionId;
    if (message.name === 'REJ') {
      const { reason } = message.body;
      this.services.notes.rejected(this, reason);
      this.dispatch(reason === REJECT_REASON.STALE_CONNECTION ? 'REJ_STALE' : 'REJ');
    } else if (message.name === 'MRA' && message.body.messageMraed !== this.messageToMra) {
      this.services.notes.otherMra(this);
      this.services.onUnexpected(this, 'MRA');
    } else if (isInput(message.name)) {
      this.dispatch(message.name);
    }
  }

  /** Both ids, as messages to the peer have them. */
  protected get ids(): { readonly localCommId: number; readonly remoteCommId: number } {
    return { localCommId: this.localCommId, remoteCommId: this.remoteCommId };
  }

  /** Passes an input to the state table; false if it is unexpected. */
  abstract dispatch(input: CmInput): boolean;

  onUnexpected(input: CmInput): void {
    this.services.notes.unexpected(this, input, this.state);
    this.services.onUnexpected(this, input);
  }

  onInput(input: CmInput, from: CmState): void {
    this.services.notes.input(this, input, from, this.state);
    if (LIMITED.has(from) && !LIMITED.has(this.state)) this.services.limiter.leave(this);
    if (this.state !== from) this.updateExitMessage();
  }

  onActionsDone(): void {
    if (this.state === 'IDLE') this.end();
  }

  /** Releases everything, without a message to the peer or an event. */
  end(): void {
    this.forgetWait();
    this.services.limiter.leave(this);
    this.qpControl?.release();
    this.services.table.remove(this);
    this.state = 'IDLE';
    this.updateExitMessage();
  }

  /** Stores or drops the DREQ that is sent if a signal ends the process. */
  private updateExitMessage(): void {
    const { exitMessages } = this.services;
    if (this.exitMessage !== NO_EXIT_MESSAGE) exitMessages?.drop(this.exitMessage);
    this.exitMessage = NO_EXIT_MESSAGE;
    if (this.state === 'ESTABLISHED' && exitMessages) {
      this.exitMessage = exitMessages.keep(this.dreq, this.path);
    }
    this.noteOrForget();
  }

  /** Lets another process of the device send the DREQ if this one is killed. */
  private noteOrForget(): void {
    const { share } = this.services;
    if (share === undefined) return;
    const { localQpn, remoteQpn, localCommId, remoteCommId, path } = this;
    if (!MAY_BE_ESTABLISHED.has(this.state)) share.forgetConnection(localCommId);
    else {
      const { gid: peerGid, localGidIndex } = path;
      const ids = { localQpn, remoteQpn, localCommId, remoteCommId };
      share.noteConnection({ ...ids, peerGid, localGidIndex });
    }
  }

  private get dreq(): CmMessage {
    const body = { ...this.ids, remoteQpn: this.remoteQpn, privateData: NO_DATA };
    return { name: 'DREQ', body };
  }

  protected send(message: CmMessage, transactionId = this.transactionId): void {
    this.services.notes.sent(this, message.name);
    this.services.send(message, transactionId, this.path);
  }

  protected sendRej(
    messageRejected: number,
    reason: number,
    options: { localCommId?: number; info?: Uint8Array } = {},
  ): void {
    const body = rejOf({ ...this.ids, messageRejected, reason, ...options });
    this.send({ name: 'REJ', body });
  }

  /** Sends the consumer an event; none after `mute`, not even a pending one. */
  protected emit(event: CmEvent): void {
    this.services.defer(() => {
      if (!this.muted) this.onEvent?.(event);
    });
  }

  /** Sends the event that ends the connection, once. */
  protected emitEnd(event: CmEvent): void {
    if (this.endReported) return;
    this.endReported = true;
    this.emit(event);
  }

  protected startRetries(policy: RetryPolicy): void {
    this.presentWait.begin(policy);
    this.presentWait.start(this.services);
  }

  protected extendWait(waitUs: number): void {
    this.presentWait.extend(waitUs);
    this.presentWait.start(this.services);
  }

  private get presentWait(): Wait {
    return (this.wait ??= new Wait(this));
  }

  /** How often the unanswered message was sent. */
  protected get attempts(): number {
    return this.presentWait.attempts;
  }

  protected stopTimers(): void {
    if (this.wait) this.services.timers.stop(this.wait);
  }

  /** Drops the wait; saves memory, since there may be many idle connections. */
  protected forgetWait(): void {
    this.stopTimers();
    this.wait = undefined;
  }

  onWaitOver(): void {
    this.dispatch(this.state === 'TIMEWAIT' ? 'timewaitOver' : this.presentWait.outcome);
  }

  /** Actions of both sides. */
  protected static readonly COMMON: Actions<Connection, CmAction> = {
    awaitTurn: (c) => c.services.limiter.enter(c),
    nextRetry: (c) => {
      c.presentWait.again();
      if (c.attempts === ATTEMPTS_THAT_COUNT + 1) c.services.limiter.leave(c);
      c.presentWait.start(c.services);
    },
    hastenRepeat: (c) => c.presentWait.hasten(c.services),
    resumeWait: (c) => {
      c.presentWait.repeat();
      c.presentWait.start(c.services);
    },
    stopTimers: (c) => c.stopTimers(),
    startDreqRetries: (c) => {
      c.stopTimers();
      c.startRetries(DREQ_RETRIES);
    },
    startTimewait: (c) => {
      c.services.table.forgetRemoteQp(c);
      c.presentWait.start(c.services, timewaitUs(c.ackTimeout));
    },
    sendDreq: (c) => {
      c.dreqTransactionId ??= c.services.newTransactionId();
      c.send(c.dreq, c.dreqTransactionId);
    },
    sendDrep: (c) => {
      c.send({ name: 'DREP', body: { ...c.ids, privateData: NO_DATA } }, c.peerTransactionId);
    },
    refusePath: (c) => {
      const body = aprOf({ ...c.ids, apStatus: AP_STATUS.UNSUPPORTED });
      c.send({ name: 'APR', body }, c.peerTransactionId);
    },
    rejectStale: (c) => {
      c.sendRej(MESSAGE_REJECTED.req, REJECT_REASON.STALE_CONNECTION, { localCommId: 0 });
    },
    rejectOther: (c) => c.sendRej(MESSAGE_REJECTED.other, REJECT_REASON.CONSUMER_REJECT),
    rejectTimeout: (c) => {
      const info = guidInfo(c.services.guid);
      c.sendRej(MESSAGE_REJECTED.other, REJECT_REASON.TIMEOUT, { info });
    },
    failQp: (c) => c.qpControl?.toError(),
    goOn: (c) => void c.dispatch('answer'),
    mute: (c) => (c.muted = true),
    reportDisconnected: (c) => c.emitEnd({ type: 'disconnected', byPeer: false }),
    reportDisconnectedByPeer: (c) => c.emitEnd({ type: 'disconnected', byPeer: true }),
    reportTimewaitExit: (c) => c.emit({ type: 'timewait-exit' }),
  };
}

const INPUTS = ['REQ', 'MRA', 'REP', 'RTU', 'DREQ', 'DREP', 'LAP', 'APR'] as const;

function isInput(name: string): name is (typeof INPUTS)[number] {
  return INPUTS.some((input) => input === name);
}
