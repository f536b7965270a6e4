/**
 * The login of an initiator (RFC 7143, section 6.3): builds each Login Request, and checks the
 * responses. It has no connection and no clock.
 */
import {
  LOGIN_STAGE,
  LOGIN_STATUS,
  LOGIN_STATUS_CLASS,
  loginRequest,
  type LoginResponse,
  nameOf,
  emitText,
  parseText,
  TextAssembly,
  type TextPair,
  textParts,
  uniqueKeys,
} from '../../wire/index.js';
import { ChapClient, type ChapOptions, type ChapTools } from './chap-client.js';
import { IscsiError, protocolError } from './iscsi-error.js';
import {
  Negotiation,
  operationalOffer,
  type SessionParameters,
  type SessionType,
  type Wishes,
} from './parameters.js';

export interface LoginOptions {
  readonly initiatorName: string;
  readonly initiatorAlias?: string;
  /** Needed in a normal session. */
  readonly targetName?: string;
  readonly type: SessionType;
  /** Six bytes: with the initiator's name they name the session (RFC 7143, 11.12.5). */
  readonly isid: Uint8Array;
  readonly isIser: boolean;
  readonly wishes: Wishes;
  readonly chap?: ChapOptions;
  readonly tools: ChapTools;
  readonly initialCmdSn: number;
  readonly initiatorTaskTag: number;
}

/** A Login Request to be sent. */
export interface LoginStep {
  readonly header: Uint8Array;
  readonly data: Uint8Array;
  /** Full feature phase follows when this one is granted: room for its PDUs is needed now. */
  readonly isLast: boolean;
}

export interface LoggedIn {
  readonly parameters: SessionParameters;
  readonly tsih: number;
  readonly expStatSn: number;
  readonly expCmdSn: number;
  readonly maxCmdSn: number;
}

/** Progress of the login; each phase waits for a response. */
type Phase = 'method' | 'algorithm' | 'proof' | 'operational';

/** The longest text of one Login Request (RFC 7143, 6.1: what holds before it is negotiated). */
const MAX_TEXT_BYTES = 8192;
/** Requests of one login: a target that never comes to an end is left. */
const MAX_REQUESTS = 32;

export class InitiatorLogin {
  private phase: Phase;
  private readonly chap: ChapClient | undefined;
  private readonly negotiation: Negotiation;
  private readonly assembly = new TextAssembly();
  /** Parts of a text that are still to be sent. */
  private unsent: Uint8Array[] = [];
  private expStatSn = 0;
  private requests = 0;
  private isTransitOffered = false;
  private hasResponse = false;
  private wantsTransit = false;

  constructor(private readonly options: LoginOptions) {
    const { type, isIser, wishes, chap, tools } = options;
    this.chap = chap === undefined ? undefined : new ChapClient(chap, tools);
    this.phase = this.chap === undefined ? 'operational' : 'method';
    this.negotiation = new Negotiation(isIser, wishes, operationalOffer(type, isIser, wishes));
  }

  /** The first request. */
  start(): LoginStep {
    const first = this.whoAndWhat();
    return this.phase === 'method'
      ? this.say([...first, ['AuthMethod', 'CHAP']], false)
      : this.offer(first);
  }

  /**
   * A response has come.
   * @returns the next request, or what holds when login is over
   * @throws IscsiError, WireError: the connection is to end
   */
  take(header: LoginResponse, data: Uint8Array): LoginStep | LoggedIn {
    this.checkHeader(header);
    const isTextOpen = this.unsent.length > 0;
    if (isTextOpen) {
      if (header.transit || data.length > 0)
        throw protocolError('it answers a text before its end');
      return this.sayNextPart();
    }
    const text = this.assembly.add(data, !header.continue);
    if (text === undefined) {
      if (header.transit) throw protocolError('a Login Response has both T and C');
      return this.step(new Uint8Array(0), false, false);
    }
    const pairs = parseText(text);
    const values = uniqueKeys(pairs);
    const moved = header.transit;
    if (moved && !this.isTransitOffered) throw protocolError('it goes on to a stage unasked');
    switch (this.phase) {
      case 'method':
        return this.onMethod(values, moved);
      case 'algorithm':
        this.phase = 'proof';
        if (moved) throw protocolError('it goes on without a CHAP proof');
        return this.say(this.chapOf().prove(values), true);
      case 'proof':
        return this.onProof(values, moved, header);
      case 'operational':
        return this.onOperational(pairs, moved, header);
    }
  }

  private onMethod(values: ReadonlyMap<string, string>, moved: boolean): LoginStep {
    const method = values.get('AuthMethod');
    if (moved || method !== 'CHAP') {
      const answer = method ?? 'nothing';
      throw new IscsiError(
        'ISCSI_LOGIN_FAILED',
        `the target answers AuthMethod=CHAP with ${answer}`,
      );
    }
    this.phase = 'algorithm';
    return this.say(this.chapOf().algorithm(), false);
  }

