/**
 * A session of a target, with its one connection. The tables of `states.ts` judge received PDUs,
 * which are handled in the order of CmdSN. It does no I/O and reads no clock; a data mover carries
 * PDUs and data, and the device server executes commands.
 */
import {
  ASYNC_EVENT,
  emitText,
  type InitiatorPdu,
  LOGIN_STATUS,
  LOGOUT_REASON,
  LOGOUT_RESPONSE,
  type LoginRequest,
  readInitiatorPdu,
  REJECT_REASON,
  RESERVED_TAG,
  takesCmdSn,
  WireError,
} from '../../wire/index.js';
import { CommandWindow } from './command-window.js';
import type { AdvertisedBuffers, Datamover } from './datamover.js';
import { KeepAlive, type SetAlarm } from './keep-alive.js';
import { Login, type LoginIdentity, type LoginReply } from './login/login.js';
import { LoginRefusal } from './login/security.js';
import { faultOf, ProtocolFault } from './protocol-fault.js';
import { Responder } from './responder.js';
import { type ConnectionEvent, type ConnectionState, TRANSITIONS, VERDICTS } from './states.js';
import type { TargetNode } from './target-node.js';
import { manage, TaskSet } from './task-set.js';
import { TextExchange } from './text-exchange.js';

type PduOf<K extends InitiatorPdu['type']> = Extract<InitiatorPdu, { type: K }>;
type LoginPdu = PduOf<'loginRequest'>;
/** PDUs of full feature phase that are delivered in the order of CmdSN. */
type OrderedPdu = Exclude<InitiatorPdu, PduOf<'loginRequest' | 'dataOut' | 'snackRequest'>>;

export interface ConnectionParts {
  readonly target: TargetNode;
  readonly mover: Datamover;
  readonly alarm: SetAlarm;
  /** True for a connection over RDMA. */
  readonly isRdma: boolean;
  /** The portal that the initiator has connected to, in the form of `TargetAddress`. */
  readonly portal: string;
  /** The peer's name in messages. */
  readonly peer: string;
}

/** The end of a session, for people. */
export interface SessionEnd {
  readonly reason: string;
  /** True after a logout, or if the initiator of a discovery session has left. */
  readonly isOrderly: boolean;
}

/** State of the full feature phase. */
interface Session {
  readonly identity: LoginIdentity;
  readonly initiatorPort: string;
  readonly tsih: number;
  readonly window: CommandWindow<() => void>;
  readonly tasks: TaskSet;
  readonly text: TextExchange;
  readonly keepAlive: KeepAlive;
  /** Task management functions in progress; a logout is answered after them. */
  readonly functions: Set<Promise<void>>;
  sendDataSegmentLength: number;
  /** Set once the device server is told about the end. */
  nexusLost: Promise<void> | undefined;
}

/** Timeouts for logging in, and for disconnecting after a logout. */
const LOGIN_TIMEOUT_MS = 15_000;
const FAREWELL_TIMEOUT_MS = 5000;
const NO_DATA = new Uint8Array(0);
const LOGGING_IN: ReadonlySet<ConnectionState> = new Set(['XPT_UP', 'IN_LOGIN']);

export class TargetConnection {
  /** Resolves when the transport and all tasks have ended. */
  readonly ended: Promise<SessionEnd>;
  private current: ConnectionState = 'XPT_UP';
  private readonly responder: Responder;
  private readonly login: Login;
  private session: Session | undefined = undefined;
  private isAdmitting = false;
  private cancelTimeout: () => void;
  private end: SessionEnd | undefined = undefined;
  private resolveEnded: (end: SessionEnd) => void = () => undefined;

  constructor(private readonly parts: ConnectionParts) {
    const { target, mover, alarm, isRdma } = parts;
    this.responder = new Responder(mover);
    this.login = new Login(target.loginRules(isRdma));
    this.ended = new Promise((resolve) => (this.resolveEnded = resolve));
    this.cancelTimeout = alarm(LOGIN_TIMEOUT_MS, () => this.close('login takes too long'));
  }

