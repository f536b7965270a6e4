/**
 * A connection: runs the rows of its table. What both sides have in common is here: identities, the
 * wait for an answer, disconnecting, timewait; connecting is active.ts and
 * passive.ts.
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
import { aprOf } from '../messages/apr.js';
import { type CmAction, type CmInput, type CmRole, type CmState, transition } from './states.js';
import type { ConnectionTable } from './table.js';
import type { FlightNotes, Noting } from './flight-notes.js';
import type { Origin } from '../common/origin.js';
import type { Actions, Machine } from '../common/table-runner.js';
import type { CommEstListener, QpControl } from './qp-control.js';
import type { AnsweredRequests } from '../messages/answered-requests.js';
import { guidInfo, rejOf } from '../messages/rej.js';
import {
  ATTEMPTS_OF_A_TURN,
  DREQ_RETRIES,
  type RetryPolicy,
  timewaitUs,
} from '../common/timing.js';
import type { TransactionId } from '../common/transaction-id.js';
import type { TurnTaker, Turns } from './turns.js';
import { Wait, type Waiter } from './wait.js';
import { AP_STATUS } from '../wire/apr.js';
import { NO_DATA } from '../wire/cm-codec.js';
import type { CmMessage } from '../wire/message.js';
import { type CmRej, MESSAGE_REJECTED } from '../wire/rej.js';
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
  readonly rejected: AnsweredRequests<CmRej>;
  /** What repeats each at the CM that has it now. */
  readonly handed: AnsweredRequests<() => void>;
  /** Our node GUID. */
  readonly guid: bigint;
  newTransactionId(): TransactionId;
  /** Sends a message; a path that fails is counted: retries and timeouts are for that. */
  send(message: CmMessage, transactionId: TransactionId, path: CmPath): void;
  /** What leaves if a signal ends the process; absent where the device cannot. */
  readonly partings: Partings | undefined;
  /** Where other processes have the device, too. */
  readonly share: Pick<DeviceShare, 'noteConnection' | 'forgetConnection'> | undefined;
  /** Runs a task of the consumer's after the present stack has unwound, in order. */
  defer(task: () => void): void;
  onUnexpected(connection: Connection, input: CmInput): void;
}

/** Messages that are kept for the end of the process. */
export interface Partings {
  /** @returns a number to drop it by, or NO_PARTING */
  keep(message: CmMessage, path: CmPath): number;
  drop(parting: number): void;
}

export const NO_PARTING = -1;

/** Where a connection has a turn, or waits for one. */
const WITH_TURN: ReadonlySet<CmState> = new Set([
  'REQ_QUEUED',
  'REQ_SENT',
  'DREQ_QUEUED',
  'DREQ_SENT',
]);

/** The peer may have it established, and wait for a DREQ of ours until it has come. */
const MAY_BE_ESTABLISHED: ReadonlySet<CmState> = new Set([
  'REP_SENT',
  'MRA_REP_RCVD',
  'ESTABLISHED',
  'DREQ_QUEUED',
  'DREQ_SENT',
]);

export abstract class Connection
  implements CmConnection, TurnTaker, Noting, Waiter, CommEstListener, Machine<CmState, CmInput>
{
  abstract readonly role: CmRole;
  abstract readonly localPort: number;
  state: CmState;
  remoteCommId = 0;
  remoteGuid = 0n;
  remoteQpn = 0;
  /** The one UDP port that its messages come from, of a peer that has agreed to that; else 0. */
  sourcePort = 0;
  lastNote = NO_ROW;
  private parting = NO_PARTING;
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

  /** As a message to the peer has them. */
  protected get ids(): { readonly localCommId: number; readonly remoteCommId: number } {
    return { localCommId: this.localCommId, remoteCommId: this.remoteCommId };
  }

  /** Takes an input to the table; false if it is unexpected there. */
  abstract dispatch(input: CmInput): boolean;

  onUnexpected(input: CmInput): void {
    this.services.notes.unexpected(this, input, this.state);
    this.services.onUnexpected(this, input);
  }

  onInput(input: CmInput, from: CmState): void {
    this.services.notes.input(this, input, from, this.state);
    if (WITH_TURN.has(from) && !WITH_TURN.has(this.state)) this.services.turns.leave(this);
    if (this.state !== from) this.keepOrDropParting();
  }

  onActionsDone(): void {
    if (this.state === 'IDLE') this.end();
  }

  /** Drops all that is held, without a word to peer or consumer. */
  end(): void {
    this.forgetWait();
    this.services.turns.leave(this);
    this.qpControl?.release();
    this.services.table.remove(this);
    this.state = 'IDLE';
    this.keepOrDropParting();
  }

  /** The DREQ of an established connection, should the process end by a signal. */
  private keepOrDropParting(): void {
    const { partings } = this.services;
    if (this.parting !== NO_PARTING) partings?.drop(this.parting);
    this.parting = NO_PARTING;
    if (this.state === 'ESTABLISHED' && partings) {
      this.parting = partings.keep(this.dreq, this.path);
    }
    this.noteOrForget();
  }

  /** The same, should it be killed: another process of the device sends the DREQ. */
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
    this.presentWait.start(this.services);
  }

  protected extendWait(waitUs: number): void {
    this.presentWait.extend(waitUs);
    this.presentWait.start(this.services);
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

  onWaitOver(): void {
    this.dispatch(this.state === 'TIMEWAIT' ? 'timewaitOver' : this.presentWait.outcome);
  }

  /** What both sides do alike. */
  protected static readonly COMMON: Actions<Connection, CmAction> = {
    awaitTurn: (c) => c.services.turns.enter(c),
    nextRetry: (c) => {
      c.presentWait.again();
      if (c.attempts === ATTEMPTS_OF_A_TURN + 1) c.services.turns.leave(c);
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
