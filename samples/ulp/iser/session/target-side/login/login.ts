/** The login of a target (RFC 7143, section 6.3): stages, keys and answers. */
import {
  type KeyName,
  LOGIN_STAGE,
  LOGIN_STATUS,
  type LoginRequest,
  TextAssembly,
  type TextPair,
  parseText,
  RESERVED_TAG,
  uniqueKeys,
  WireError,
} from '../../../wire/index.js';
import {
  type Negotiated,
  OperationalKeys,
  type SessionType,
  UNSPOKEN_SEGMENT_BYTES,
  type Wishes,
} from './operational.js';
import {
  type Authentication,
  isSecurityKey,
  LoginRefusal,
  type Secrets,
  Security,
} from './security.js';

/** Rules that a login must meet. */
export interface LoginRules {
  readonly targetName: string;
  readonly targetAlias?: string;
  readonly portalGroupTag: number;
  readonly authentication?: Authentication;
  readonly secrets: Secrets;
  readonly wishes: Wishes;
  /** True over RDMA: a normal session must then end with RDMAExtensions=Yes. */
  readonly isRdma: boolean;
  /** True if there is a session with this handle. */
  readonly hasSession: (tsih: number) => boolean;
}

/** The initiator port and the target of a login. */
export interface LoginIdentity {
  readonly initiatorName: string;
  readonly sessionType: SessionType;
  /** Six bytes. */
  readonly isid: Uint8Array;
  readonly cid: number;
  readonly negotiated: Negotiated;
}

/** The answer to a request. */
export interface LoginReply {
  readonly pairs: readonly TextPair[];
  readonly currentStage: number;
  /** Undefined while the stage continues. */
  readonly nextStage: number | undefined;
  /** Set in the answer that ends the login. */
  readonly identity?: LoginIdentity;
}

const { SECURITY, OPERATIONAL, FULL_FEATURE } = LOGIN_STAGE;

/** Stages that may follow each stage (RFC 7143, 11.12.3). */
const NEXT_STAGES: Readonly<Record<number, readonly number[]>> = {
  [SECURITY]: [OPERATIONAL, FULL_FEATURE],
  [OPERATIONAL]: [FULL_FEATURE],
};

/** Bytes of text in one negotiation; useful ones have a few hundred. */
const MAX_TEXT_BYTES = 16_384;
/** Requests of one login; mutual CHAP, with text in parts, takes six. */
const MAX_REQUESTS = 32;
/** Keys that are allowed in either stage: they identify the requested session. */
const NAMING: ReadonlySet<string> = new Set<KeyName>([
  'InitiatorName',
  'InitiatorAlias',
  'TargetName',
  'SessionType',
]);

/** Fields that must be the same in all requests of a login. */
type Constants = Pick<LoginRequest, 'tsih' | 'initiatorTaskTag' | 'cid' | 'cmdSn'> & {
  readonly isid: Uint8Array;
};

export class Login {
  private readonly security: Security;
  private readonly operational: OperationalKeys;
  private readonly text = new TextAssembly(MAX_TEXT_BYTES);
  private readonly spoken = new Map<string, string>();
  private constants: Constants | undefined = undefined;
  private stage: number = SECURITY;
  private requests = 0;
  private hasNamedGroup = false;
  private hasDeclared = false;

  constructor(private readonly rules: LoginRules) {
    this.security = new Security(rules.authentication, rules.secrets);
    this.operational = new OperationalKeys(rules.wishes);
  }

  /** The session type requested so far: 'Normal' by default. */
  get sessionType(): SessionType {
    return this.spoken.get('SessionType') === 'Discovery' ? 'Discovery' : 'Normal';
  }

  /** Handles a request. @throws LoginRefusal */
  request(header: LoginRequest, data: Uint8Array): LoginReply {
    try {
      return this.answer(header, data);
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      throw new LoginRefusal(LOGIN_STATUS.INITIATOR_ERROR, error.message);
    }
  }