  get state(): ConnectionState {
    return this.current;
  }

  /** Name and ISID of the initiator port, once it has logged in. */
  get initiatorPort(): string | undefined {
    return this.session?.initiatorPort;
  }

  get sessionType(): 'Normal' | 'Discovery' {
    return this.login.sessionType;
  }

  get tsih(): number {
    return this.session?.tsih ?? 0;
  }

  get peer(): string {
    return this.parts.peer;
  }

  /** The peer's address, without the port. */
  get address(): string {
    return this.parts.peer.replace(/:[^:]*$/, '');
  }

  /** True for a connection from this address that has not logged in yet. */
  isLoggingIn(address: string): boolean {
    return LOGGING_IN.has(this.current) && this.address === address;
  }

  /**
   * Handles a PDU. Its bytes may be reused when this returns.
   * @param bytes header, additional headers and data segment
   */
  receive(bytes: Uint8Array, advertised?: AdvertisedBuffers): void {
    this.session?.keepAlive.heard();
    try {
      this.judge(readInitiatorPdu(bytes), advertised);
    } catch (error) {
      this.onFault(error, bytes);
    }
  }

  /** Handles bytes that are no PDU, or break a rule of the transport. */
  receiveFault(error: WireError | ProtocolFault, bytes: Uint8Array): void {
    this.onFault(error, bytes);
  }

  /** The transport has ended; nothing that was passed to it will complete. */
  transportEnded(reason: string): void {
    if (this.isOver) return;
    const isOrderly = this.current === 'IN_LOGOUT' || this.sessionType === 'Discovery';
    if (this.session !== undefined && !isOrderly) this.note(`the session is lost: ${reason}`);
    this.cleanUp({ reason, isOrderly });
  }

  /** The initiator has stalled a transfer that it requested. */
  stalled(): void {
    const { transferTimeoutMs } = this.parts.target.options;
    this.abandon(`a transfer has made no progress for ${transferTimeoutMs} ms`);
  }

  /** Asks the initiator to log out, and closes the connection if it does not. */
  requestLogout(timeoutSeconds: number): void {
    if (this.current !== 'LOGGED_IN') {
      if (this.current !== 'IN_LOGOUT' && this.current !== 'LOGOUT_REQUESTED') {
        this.close('the target is closed');
      }
      return;
    }
    // Living initiators post receives of a discovery session for what they have asked for alone.
    if (this.sessionType === 'Discovery') return this.close('the target is closed');
    this.step('logout is requested');
    this.setTimeout(timeoutSeconds * 1000, 'the initiator was asked to log out, and did not');
    const values = { event: ASYNC_EVENT.LOGOUT_REQUEST, parameter3: timeoutSeconds };
    this.responder.send('asyncMessage', { ...values, lun: NO_DATA });
  }

  /** Closes the connection: pending PDUs are sent, tasks are aborted. */
  close(reason: string, isOrderly = false): void {
    if (this.isOver) return;
    this.cleanUp({ reason, isOrderly });
    this.parts.mover.terminate();
  }

  private get isOver(): boolean {
    return this.current === 'CLEANUP_WAIT' || this.current === 'FREE';
  }

  /** Closes the connection because the initiator fails to do something. */
  private abandon(reason: string): void {
    if (this.isOver) return;
    this.note(reason);
    this.close(reason);
  }

  private note(what: string): void {
    this.parts.target.options.onFault(this, new Error(what));
  }

