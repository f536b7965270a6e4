/**
 * A session of an initiator with its one connection, without the connection: it says what is sent,
 * judges what comes, and ends once. It reads no clock; `tick` tells it the time.
 *
 *     connecting, connected, lost     the transport's
 *     receive                         of each PDU, in order
 *     tick                            at `deadlineMs`, or later
 *     submit, abort, manage, text, logout     the consumer's, in the full feature phase
 */
import {
  ASYNC_EVENT,
  type AsyncMessage,
  type BasicHeader,
  basicHeader,
  BHS_BYTES,
  emitText,
  LOGOUT_REASON,
  LOGOUT_RESPONSE,
  logoutRequest,
  nameOf,
  type NopIn,
  nopOut,
  parseText,
  REJECT_REASON,
  type Reject,
  RESERVED_TAG,
  TASK_FUNCTION,
  TASK_RESPONSE,
  taskManagementRequest,
  type TargetPdu,
  TextAssembly,
  type TextPair,
  textRequest,
} from '../../wire/index.js';
import { CommandWindow } from './command-window.js';
import { asIscsiError, IscsiError, protocolError } from './iscsi-error.js';
import { InitiatorLogin, isLoggedIn, type LoginOptions, type LoginStep } from './login.js';
import type { SessionParameters } from './parameters.js';
import { checkRequest, ScsiTasks } from './scsi-tasks.js';
import { type ConnectionEvent, type ConnectionState, MAY_COME, next } from './states.js';
import { Tags } from './tags.js';
import {
  newTask,
  NO_DATA,
  type OtherRequest,
  type OutgoingPdu,
  type ScsiCommandRequest,
  type ScsiTask,
  type Task,
} from './task.js';

/** Times in milliseconds. */
export interface SessionTimes {
  /** For all of the login. */
  readonly loginTimeoutMs: number;
  /** A silent target is asked for a sign of life after so long; Infinity never asks. */
  readonly nopIntervalMs: number;
  /** For the answers to NOP-Out, task management, text and logout. */
  readonly requestTimeoutMs: number;
}

export const DEFAULT_TIMES: SessionTimes = {
  loginTimeoutMs: 15_000,
  nopIntervalMs: 5000,
  requestTimeoutMs: 15_000,
};

/** The transport of the session, and its clock. */
export interface SessionPort {
  now(): number;
  send(pdu: OutgoingPdu): void;
  /** Room for the PDUs of the full feature phase is needed: its first may come next. */
  prepare(): void;
  /** Login is over. */
  onLoggedIn(parameters: SessionParameters): void;
  /** A task has ended: see `ScsiTasksHost`. */
  release(task: ScsiTask, transferredBytes: number): void;
  /** The target wants the end, in so many milliseconds at most; no new command is sent. */
  onLogoutAsked(withinMs: number): void;
  /** The session is over, once; every task has been told. */
  onEnd(error: IscsiError): void;
}

export class InitiatorSession {
  private current: ConnectionState = 'FREE';
  private readonly login: InitiatorLogin;
  private readonly tags: Tags<Task>;
  private window = new CommandWindow(0, 0, 0);
  private scsi: ScsiTasks | undefined;
  private heardMs = 0;
  private loginDeadlineMs = Infinity;
  private isPinging = false;

  constructor(
    private readonly port: SessionPort,
    private readonly options: Omit<LoginOptions, 'initiatorTaskTag'>,
    private readonly times: SessionTimes = DEFAULT_TIMES,
    maxTasks = 256,
  ) {
    this.tags = new Tags(maxTasks);
    this.login = new InitiatorLogin({ ...options, initiatorTaskTag: 0 });
  }

  get state(): ConnectionState {
    return this.current;
  }

  /** Tasks that have a tag. */
  get outstanding(): number {
    return this.tags.size;
  }

  /** Commands that wait for room in the target's window. */
  get waiting(): number {
    return this.scsi?.waiting ?? 0;
  }

  /** The task of a tag. */
  taskOf(tag: number): Task | undefined {
    return this.tags.get(tag);
  }