  private onProof(
    values: ReadonlyMap<string, string>,
    moved: boolean,
    header: LoginResponse,
  ): LoginStep {
    if (!moved) throw protocolError('it asks for more after the CHAP proof');
    this.chapOf().check(values);
    if (header.nextStage !== LOGIN_STAGE.OPERATIONAL) throw protocolError('it skips a stage');
    this.phase = 'operational';
    return this.offer([]);
  }

  private onOperational(
    pairs: readonly TextPair[],
    moved: boolean,
    header: LoginResponse,
  ): LoginStep | LoggedIn {
    const answers = this.negotiation.take(pairs);
    if (!moved) return this.say(answers, true);
    if (answers.length > 0) throw protocolError(`it offers ${answers[0]![0]} and goes on`);
    if (header.nextStage !== LOGIN_STAGE.FULL_FEATURE) throw protocolError('it skips a stage');
    if (this.options.type === 'Normal' && header.tsih === 0) throw protocolError('its TSIH is 0');
    return {
      parameters: this.negotiation.outcome(),
      tsih: header.tsih,
      expStatSn: this.expStatSn,
      expCmdSn: header.expCmdSn,
      maxCmdSn: header.maxCmdSn,
    };
  }

  private checkHeader(header: LoginResponse): void {
    const { status } = header;
    if (status >>> 8 !== LOGIN_STATUS_CLASS.SUCCESS) {
      const name = nameOf(LOGIN_STATUS, status);
      throw new IscsiError('ISCSI_LOGIN_REFUSED', `the target has refused the login: ${name}`, {
        status,
      });
    }
    if (header.versionActive !== 0) throw protocolError(`its version is ${header.versionActive}`);
    if (header.currentStage !== this.stage) {
      throw protocolError(`a Login Response of stage ${header.currentStage} in ${this.stage}`);
    }
    if (header.initiatorTaskTag !== this.options.initiatorTaskTag) {
      throw protocolError('a Login Response has another task tag than the request');
    }
    // The first response says where StatSN begins (RFC 7143, 11.13.4).
    if (this.hasResponse && header.statSn !== this.expStatSn) {
      throw protocolError(`StatSN is ${header.statSn}, must be ${this.expStatSn}`);
    }
    this.hasResponse = true;
    this.expStatSn = (header.statSn + 1) >>> 0;
  }

  private get stage(): number {
    return this.phase === 'operational' ? LOGIN_STAGE.OPERATIONAL : LOGIN_STAGE.SECURITY;
  }

  private chapOf(): ChapClient {
    return this.chap!;
  }

  private whoAndWhat(): TextPair[] {
    const { initiatorName, initiatorAlias, targetName, type } = this.options;
    return [
      ['InitiatorName', initiatorName],
      ...(initiatorAlias === undefined ? [] : [['InitiatorAlias', initiatorAlias] as const]),
      ...(targetName === undefined ? [] : [['TargetName', targetName] as const]),
      ['SessionType', type],
    ];
  }

  private offer(before: readonly TextPair[]): LoginStep {
    const { type, isIser, wishes } = this.options;
    return this.say([...before, ...operationalOffer(type, isIser, wishes)], true);
  }

  private say(pairs: readonly TextPair[], transit: boolean): LoginStep {
    this.unsent = textParts(emitText(pairs), MAX_TEXT_BYTES);
    this.wantsTransit = transit;
    return this.sayNextPart();
  }

  private sayNextPart(): LoginStep {
    const part = this.unsent.shift()!;
    const isOpen = this.unsent.length > 0;
    return this.step(part, !isOpen && this.wantsTransit, isOpen);
  }

  private step(data: Uint8Array, transit: boolean, isOpen: boolean): LoginStep {
    if (++this.requests > MAX_REQUESTS) throw protocolError('its login does not come to an end');
    this.isTransitOffered = transit;
    const { isid, initialCmdSn, initiatorTaskTag } = this.options;
    const isOperational = this.phase === 'operational';
    const header = loginRequest.make({
      transit,
      continue: isOpen,
      currentStage: this.stage,
      nextStage: !transit ? 0 : isOperational ? LOGIN_STAGE.FULL_FEATURE : LOGIN_STAGE.OPERATIONAL,
      dataSegmentLength: data.length,
      isid,
      initiatorTaskTag,
      cmdSn: initialCmdSn,
      expStatSn: this.expStatSn,
    });
    return { header: header.bytes, data, isLast: transit && isOperational };
  }
}

export function isLoggedIn(outcome: LoginStep | LoggedIn): outcome is LoggedIn {
  return 'parameters' in outcome;
}
