/** A session of an initiator with a target that a test speaks for: no connection, no clock. */
import { createHash } from 'node:crypto';

import {
  DEFAULT_TIMES,
  DEFAULT_WISHES,
  InitiatorSession,
  type IscsiError,
  type LoginOptions,
  type OutgoingPdu,
  type ScsiCommandRequest,
  type ScsiOutcome,
  type ScsiTask,
  type SessionParameters,
  type SessionTimes,
} from '../../../../../../../samples/ulp/iser/session/initiator/index.js';
import * as wire from '../../../../../../../samples/ulp/iser/wire/index.js';

export const LUN = wire.emitLun(0);
export const md5: wire.Md5 = (bytes) => new Uint8Array(createHash('md5').update(bytes).digest());

export interface SceneOptions {
  readonly login?: Partial<Omit<LoginOptions, 'initiatorTaskTag'>>;
  readonly times?: Partial<SessionTimes>;
  readonly maxTasks?: number;
  readonly transport?: 'iser' | 'tcp';
}

export type LoginFields = Parameters<typeof wire.loginResponse.make>[0];
type ResponseFields = Parameters<typeof wire.scsiResponse.make>[0];

/** A PDU that the initiator has sent. */
export type Sent = wire.InitiatorPdu & { readonly outgoing: OutgoingPdu };

export class Scene {
  readonly session: InitiatorSession;
  readonly sent: Sent[] = [];
  readonly released: { task: ScsiTask; bytes: number }[] = [];
  readonly logoutAsked: number[] = [];
  nowMs = 1000;
  prepared = 0;
  parameters: SessionParameters | undefined;
  ends: IscsiError[] = [];
  private statSn = 100;
  expCmdSn = 5;
  /** Commands that the window has room for. */
  windowSize = 4;

  constructor({ login, times, maxTasks, transport = 'tcp' }: SceneOptions = {}) {
    this.session = new InitiatorSession(
      {
        now: () => this.nowMs,
        send: (outgoing) => this.take(outgoing),
        prepare: () => this.prepared++,
        onLoggedIn: (parameters) => (this.parameters = parameters),
        release: (task, bytes) => this.released.push({ task, bytes }),
        onLogoutAsked: (withinMs) => this.logoutAsked.push(withinMs),
        onEnd: (error) => this.ends.push(error),
      },
      {
        initiatorName: 'iqn.2026-01.io.test:initiator',
        targetName: 'iqn.2026-01.io.test:disk',
        type: 'Normal',
        isid: Uint8Array.of(0x80, 1, 2, 3, 4, 5),
        isIser: transport === 'iser',
        wishes: DEFAULT_WISHES[transport],
        tools: { md5, random: (lengthBytes) => new Uint8Array(lengthBytes).fill(9) },
        initialCmdSn: 5,
        ...login,
      },
      { ...DEFAULT_TIMES, ...times },
      maxTasks,
    );
  }

  /** The PDUs sent since the last call. */
  takeSent(): Sent[] {
    return this.sent.splice(0);
  }

  /** The only PDU sent since the last call. */
  one(): Sent {
    const sent = this.takeSent();
    if (sent.length !== 1) throw new Error(`sent: ${sent.map(({ type }) => type).join(', ')}`);
    return sent[0]!;
  }

  connect(): Sent {
    this.session.connecting();
    this.session.connected();
    return this.one();
  }

  /** @param pairs what the target answers in the operational stage, beside what it has to */
  logIn(pairs: readonly wire.TextPair[] = []): void {
    this.connect();
    this.answerLogin([['TargetPortalGroupTag', '1'], ...pairs], true);
  }

  answerLogin(pairs: readonly wire.TextPair[], transit: boolean, fields: LoginFields = {}): void {
    const stage = wire.LOGIN_STAGE;
    const data = wire.emitText(pairs);
    this.answer(
      wire.loginResponse.make({
        transit,
        currentStage: stage.OPERATIONAL,
        nextStage: transit ? stage.FULL_FEATURE : 0,
        tsih: transit ? 7 : 0,
        dataSegmentLength: data.length,
        ...this.numbers(true),
        maxCmdSn: this.expCmdSn + this.windowSize - 1,
        ...fields,
      }).bytes,
      data,
    );
  }

  /** Numbers of a PDU, with a StatSN of its own or without. */
  numbers(isStatus: boolean): { statSn: number; expCmdSn: number; maxCmdSn: number } {
    const statSn = isStatus ? this.statSn++ : this.statSn;
    const maxCmdSn = (this.expCmdSn + this.windowSize - 1) >>> 0;
    return { statSn, expCmdSn: this.expCmdSn, maxCmdSn };
  }

  answer(header: Uint8Array, data: Uint8Array = new Uint8Array(0)): void {
    const whole = new Uint8Array(header.length + data.length);
    whole.set(header);
    whole.set(data, header.length);
    this.session.receive(wire.readTargetPdu(whole));
  }

  /** A SCSI Response for a command that has been sent. */
  respond(tag: number, fields: ResponseFields = {}, data?: Uint8Array): void {
    this.expCmdSn = (this.expCmdSn + 1) >>> 0;
    const made = wire.scsiResponse.make({
      initiatorTaskTag: tag,
      ...this.numbers(true),
      dataSegmentLength: data?.length ?? 0,
      ...fields,
    });
    this.answer(made.bytes, data);
  }

  submit(request: Partial<ScsiCommandRequest> = {}): { task: ScsiTask; outcomes: ScsiOutcome[] } {
    const outcomes: ScsiOutcome[] = [];
    const task = this.session.submit({
      lun: LUN,
      cdb: wire.testUnitReady.make({}).bytes,
      done: (outcome) => outcomes.push(outcome),
      ...request,
    });
    return { task, outcomes };
  }

  private take(outgoing: OutgoingPdu): void {
    const { header, data } = outgoing;
    const whole = new Uint8Array(header.length + data.length);
    whole.set(header);
    whole.set(data, header.length);
    this.sent.push({ ...wire.readInitiatorPdu(whole), outgoing });
  }
}