  private answer(header: LoginRequest, data: Uint8Array): LoginReply {
    this.checkHeader(header);
    const currentStage = this.stage;
    const text = this.text.add(data, !header.continue);
    if (text === undefined) return { pairs: [], currentStage, nextStage: undefined };
    const isFirst = this.spoken.size === 0;
    const keys = this.unspokenKeys(text, isFirst);
    if (isFirst) this.checkNames();
    const pairs = this.stage === SECURITY ? this.secure(keys) : this.operate(keys);
    if (isFirst) this.checkSecurity(header);
    if (!this.hasNamedGroup && this.sessionType === 'Normal') {
      this.hasNamedGroup = true;
      pairs.push(['TargetPortalGroupTag', String(this.rules.portalGroupTag)]);
    }
    if (!header.transit || !this.mayLeave()) return { pairs, currentStage, nextStage: undefined };
    const { nextStage } = header;
    this.stage = nextStage;
    if (nextStage !== FULL_FEATURE) return { pairs, currentStage, nextStage };
    return { pairs, currentStage, nextStage, identity: this.identify() };
  }

  private checkHeader(header: LoginRequest): void {
    const { transit, continue: more, currentStage, nextStage } = header;
    if (this.constants === undefined) this.begin(header);
    else checkConstants(this.constants, header);
    if (++this.requests > MAX_REQUESTS) throw fault(`more than ${MAX_REQUESTS} requests`);
    if (currentStage !== this.stage) {
      throw fault(`CSG is ${currentStage}, must be ${this.stage}`);
    }
    if (!transit) return;
    if (more) throw fault('T and C are both set');
    const allowed = NEXT_STAGES[currentStage] ?? [];
    if (!allowed.includes(nextStage)) {
      throw fault(`NSG is ${nextStage}, must be ${allowed.join(' or ')}`);
    }
  }

  private begin(header: LoginRequest): void {
    const { versionMin, currentStage, tsih, initiatorTaskTag, cid, cmdSn, isid } = header;
    if (versionMin > 0) {
      const why = `the lowest version is ${versionMin}, must be 0`;
      throw new LoginRefusal(LOGIN_STATUS.UNSUPPORTED_VERSION, why);
    }
    if (currentStage !== SECURITY && currentStage !== OPERATIONAL) {
      throw fault(`CSG is ${currentStage}, must be 0 or 1`);
    }
    if (initiatorTaskTag === RESERVED_TAG) throw fault('the task tag is reserved');
    if (tsih !== 0) {
      const [status, why] = this.rules.hasSession(tsih)
        ? [LOGIN_STATUS.TOO_MANY_CONNECTIONS, 'a session has one connection']
        : [LOGIN_STATUS.SESSION_DOES_NOT_EXIST, `there is no session ${tsih}`];
      throw new LoginRefusal(status, why);
    }
    this.stage = currentStage;
    this.constants = { tsih, initiatorTaskTag, cid, cmdSn, isid: isid.slice() };
  }

  /** Keys of this request; each key may appear once in a login (RFC 7143, 6.3). */
  private unspokenKeys(text: Uint8Array, isFirst: boolean): Map<string, string> {
    const keys = uniqueKeys(parseText(text));
    for (const [key, value] of keys) {
      if (this.spoken.has(key)) throw fault(`${key} is negotiated a second time`);
      if (NAMING.has(key) && !isFirst) {
        throw fault(`${key} is not in the first request`);
      }
      this.spoken.set(key, value);
    }
    return keys;
  }

  private checkNames(): void {
    const name = this.spoken.get('InitiatorName');
    const type = this.spoken.get('SessionType') ?? 'Normal';
    const target = this.spoken.get('TargetName');
    if (name === undefined || name === '') throw missing('InitiatorName');
    if (type !== 'Normal' && type !== 'Discovery') {
      const why = `SessionType is ${type}, must be Normal or Discovery`;
      throw new LoginRefusal(LOGIN_STATUS.SESSION_TYPE_NOT_SUPPORTED, why);
    }
    if (target === undefined) {
      if (type === 'Normal') throw missing('TargetName');
    } else if (target !== this.rules.targetName) {
      throw new LoginRefusal(LOGIN_STATUS.NOT_FOUND, `there is no target ${target}`);
    }
  }