  private judge(pdu: InitiatorPdu, advertised: AdvertisedBuffers | undefined): void {
    const verdict = VERDICTS[this.current][this.sessionType][pdu.type];
    switch (verdict) {
      case 'take':
        return this.take(pdu, advertised);
      case 'ignore':
        return;
      case 'refuse login':
        throw new LoginRefusal(LOGIN_STATUS.INVALID_DURING_LOGIN, `${pdu.type} before login`);
      case 'end':
        throw new ProtocolFault(REJECT_REASON.PROTOCOL_ERROR, `${pdu.type} out of order`, 'ends');
      case 'not supported': {
        const why = `${pdu.type} in a discovery session`;
        throw new ProtocolFault(REJECT_REASON.COMMAND_NOT_SUPPORTED, why, 'goes on');
      }
      case 'no SNACK':
        throw new ProtocolFault(REJECT_REASON.SNACK_REJECT, 'SNACK at level 0', 'goes on');
    }
  }

  private take(pdu: InitiatorPdu, advertised: AdvertisedBuffers | undefined): void {
    if (pdu.type === 'loginRequest') this.takeLogin(pdu);
    else if (pdu.type !== 'dataOut' && pdu.type !== 'snackRequest') this.order(pdu, advertised);
  }

  // Login

  private takeLogin({ header, data }: LoginPdu): void {
    if (this.isAdmitting) {
      throw new LoginRefusal(LOGIN_STATUS.INITIATOR_ERROR, 'a request before the last answer');
    }
    if (this.current === 'XPT_UP') this.step('login begins');
    this.responder.startLogin(header.cmdSn);
    const reply = this.login.request(header, data);
    if (reply.identity === undefined) this.answerLogin(loginFields(header), reply, 0);
    else {
      const admitted = this.admit(loginFields(header), reply, reply.identity);
      admitted.catch((error: unknown) => this.fail(error, 'the login failed'));
    }
  }

  /** Handles a successful login: an older session of the same name ends before this one begins. */
  private async admit(
    fields: LoginFields,
    reply: LoginReply,
    identity: LoginIdentity,
  ): Promise<void> {
    this.isAdmitting = true;
    const tsih = await this.parts.target.admit(this, identity);
    this.isAdmitting = false;
    if (this.current !== 'IN_LOGIN') return;
    if (tsih === undefined) {
      const why = 'there are as many sessions as there may be';
      return this.refuse(new LoginRefusal(LOGIN_STATUS.OUT_OF_RESOURCES, why), fields);
    }
    this.cancelTimeout();
    const session = this.makeSession(fields.cmdSn, identity, tsih);
    this.session = session;
    this.step('login succeeds');
    this.parts.mover.enable(identity.negotiated, this.responder);
    this.answerLogin(fields, reply, tsih);
    this.responder.open(session.window);
    if (identity.sessionType !== 'Normal') return;
    this.parts.target.options.device.nexusOpened(session.initiatorPort);
    session.keepAlive.start();
  }

  private answerLogin(fields: LoginFields, reply: LoginReply, tsih: number): void {
    const { currentStage, nextStage } = reply;
    const { isid, initiatorTaskTag } = fields;
    const transit = nextStage !== undefined;
    const stages = { currentStage, nextStage: nextStage ?? 0, transit };
    const text = emitText(reply.pairs);
    const status = LOGIN_STATUS.SUCCESS;
    const values = { ...stages, isid, tsih, initiatorTaskTag, status };
    this.responder.send('loginResponse', values, text);
  }