  connecting(): void {
    this.move('connect');
  }

  /** The transport is there. */
  connected(): void {
    this.move('connected');
    this.loginDeadlineMs = this.port.now() + this.times.loginTimeoutMs;
    this.sendLogin(this.login.start());
  }

  /** The transport is gone, or the consumer wants no more of the session. */
  lost(error: IscsiError): void {
    if (this.current !== 'FREE') this.end('lost', error);
  }

  /** A PDU has come. What breaks the protocol ends the session. */
  receive(pdu: TargetPdu): void {
    if (this.current === 'FREE') return;
    this.heardMs = this.port.now();
    try {
      if (!MAY_COME[this.current].has(pdu.type)) {
        throw protocolError(`${pdu.type} comes in ${this.current}`);
      }
      this.dispatch(pdu);
    } catch (error) {
      this.lost(asIscsiError(error));
    }
    if (this.current === 'LOGGED_IN') this.scsi?.pump();
  }

  /** Time of the next `tick`; Infinity for never. */
  get deadlineMs(): number {
    if (this.current === 'FREE' || this.current === 'XPT_WAIT') return Infinity;
    if (this.current === 'IN_LOGIN') return this.loginDeadlineMs;
    let earliest = this.isPinging ? Infinity : this.heardMs + this.times.nopIntervalMs;
    for (const [, { deadlineMs }] of this.tags) earliest = Math.min(earliest, deadlineMs);
    return earliest;
  }

  /** The time has come to look: what has waited too long is aborted, or ends the session. */
  tick(nowMs: number): void {
    if (this.current === 'IN_LOGIN') {
      if (nowMs >= this.loginDeadlineMs) this.lost(timedOut('login', this.times.loginTimeoutMs));
      return;
    }
    if (this.scsi === undefined || this.current === 'FREE') return;
    for (const [, task] of this.tags) {
      if (nowMs < task.deadlineMs) continue;
      if (task.kind === 'other') {
        this.lost(timedOut(`its ${task.answer}`, this.times.requestTimeoutMs));
        return;
      }
      task.deadlineMs = Infinity;
      this.abortSent(task, timedOut('a command', task.request.timeoutMs ?? 0));
    }
    const isSilent = nowMs >= this.heardMs + this.times.nopIntervalMs;
    if (isSilent && !this.isPinging && this.current !== 'IN_LOGOUT') this.ping();
  }

  /**
   * Sends a command when there is room for it.
   * @returns what `abort` takes
   * @throws IscsiError ISCSI_INVALID_PARAMETER; ISCSI_CLOSED unless the session is logged in
   */
  submit(request: ScsiCommandRequest): ScsiTask {
    checkRequest(request);
    const scsi = this.logged();
    const task = newTask(request);
    scsi.submit(task);
    if (this.current === 'LOGGED_IN') scsi.pump();
    return task;
  }

  /** Ends a command early: at once where it has not been sent, else when the target says so. */
  abort(task: ScsiTask, error: IscsiError): void {
    if (this.scsi === undefined || this.current === 'FREE') return;
    if (this.scsi.withdraw(task)) {
      task.request.done({ kind: 'aborted', error });
    } else if (this.tags.get(task.tag) === task) {
      this.abortSent(task, error);
    }
  }

  /**
   * A task management function for a logical unit or the target (RFC 7143, 11.5).
   * @param done with `TASK_RESPONSE`, or the error that ended the session first
   */
  manage(what: number, lun: Uint8Array, done: (result: number | IscsiError) => void): void {
    this.logged();
    const before = this.window.cmdSn;
    const { ABORT_TASK_SET, LOGICAL_UNIT_RESET } = TASK_FUNCTION;
    const isOfUnit = what <= LOGICAL_UNIT_RESET && what >= ABORT_TASK_SET;
    const settle = (response: number): void => {
      if (response === TASK_RESPONSE.COMPLETE) this.endManaged(before, isOfUnit ? lun : undefined);
      done(response);
    };
    this.sendManagement({ function: what, lun }, settle, done);
  }

