/**
 * The security stage of a target: CHAP as a table of steps (RFC 7143, 12.1). The initiator proves
 * that it knows a secret, and may require the same of the target.
 */
import {
  CHAP_CHALLENGE_BYTES,
  CHAP_MD5,
  type ChapChallenge,
  type ChapCredentials,
  chapResponse,
  checkAlgorithm,
  emitBinary,
  emitChallenge,
  LOGIN_STATUS,
  type Md5,
  readChallenge,
  readList,
  readResponse,
  sameResponse,
  type TextPair,
} from '../../../wire/index.js';

type LoginStatus = (typeof LOGIN_STATUS)[keyof typeof LOGIN_STATUS];

/** Ends the login with this status; the sentence is for people. */
export class LoginRefusal extends Error {
  override readonly name = 'LoginRefusal';

  constructor(
    readonly status: LoginStatus,
    message: string,
  ) {
    super(message);
  }
}

export interface Authentication {
  /** Credentials that an initiator must prove. */
  readonly initiator: ChapCredentials;
  /** Credentials that the target proves on request. */
  readonly target?: ChapCredentials;
}

/** Functions that CHAP needs from outside. */
export interface Secrets {
  readonly md5: Md5;
  /** Returns this many random bytes, from an unpredictable source. */
  readonly random: (bytes: number) => Uint8Array;
}

/** The step that is awaited. */
type Step = 'METHOD' | 'ALGORITHM' | 'RESPONSE' | 'DONE';

/** The keys of each step; other keys of CHAP are out of order. */
const KEYS_OF: Readonly<Record<Step, readonly string[]>> = {
  METHOD: ['AuthMethod'],
  ALGORITHM: ['CHAP_A'],
  RESPONSE: ['CHAP_N', 'CHAP_R', 'CHAP_I', 'CHAP_C'],
  DONE: [],
};

/** All keys of the stage. */
const SECURITY_KEYS: ReadonlySet<string> = new Set(Object.values(KEYS_OF).flat());

export function isSecurityKey(key: string): boolean {
  return SECURITY_KEYS.has(key);
}

/** The authentication of one login. */
export class Security {
  private step: Step = 'METHOD';
  private challenge: ChapChallenge | undefined;

  /** @param authentication undefined if all initiators are admitted */
  constructor(
    private readonly authentication: Authentication | undefined,
    private readonly secrets: Secrets,
  ) {}

  /** True if authentication is not required, or was successful. */
  get isPassed(): boolean {
    return this.step === 'DONE' || this.authentication === undefined;
  }

  /** True during CHAP: the initiator may not leave the stage. */
  get isUnderWay(): boolean {
    return this.step === 'ALGORITHM' || this.step === 'RESPONSE';
  }

  /**
   * @param keys the keys of this stage in a request
   * @throws LoginRefusal; WireError for a value that its key cannot have
   */
  answer(keys: ReadonlyMap<string, string>): TextPair[] {
    for (const key of keys.keys()) {
      if (!KEYS_OF[this.step].includes(key)) {
        throw new LoginRefusal(LOGIN_STATUS.INITIATOR_ERROR, `${key} is out of order`);
      }
    }
    if (keys.size === 0) return [];
    switch (this.step) {
      case 'METHOD':
        return this.chooseMethod(keys.get('AuthMethod') ?? '');
      case 'ALGORITHM':
        return this.ask(keys.get('CHAP_A') ?? '');
      case 'RESPONSE':
        return this.verify(keys);
      case 'DONE':
        return [];
    }
  }

  private chooseMethod(offered: string): TextPair[] {
    const method = this.authentication === undefined ? 'None' : 'CHAP';
    if (!readList(offered).includes(method)) {
      throw failed(`AuthMethod is ${offered}, must have ${method} in it`);
    }
    this.step = this.authentication === undefined ? 'DONE' : 'ALGORITHM';
    return [['AuthMethod', method]];
  }

  private ask(algorithms: string): TextPair[] {
    checkAlgorithm(algorithms);
    const [identifier = 0, ...challenge] = this.secrets.random(1 + CHAP_CHALLENGE_BYTES);
    this.challenge = { identifier, challenge: Uint8Array.from(challenge) };
    this.step = 'RESPONSE';
    return [['CHAP_A', String(CHAP_MD5)], ...emitChallenge(this.challenge)];
  }

  private verify(keys: ReadonlyMap<string, string>): TextPair[] {
    const { initiator, target } = this.authentication as Authentication;
    const asked = this.challenge as ChapChallenge;
    const expected = this.responseTo(asked, initiator.secret);
    const proves = sameResponse(readResponse(keys.get('CHAP_R') ?? ''), expected);
    // Both are looked at in any case: the time does not tell which was wrong.
    if (keys.get('CHAP_N') !== initiator.name || !proves) {
      throw failed('the name or the secret of the initiator is wrong');
    }
    const [identifier, challenge] = [keys.get('CHAP_I'), keys.get('CHAP_C')];
    if (identifier === undefined && challenge === undefined) {
      this.step = 'DONE';
      return [];
    }
    const theirs = readChallenge(identifier ?? '', challenge ?? '');
    // One that sends our own challenge back wants the answer to it (RFC 7143, 9.2.1).
    if (sameResponse(theirs.challenge, asked.challenge)) throw failed('a challenge sent back');
    if (target === undefined) throw failed('the target has no secret to prove itself by');
    this.step = 'DONE';
    const response = this.responseTo(theirs, target.secret);
    return [
      ['CHAP_N', target.name],
      ['CHAP_R', emitBinary(response)],
    ];
  }

  private responseTo(asked: ChapChallenge, secret: Uint8Array): Uint8Array {
    try {
      return chapResponse(this.secrets.md5, asked, secret);
    } catch (error) {
      const why = `CHAP cannot be computed: ${(error as Error).message}`;
      throw new LoginRefusal(LOGIN_STATUS.TARGET_ERROR, why);
    }
  }
}

function failed(why: string): LoginRefusal {
  return new LoginRefusal(LOGIN_STATUS.AUTHENTICATION_FAILURE, why);
}