  private makeSession(cmdSn: number, identity: LoginIdentity, tsih: number): Session {
    const { target, mover, alarm, portal, isRdma } = this.parts;
    const { responder } = this;
    const { options } = target;
    const { negotiated, sessionType } = identity;
    const initiatorPort = target.portOf(identity);
    const window = new CommandWindow<() => void>(cmdSn, options.commandDepth);
    const session: Session = {
      identity,
      initiatorPort,
      tsih,
      window,
      sendDataSegmentLength: negotiated.sendDataSegmentLength,
      nexusLost: undefined,
      functions: new Set(),
      tasks: new TaskSet({
        ...{ initiatorPort, mover, responder, negotiated, device: options.device },
        maxImmediate: MAX_IMMEDIATE,
        onAnswered: () => window.open(),
        onFailure: (error) => options.onFailure(error),
      }),
      text: new TextExchange({
        sessionType,
        targetName: options.name,
        portals: () => target.portals(portal, isRdma),
        limitSegments: (bytes) => {
          session.sendDataSegmentLength = bytes;
          mover.limitSegments(bytes);
        },
      }),
      keepAlive: new KeepAlive({
        alarm,
        intervalMs: options.keepAliveMs,
        timeoutMs: options.keepAliveMs,
        ask: () => responder.ping({ lun: NO_DATA, targetTransferTag: PING_TAG }),
        gone: () => this.abandon('the initiator does not answer'),
      }),
    };
    return session;
  }

  // Full feature phase

  /** Delivers a request in its turn, and then those that waited for it. */
  private order(pdu: OrderedPdu, advertised: AdvertisedBuffers | undefined): void {
    const { window } = this.session as Session;
    const { cmdSn } = pdu.header;
    const deliverLater = (): void => this.deliverHeld(pdu.header.bytes, advertised);
    const isImmediate = !takesCmdSn(pdu);
    switch (window.admit(cmdSn, isImmediate, deliverLater)) {
      case 'ignore':
        return;
      case 'hold': {
        // The buffer is used again before the turn of this one comes.
        const bytes = pdu.header.bytes.slice();
        window.replace(cmdSn, () => this.deliverHeld(bytes, advertised));
        return;
      }
      case 'deliver':
        this.deliver(pdu, advertised);
        if (!isImmediate) this.deliverNext();
    }
  }

  private deliverNext(): void {
    const { window } = this.session as Session;
    for (let next = window.next(); next !== undefined; next = window.next()) next();
  }

  private deliverHeld(bytes: Uint8Array, advertised: AdvertisedBuffers | undefined): void {
    try {
      this.deliver(readInitiatorPdu(bytes) as OrderedPdu, advertised);
    } catch (error) {
      this.onFault(error, bytes);
    }
  }

  private deliver(pdu: OrderedPdu, advertised: AdvertisedBuffers | undefined): void {
    const { tasks, window } = this.session as Session;
    // A logout in front of it has ended the session.
    if (this.current !== 'LOGGED_IN' && this.current !== 'LOGOUT_REQUESTED') return;
    try {
      switch (pdu.type) {
        case 'scsiCommand':
          return tasks.start(pdu, advertised);
        case 'nopOut':
          return this.onNopOut(pdu);
        case 'textRequest':
          return this.onText(pdu);
        case 'taskManagementRequest':
          return this.onTaskManagement(pdu);
        case 'logoutRequest':
          return this.onLogout(pdu);
      }
    } catch (error) {
      // It has had its turn, and is not answered but by a Reject.
      if (takesCmdSn(pdu)) window.open();
      throw error;
    }
  }

  private onNopOut(pdu: PduOf<'nopOut'>): void {
    const { initiatorTaskTag, lun } = pdu.header;
    const session = this.session as Session;
    if (takesCmdSn(pdu)) session.window.open();
    // The answer to a ping of ours, or no answer is wanted.
    if (initiatorTaskTag === RESERVED_TAG) return;
    const data = pdu.data.slice(0, session.sendDataSegmentLength);
    this.responder.send('nopIn', { initiatorTaskTag, lun }, data);
  }

  private onText(pdu: PduOf<'textRequest'>): void {
    const session = this.session as Session;
    const { initiatorTaskTag, lun } = pdu.header;
    const { text, window, sendDataSegmentLength } = session;
    const { data, isFinal, continues, targetTransferTag } = text.request(
      pdu.header,
      pdu.data,
      sendDataSegmentLength,
    );
    if (takesCmdSn(pdu)) window.open();
    const values = { initiatorTaskTag, lun, targetTransferTag };
    this.responder.send('textResponse', { ...values, final: isFinal, continue: continues }, data);
  }

