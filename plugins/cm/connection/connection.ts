/**
 * A connection: runs the rows of its table. What both sides have in common is here: identities, the
 * wait for an answer, disconnecting, timewait; connecting is active-connection.ts and
 * passive-connection.ts.
 */
import { NO_ROW, SpiError } from '../../../core/spi/index.js';
import type { CmConnection, CmEvent, Clock, Gid, Timers } from '../../../core/spi/index.js';
import { aprOf } from '../messages/apr.js';
import { transition } from './states.js';
import type { CmAction, CmInput, CmRole, CmState } from './states.js';
import type { ConnectionTable } from './table.js';
import type { FlightNotes, Noting } from './flight-notes.js';
import type { Origin } from '../common/origin.js';
import type { CommEstListener, QpControl } from './qp-control.js';
import type { RejectedRequests } from '../messages/rejected-requests.js';
import { guidInfo, rejOf } from '../messages/rej.js';
import {
  ATTEMPTS_OF_A_TURN,
  DREQ_RETRIES,
  HINTED_REPEAT_US,
  timewaitUs,
} from '../common/timing.js';
import type { RetryPolicy } from '../common/timing.js';
import type { TransactionId } from '../common/transaction-id.js';
import type { TurnTaker, Turns } from './turns.js';
import { Wait } from './wait.js';
import type { Waiter } from './wait.js';
import { AP_STATUS } from '../wire/apr.js';
import type { CmMessage } from '../wire/message.js';
import { MESSAGE_REJECTED } from '../wire/rej.js';
import { REJECT_REASON } from '../wire/reject-reason.js';

/** Where the messages of a connection go, and come from. */
export interface CmPath {
  readonly gid: Gid;
  readonly localGidIndex: number;
}

/** What a connection needs of the module. */
export interface ConnectionServices {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly notes: FlightNotes;
  readonly table: ConnectionTable;
  readonly turns: Turns;
  readonly rejected: RejectedRequests;
  /** Our node GUID. */
  readonly guid: bigint;
  newTransactionId(): TransactionId;
  /** Sends a message; a path that fails is counted: retries and timeouts are for that. */
  send(message: CmMessage, transactionId: TransactionId, path: CmPath): void;
  /** Runs a task of the consumer's after the present stack has unwound, in order. */
  defer(task: () => void): void;
  onUnexpected(connection: Connection, input: CmInput): void;
}

/** What a side does, once for all its connections: there may be many. */
export type CmActions<C> = Readonly<Partial<Record<CmAction, (connection: C) => void>>>;

/** Where a connection has a turn, or waits for one. */
const WITH_TURN: ReadonlySet<CmState> = new Set([
  'REQ_QUEUED',
  'REQ_SENT',
  'DREQ_QUEUED',
  'DREQ_SENT',
]);