  /** Asks for text in the full feature phase: SendTargets. */
  text(pairs: readonly TextPair[], done: (result: TextPair[] | IscsiError) => void): void {
    this.logged();
    const assembly = new TextAssembly();
    const data = emitText(pairs);
    const request = this.request('textResponse', done, (pdu, tag) => {
      if (pdu.type !== 'textResponse') return true;
      const { continue: isOpen, targetTransferTag: transferTag } = pdu.header;
      const whole = assembly.add(pdu.data, !isOpen && pdu.header.final);
      if (whole === undefined) {
        if (transferTag === RESERVED_TAG) throw protocolError('a text without an end has no tag');
        this.sendText(tag, transferTag, NO_DATA);
        return false;
      }
      done(parseText(whole));
      return true;
    });
    this.sendText(request.tag, RESERVED_TAG, data);
  }

  /** Ends the session in order: the answer, or the lost connection, ends it. */
  logout(): void {
    if (this.scsi === undefined || this.current === 'IN_LOGOUT' || this.current === 'FREE') {
      this.lost(closed());
      return;
    }
    this.move('logout');
    const request = this.request(
      'logoutResponse',
      () => undefined,
      (pdu) => {
        if (pdu.type !== 'logoutResponse') return true;
        const { response } = pdu.header;
        const name = nameOf(LOGOUT_RESPONSE, response);
        const isDone = response === LOGOUT_RESPONSE.CLOSED;
        this.end(
          'loggedOut',
          isDone ? closed() : protocolError(`it answers the logout with ${name}`),
        );
        return true;
      },
    );
    const { cmdSn, expStatSn } = this.window;
    const header = logoutRequest.make({
      immediate: true,
      reason: LOGOUT_REASON.CLOSE_SESSION,
      initiatorTaskTag: request.tag,
      cmdSn,
      expStatSn,
    });
    this.port.send({ header: header.bytes, data: NO_DATA });
  }

  private dispatch(pdu: TargetPdu): void {
    if (pdu.type === 'loginResponse') {
      this.onLogin(pdu);
      return;
    }
    this.window.update(pdu.header);
    const { header, data } = pdu;
    switch (pdu.type) {
      case 'scsiResponse':
        this.scsi!.onResponse(pdu.header, data);
        return;
      case 'dataIn':
        this.scsi!.onDataIn(pdu.header, data);
        return;
      case 'r2t':
        this.scsi!.onR2t(pdu.header);
        return;
      case 'nopIn':
        this.onNopIn(pdu.header, pdu);
        return;
      case 'asyncMessage':
        this.window.takeStatus(pdu.header.statSn);
        this.onAsync(pdu.header);
        return;
      case 'reject':
        this.window.takeStatus(pdu.header.statSn);
        this.onReject(pdu.header, data);
        return;
      case 'taskManagementResponse':
      case 'textResponse':
      case 'logoutResponse':
        this.window.takeStatus(pdu.header.statSn);
        this.answered(header.initiatorTaskTag, pdu);
    }
  }

  private onLogin(pdu: TargetPdu & { readonly type: 'loginResponse' }): void {
    const outcome = this.login.take(pdu.header, pdu.data);
    if (!isLoggedIn(outcome)) {
      this.sendLogin(outcome);
      return;
    }
    const { parameters, expStatSn, maxCmdSn } = outcome;
    this.window = new CommandWindow(this.options.initialCmdSn, expStatSn, maxCmdSn);
    const { port, window, tags } = this;
    this.scsi = new ScsiTasks({
      parameters,
      window,
      tags,
      now: () => port.now(),
      send: (sent) => port.send(sent),
      release: (task, bytes) => port.release(task, bytes),
    });
    this.move('loggedIn');
    port.onLoggedIn(parameters);
  }

  private sendLogin({ header, data, isLast }: LoginStep): void {
    if (isLast) this.port.prepare();
    this.port.send({ header, data });
  }