  private checkSecurity(header: LoginRequest): void {
    if (this.security.isPassed || this.security.isUnderWay) return;
    if (this.stage === SECURITY && !header.transit) return;
    const why = 'the initiator does not authenticate itself, and must';
    throw new LoginRefusal(LOGIN_STATUS.AUTHENTICATION_FAILURE, why);
  }

  private secure(keys: Map<string, string>): TextPair[] {
    const security = new Map<string, string>();
    for (const [key, value] of keys) {
      if (NAMING.has(key)) continue;
      if (!isSecurityKey(key)) throw fault(`${key} has no place in the security stage`);
      security.set(key, value);
    }
    return this.security.answer(security);
  }

  private operate(keys: Map<string, string>): TextPair[] {
    const pairs: TextPair[] = [];
    for (const [key, value] of [...keys].sort(byDependence)) {
      if (NAMING.has(key)) continue;
      if (isSecurityKey(key)) throw fault(`${key} has no place in the operational stage`);
      const answer = this.operational.answer(key, value, this.sessionType);
      if (answer !== undefined) pairs.push([key, answer]);
    }
    this.declare(pairs);
    return pairs;
  }

  /** Adds the target's declarations, once. */
  private declare(pairs: TextPair[]): void {
    if (this.hasDeclared) return;
    this.hasDeclared = true;
    const { targetAlias } = this.rules;
    if (targetAlias !== undefined) pairs.push(['TargetAlias', targetAlias]);
    // Over iSER, InitiatorRecvDataSegmentLength and its sister are in place of it.
    if (this.operational.has('MaxRecvDataSegmentLength')) {
      pairs.push(['MaxRecvDataSegmentLength', String(this.ownSegmentBytes)]);
    }
  }

  private get ownSegmentBytes(): number {
    return Number(this.rules.wishes.MaxRecvDataSegmentLength ?? UNSPOKEN_SEGMENT_BYTES);
  }

  private mayLeave(): boolean {
    return this.stage !== SECURITY || (this.security.isPassed && !this.security.isUnderWay);
  }

  private identify(): LoginIdentity {
    const { isid, cid } = this.constants as Constants;
    const { sessionType } = this;
    const hasDeclared = this.operational.has('MaxRecvDataSegmentLength');
    const declared = hasDeclared ? this.ownSegmentBytes : UNSPOKEN_SEGMENT_BYTES;
    const negotiated = this.operational.result(declared);
    if (sessionType === 'Normal' && negotiated.rdmaExtensions !== this.rules.isRdma) {
      throw fault(`RDMAExtensions must be ${this.rules.isRdma ? 'Yes' : 'No'} here`);
    }
    const initiatorName = this.spoken.get('InitiatorName') as string;
    return { initiatorName, sessionType, isid, cid, negotiated };
  }
}

function checkConstants(first: Constants, header: LoginRequest): void {
  for (const name of ['tsih', 'initiatorTaskTag', 'cid', 'cmdSn'] as const) {
    if (header[name] !== first[name]) {
      throw fault(`${name} is ${header[name]}, must be ${first[name]} as in the first request`);
    }
  }
  if (!first.isid.every((byte, at) => byte === header.isid[at])) {
    throw fault('ISID is not that of the first request');
  }
}

/** Orders keys: the answer to FirstBurstLength depends on that to MaxBurstLength. */
function byDependence([one]: [string, string], [other]: [string, string]): number {
  return Number(one === 'FirstBurstLength') - Number(other === 'FirstBurstLength');
}

function fault(why: string): LoginRefusal {
  return new LoginRefusal(LOGIN_STATUS.INITIATOR_ERROR, why);
}

function missing(key: string): LoginRefusal {
  return new LoginRefusal(LOGIN_STATUS.MISSING_PARAMETER, `${key} is missing`);
}