export abstract class Connection
  implements CmConnection, TurnTaker, Noting, Waiter, CommEstListener
{
  abstract readonly role: CmRole;
  state: CmState;
  remoteCommId = 0;
  remoteGuid = 0n;
  remoteQpn = 0;
  /** The one UDP port that its messages come from, of a peer that has agreed to that; else 0. */
  sourcePort = 0;
  lastNote = NO_ROW;
  protected qpControl: QpControl | undefined;
  /** Of the REQ: REP, RTU, MRA and REJ have the same one. */
  protected abstract readonly transactionId: TransactionId;
  /** Code of the time that packets of this connection may take. */
  protected abstract readonly ackTimeout: number;
  protected abstract readonly onEvent: ((event: CmEvent) => void) | undefined;
  /** `MESSAGE_MRAED`: which message of ours an MRA can be about. */
  protected abstract readonly messageToMra: number;
  /** There while an answer is awaited, or the end of timewait. */
  private wait: Wait | undefined = undefined;
  private muted = false;
  /** One event ends a connection for the consumer; `timewait-exit` may follow it. */
  private endReported = false;
  private dreqTransactionId: TransactionId | undefined = undefined;
  /** Of the peer's last DREQ or LAP, which are answered at once. */
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

  /** Data has come: the peer's side is established. */
  onCommEst(): void {
    this.dispatch('commEst');
  }

  /** It may send its request. */
  onTurn(): void {
    this.dispatch('turn');
  }

  /**
   * The network says that the peer does not answer: repeats what it was said of.
   * @returns the verdict, in words, when that has been said often enough
   */
  weighHint(what: string): string | undefined {
    const { wait, services } = this;
    if (!wait || !transition(this.role, this.state, 'hint')) return undefined;
    const nowUs = services.clock.now();
    const hint = wait.hints.add(nowUs);
    if (hint === 'new') this.dispatch('hint');
    return hint === 'enough' ? wait.hints.verdict(what, nowUs) : undefined;
  }

  /** The peer does not answer. */
  onUnreachable(_detail: string): void {
    this.dispatch('unreachable');
  }

  /** A message of the peer's for this connection. */
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

  /** Takes an input to the table; false if it is unexpected there. */
  dispatch(input: CmInput): boolean {
    const from = this.state;
    const row = transition(this.role, from, input);
    if (!row) {
      this.services.notes.unexpected(this, input, from);
      this.services.onUnexpected(this, input);
      return false;
    }
    this.state = row.next;
    this.services.notes.input(this, input, from, row.next);
    if (WITH_TURN.has(from) && !WITH_TURN.has(row.next)) this.services.turns.leave(this);
    for (const action of row.actions) this.run(action);
    if (this.state === 'IDLE') this.end();
    return true;
  }

  /** Drops all that is held, without a word to peer or consumer. */
  end(): void {
    this.forgetWait();
    this.services.turns.leave(this);
    this.qpControl?.release();
    this.services.table.remove(this);
    this.state = 'IDLE';
  }

  /** Does what only this side does; false when it is not one of those. */
  protected abstract act(action: CmAction): boolean;

  protected run(action: CmAction): void {
    if (this.act(action)) return;
    const perform = Connection.COMMON[action];
    if (!perform) throw new SpiError('EIO', `the ${this.role} side cannot ${action}`);
    perform(this);
  }

  protected send(message: CmMessage, transactionId = this.transactionId): void {
    this.services.notes.sent(this, message.name);
    this.services.send(message, transactionId, this.path);
  }

  protected sendRej(
    messageRejected: number,
    reason: number,
    options: { localCommId?: number; remoteCommId?: number; info?: Uint8Array } = {},
  ): void {
    const { localCommId = this.localCommId, remoteCommId = this.remoteCommId, info } = options;
    const body = rejOf({ localCommId, remoteCommId, messageRejected, reason, info });
    this.send({ name: 'REJ', body });
  }

  /** An event for the consumer; none after `mute`, not even one that is under way. */
  protected emit(event: CmEvent): void {
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

  protected startRetries(policy: RetryPolicy): void {
    this.presentWait.begin(policy);
    this.startTimer(this.presentWait.waitUs);
  }

  protected extendWait(waitUs: number): void {
    this.presentWait.extend(waitUs);
    this.startTimer(this.presentWait.waitUs);
  }

  private get presentWait(): Wait {
    return (this.wait ??= new Wait(this));
  }

  /** How often the message that is not answered has been sent. */
  protected get attempts(): number {
    return this.presentWait.attempts;
  }

  protected stopTimers(): void {
    if (this.wait) this.services.timers.stop(this.wait);
  }

  /** Nothing is awaited any more, or for the time being: there may be many such connections. */
  protected forgetWait(): void {
    this.stopTimers();
    this.wait = undefined;
  }

  private startTimer(waitUs: number): void {
    const { timers, clock } = this.services;
    this.presentWait.hastened = false;
    timers.start(this.presentWait, clock.now() + waitUs);
  }

  private hasten(): void {
    const { timers, clock } = this.services;
    const soonUs = clock.now() + HINTED_REPEAT_US;
    if (this.presentWait.deadlineUs <= soonUs) return;
    this.presentWait.hastened = true;
    timers.start(this.presentWait, soonUs);
  }

  onWaitOver(): void {
    if (this.state === 'TIMEWAIT') this.dispatch('timewaitOver');
    else if (this.presentWait.hastened) this.dispatch('repeat');
    else this.dispatch(this.presentWait.isExhausted ? 'exhausted' : 'retry');
  }

  private static readonly COMMON: CmActions<Connection> = {
    awaitTurn: (c) => c.services.turns.enter(c),
    nextRetry: (c) => {
      c.presentWait.again();
      if (c.attempts === ATTEMPTS_OF_A_TURN + 1) c.services.turns.leave(c);
      c.startTimer(c.presentWait.waitUs);
    },
    hastenRepeat: (c) => c.hasten(),
    resumeWait: (c) => {
      c.presentWait.repeat();
      c.startTimer(c.presentWait.waitUs);
    },
    stopTimers: (c) => c.stopTimers(),
    startDreqRetries: (c) => {
      c.stopTimers();
      c.startRetries(DREQ_RETRIES);
    },
    startTimewait: (c) => {
      c.services.table.forgetRemoteQp(c);
      c.startTimer(timewaitUs(c.ackTimeout));
    },
    sendDreq: (c) => {
      c.dreqTransactionId ??= c.services.newTransactionId();
      const { localCommId, remoteCommId, remoteQpn } = c;
      const body = { localCommId, remoteCommId, remoteQpn, privateData: new Uint8Array(0) };
      c.send({ name: 'DREQ', body }, c.dreqTransactionId);
    },
    sendDrep: (c) => {
      const { localCommId, remoteCommId } = c;
      const body = { localCommId, remoteCommId, privateData: new Uint8Array(0) };
      c.send({ name: 'DREP', body }, c.peerTransactionId);
    },
    refusePath: (c) => {
      const { localCommId, remoteCommId } = c;
      const body = aprOf({ localCommId, remoteCommId, apStatus: AP_STATUS.UNSUPPORTED });
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