  private onTaskManagement(pdu: PduOf<'taskManagementRequest'>): void {
    const { functions } = this.session as Session;
    const answered = this.manage(pdu)
      .catch((error: unknown) => this.fail(error, 'task management failed'))
      .finally(() => functions.delete(answered));
    functions.add(answered);
  }

  private async manage(pdu: PduOf<'taskManagementRequest'>): Promise<void> {
    const { tasks, window, initiatorPort } = this.session as Session;
    const { device } = this.parts.target.options;
    const { header } = pdu;
    const { initiatorTaskTag, referencedTaskTag, refCmdSn } = header;
    const request = {
      function: header.function,
      lun: header.lun.slice(),
      referencedTaskTag,
      refCmdSn,
    };
    const hasCmdSn = takesCmdSn(pdu);
    const skip = (cmdSn: number): boolean => {
      const admission = window.admit(cmdSn, false, () => window.open());
      if (admission === 'deliver') {
        window.open();
        this.deliverNext();
      }
      return admission !== 'ignore';
    };
    const response = await manage(request, { initiatorPort, device, tasks, skip });
    if (hasCmdSn) window.open();
    if (this.isOver) return;
    this.responder.send('taskManagementResponse', { initiatorTaskTag, response });
  }

  private onLogout({ header }: PduOf<'logoutRequest'>): void {
    const { identity, window } = this.session as Session;
    const { initiatorTaskTag, reason, cid } = header;
    const refusal = logoutRefusal(reason, cid, identity);
    if (refusal === undefined) {
      this.leave(initiatorTaskTag).catch((error: unknown) => this.fail(error, 'logout failed'));
      return;
    }
    if (!header.immediate) window.open();
    this.responder.send('logoutResponse', { initiatorTaskTag, response: refusal });
  }

  /** Answers a logout when no command of the session is in flight. */
  private async leave(initiatorTaskTag: number): Promise<void> {
    this.step('logout begins');
    this.setTimeout(FAREWELL_TIMEOUT_MS, 'logged out', true);
    const session = this.session as Session;
    await session.tasks.close(new Error('logout'));
    // What was asked for before the logout is answered before it.
    await Promise.all(session.functions);
    // An initiator that has its answer may come again before the transport has ended.
    await this.loseNexus(session);
    if (this.state !== 'IN_LOGOUT') return;
    const response = LOGOUT_RESPONSE.CLOSED;
    this.responder.send('logoutResponse', { initiatorTaskTag, response, time2Wait: TIME2WAIT });
  }

  private get isInFullFeaturePhase(): boolean {
    return this.current === 'LOGGED_IN' || this.current === 'LOGOUT_REQUESTED';
  }

  // Faults and the end

  /** Handles a bug of this program: in its device server, or here. */
  private fail(error: unknown, reason: string): void {
    this.parts.target.options.onFailure(error);
    this.close(reason);
  }

  private onFault(error: unknown, bytes: Uint8Array): void {
    if (error instanceof LoginRefusal) return this.refuse(error, loginFieldsOf(bytes));
    const fault = error instanceof WireError ? faultOf(error) : error;
    if (!(fault instanceof ProtocolFault)) throw error;
    if (this.session === undefined) {
      const refusal = new LoginRefusal(LOGIN_STATUS.INVALID_DURING_LOGIN, fault.message);
      return this.refuse(refusal, loginFieldsOf(bytes));
    }
    if (!this.isInFullFeaturePhase) return;
    // A Reject carries the header that it is about.
    const rejected = bytes.slice(0, HEADER_BYTES);
    if (rejected.length === HEADER_BYTES) {
      this.responder.send('reject', { reason: fault.reason }, rejected);
    }
    this.parts.target.options.onFault(this, fault);
    if (fault.session === 'ends') this.close(fault.message);
  }