  private onNopIn(header: NopIn, pdu: TargetPdu): void {
    const { initiatorTaskTag, targetTransferTag, lun } = header;
    if (initiatorTaskTag !== RESERVED_TAG) {
      this.window.takeStatus(header.statSn);
      this.answered(initiatorTaskTag, pdu);
      return;
    }
    // Without a transfer tag it only tells the window.
    if (targetTransferTag === RESERVED_TAG) return;
    const { cmdSn, expStatSn } = this.window;
    const answer = nopOut.make({
      immediate: true,
      initiatorTaskTag: RESERVED_TAG,
      targetTransferTag,
      lun,
      cmdSn,
      expStatSn,
    });
    this.port.send({ header: answer.bytes, data: NO_DATA });
  }

  private onAsync({ event, parameter2, parameter3 }: AsyncMessage): void {
    switch (event) {
      case ASYNC_EVENT.LOGOUT_REQUEST:
        this.move('logoutAsked');
        this.port.onLogoutAsked(parameter3 * 1000);
        return;
      case ASYNC_EVENT.CONNECTION_DROP:
      case ASYNC_EVENT.SESSION_DROP: {
        const message = `the target drops the session; back in ${parameter2} s at the earliest`;
        this.lost(new IscsiError('ISCSI_LOGOUT_ASKED', message));
        return;
      }
      case ASYNC_EVENT.NEGOTIATION_REQUEST:
        this.text([], () => undefined);
        return;
      default:
      // SCSI events come as unit attentions, too; of other events nothing follows here.
    }
  }

  private onReject(header: Reject, data: Uint8Array): void {
    const reason = nameOf(REJECT_REASON, header.reason);
    if (data.length < BHS_BYTES) throw protocolError(`a Reject (${reason}) has no header in it`);
    const rejected: BasicHeader = basicHeader.view(data);
    const opcode = `0x${rejected.opcode.toString(16)}`;
    const message = `the target rejects a PDU of opcode ${opcode}: ${reason}`;
    const error = new IscsiError('ISCSI_REJECTED', message, { status: header.reason });
    const task = this.tags.get(rejected.initiatorTaskTag);
    if (task === undefined) return;
    if (task.kind === 'scsi') this.scsi!.finish(task, { kind: 'refused', error });
    else {
      this.tags.release(task.tag);
      task.onEnd(error);
    }
  }

  private answered(tag: number, pdu: TargetPdu): void {
    const task = this.tags.get(tag);
    if (task?.kind !== 'other' || task.answer !== pdu.type) {
      throw protocolError(`${pdu.type} has the tag 0x${tag.toString(16)}, which no request has`);
    }
    task.deadlineMs = this.port.now() + this.times.requestTimeoutMs;
    if (task.onAnswer(pdu) && this.tags.get(tag) === task) this.tags.release(tag);
  }

  private ping(): void {
    const forget = (): void => {
      this.isPinging = false;
    };
    const request = this.request('nopIn', forget, () => {
      forget();
      return true;
    });
    this.isPinging = true;
    const { cmdSn, expStatSn } = this.window;
    const header = nopOut.make({
      immediate: true,
      initiatorTaskTag: request.tag,
      cmdSn,
      expStatSn,
    });
    this.port.send({ header: header.bytes, data: NO_DATA });
  }

  private abortSent(task: ScsiTask, error: IscsiError): void {
    if (task.aborting !== undefined) return;
    task.aborting = error;
    const { lun } = task.request;
    const settle = (response: number): void => {
      // Its answer, had there been one, would have come before this one.
      const { COMPLETE, TASK_DOES_NOT_EXIST } = TASK_RESPONSE;
      if (this.tags.get(task.tag) !== task) return;
      if (response === COMPLETE || response === TASK_DOES_NOT_EXIST) {
        this.scsi!.finish(task, { kind: 'aborted', error });
        return;
      }
      const name = nameOf(TASK_RESPONSE, response);
      this.lost(new IscsiError('ISCSI_TASK_MANAGEMENT', `a command cannot be aborted: ${name}`));
    };
    const { tag: referencedTaskTag, cmdSn: refCmdSn } = task;
    this.sendManagement(
      { function: TASK_FUNCTION.ABORT_TASK, lun, referencedTaskTag, refCmdSn },
      settle,
      () => undefined,
    );
  }