  private refuse(
    refusal: LoginRefusal,
    { isid, initiatorTaskTag, currentStage }: LoginFields,
  ): void {
    if (this.current !== 'XPT_UP' && this.current !== 'IN_LOGIN') return;
    const { status } = refusal;
    const values = { isid, initiatorTaskTag, currentStage, status };
    this.responder.send('loginResponse', values);
    this.parts.target.options.onFault(this, refusal);
    this.close(`login refused: ${refusal.message}`);
  }

  private step(event: ConnectionEvent): void {
    const next = TRANSITIONS[this.current][event];
    if (next === undefined) throw new RangeError(`${event} is not possible in ${this.current}`);
    this.current = next;
  }

  private setTimeout(ms: number, reason: string, isOrderly = false): void {
    this.cancelTimeout();
    this.cancelTimeout = this.parts.alarm(ms, () => this.close(reason, isOrderly));
  }

  private cleanUp(end: SessionEnd): void {
    if (this.isOver) return;
    this.step('transport ends');
    this.end = end;
    this.cancelTimeout();
    this.session?.keepAlive.stop();
    this.finish(end).catch(this.parts.target.options.onFailure);
  }

  /** Tells the device server about the end, once; resolves when no command is in progress. */
  private async loseNexus(session: Session): Promise<void> {
    if (session.identity.sessionType === 'Discovery') return;
    const { device, onFailure } = this.parts.target.options;
    session.nexusLost ??= device.nexusLost(session.initiatorPort).catch(onFailure);
    await session.nexusLost;
  }

  private async finish(end: SessionEnd): Promise<void> {
    const { session } = this;
    const { target } = this.parts;
    await session?.tasks.close(new Error(end.reason));
    if (session !== undefined) await this.loseNexus(session);
    this.step('cleaned up');
    target.leave(this);
    this.resolveEnded(end);
  }
}

/** Immediate commands of a session in flight. */
const MAX_IMMEDIATE = 16;
/** Transfer tag of a ping: one is in flight at a time. */
const PING_TAG = 1;
const HEADER_BYTES = 48;
/** Seconds before an initiator that was told to log out may connect again. */
const TIME2WAIT = 0;

/** Fields of a request that its login response repeats. */
interface LoginFields {
  readonly isid: Uint8Array;
  readonly initiatorTaskTag: number;
  readonly currentStage: number;
  readonly cmdSn: number;
}

function loginFields(header: LoginRequest): LoginFields {
  const { isid, initiatorTaskTag, currentStage, cmdSn } = header;
  return { isid: isid.slice(), initiatorTaskTag, currentStage, cmdSn };
}

/** The fields of a login request; defaults for bytes that are none. */
function loginFieldsOf(bytes: Uint8Array): LoginFields {
  try {
    const pdu = readInitiatorPdu(bytes);
    if (pdu.type === 'loginRequest') return loginFields(pdu.header);
  } catch (error) {
    if (!(error instanceof WireError)) throw error;
  }
  return { isid: NO_DATA, initiatorTaskTag: RESERVED_TAG, currentStage: 0, cmdSn: 0 };
}

function logoutRefusal(reason: number, cid: number, identity: LoginIdentity): number | undefined {
  switch (reason) {
    case LOGOUT_REASON.CLOSE_SESSION:
      return undefined;
    case LOGOUT_REASON.CLOSE_CONNECTION:
      return cid === identity.cid ? undefined : LOGOUT_RESPONSE.CONNECTION_NOT_FOUND;
    case LOGOUT_REASON.REMOVE_FOR_RECOVERY:
      return LOGOUT_RESPONSE.RECOVERY_NOT_SUPPORTED;
    default:
      throw new ProtocolFault(
        REJECT_REASON.INVALID_PDU_FIELD,
        `the reason for logout is ${reason}, must be 0 to 2`,
        'goes on',
      );
  }
}