  private sendManagement(
    fields: Parameters<typeof taskManagementRequest.make>[0],
    settle: (response: number) => void,
    onEnd: (error: IscsiError) => void,
  ): void {
    const request = this.request('taskManagementResponse', onEnd, (pdu) => {
      if (pdu.type === 'taskManagementResponse') settle(pdu.header.response);
      return true;
    });
    const { cmdSn, expStatSn } = this.window;
    const header = taskManagementRequest.make({
      ...fields,
      immediate: true,
      initiatorTaskTag: request.tag,
      cmdSn,
      expStatSn,
    });
    this.port.send({ header: header.bytes, data: NO_DATA });
  }

  /** Commands sent before a reset, or an abort of the task set, have gone with it. */
  private endManaged(before: number, lun: Uint8Array | undefined): void {
    for (const [, task] of [...this.tags]) {
      if (task.kind !== 'scsi' || ((task.cmdSn - before) | 0) >= 0) continue;
      if (lun !== undefined && !task.request.lun.every((byte, at) => byte === lun[at])) continue;
      const message = 'a task management function has ended the command';
      const error = new IscsiError('ISCSI_ABORTED', message);
      this.scsi!.finish(task, { kind: 'aborted', error });
    }
  }

  private request(
    answer: OtherRequest['answer'],
    onEnd: (error: IscsiError) => void,
    onAnswer: (pdu: TargetPdu, tag: number) => boolean,
  ): OtherRequest {
    const request: OtherRequest = {
      kind: 'other',
      answer,
      tag: RESERVED_TAG,
      deadlineMs: this.port.now() + this.times.requestTimeoutMs,
      onAnswer: (pdu) => onAnswer(pdu, request.tag),
      onEnd,
    };
    const tag = this.tags.take(request);
    if (tag === undefined) {
      const message = `${this.tags.limit} tasks are under way, which is the limit`;
      throw new IscsiError('ISCSI_INVALID_PARAMETER', message);
    }
    request.tag = tag;
    return request;
  }

  private sendText(tag: number, targetTransferTag: number, data: Uint8Array): void {
    const { cmdSn, expStatSn } = this.window;
    const header = textRequest.make({
      immediate: true,
      dataSegmentLength: data.length,
      initiatorTaskTag: tag,
      targetTransferTag,
      cmdSn,
      expStatSn,
    });
    this.port.send({ header: header.bytes, data });
  }

  private logged(): ScsiTasks {
    if (this.scsi !== undefined && this.current !== 'FREE') return this.scsi;
    throw new IscsiError('ISCSI_CLOSED', `the session is ${this.current}, not logged in`);
  }

  private move(event: ConnectionEvent): void {
    this.current = next(this.current, event);
    this.heardMs = this.port.now();
  }

  /** Tells every task, then the glue. */
  private end(event: 'lost' | 'loggedOut', error: IscsiError): void {
    this.move(event);
    for (const [tag, task] of [...this.tags]) {
      if (this.tags.get(tag) !== task) continue;
      if (task.kind === 'scsi') {
        this.scsi!.finish(task, { kind: 'unanswered', wasSent: true, error });
      } else {
        this.tags.release(tag);
        task.onEnd(error);
      }
    }
    for (const task of this.scsi?.drain() ?? []) {
      task.request.done({ kind: 'unanswered', wasSent: false, error });
    }
    this.port.onEnd(error);
  }
}

function timedOut(what: string, limitMs: number): IscsiError {
  return new IscsiError('ISCSI_TIMED_OUT', `the target has not answered ${what} in ${limitMs} ms`);
}

function closed(): IscsiError {
  return new IscsiError('ISCSI_CLOSED', 'the session has been closed');
}
