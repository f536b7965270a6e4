/** The initiator's part of CHAP (RFC 7143, 12.1.3): it authenticates, and may require the same. */
import {
  CHAP_CHALLENGE_BYTES,
  CHAP_MD5,
  type ChapChallenge,
  type ChapCredentials,
  chapResponse,
  emitBinary,
  emitChallenge,
  type Md5,
  readChallenge,
  readResponse,
  sameResponse,
  type TextPair,
} from '../../wire/index.js';
import { IscsiError, protocolError } from './iscsi-error.js';

/** Credentials of this side, and those that the target must prove. */
export interface ChapOptions {
  readonly own: ChapCredentials;
  readonly target?: ChapCredentials;
}

export interface ChapTools {
  readonly md5: Md5;
  /** So many random bytes. */
  readonly random: (lengthBytes: number) => Uint8Array;
}

export class ChapClient {
  private asked: ChapChallenge | undefined;

  constructor(
    private readonly options: ChapOptions,
    private readonly tools: ChapTools,
  ) {}

  /** The keys to send when the target has chosen CHAP. */
  algorithm(): TextPair[] {
    return [['CHAP_A', String(CHAP_MD5)]];
  }

  /**
   * The proof, and the own question where there is one.
   * @throws IscsiError, WireError where the target's question cannot be answered
   */
  prove(values: ReadonlyMap<string, string>): TextPair[] {
    const algorithm = values.get('CHAP_A');
    if (Number(algorithm) !== CHAP_MD5) {
      throw protocolError(`it answers CHAP_A=${CHAP_MD5} with ${algorithm ?? 'nothing'}`);
    }
    const asked = readChallenge(needed(values, 'CHAP_I'), needed(values, 'CHAP_C'));
    const { own, target } = this.options;
    const pairs: TextPair[] = [
      ['CHAP_N', own.name],
      ['CHAP_R', emitBinary(this.responseTo(asked, own.secret))],
    ];
    if (target === undefined) return pairs;
    this.asked = {
      identifier: this.tools.random(1)[0]!,
      challenge: this.tools.random(CHAP_CHALLENGE_BYTES),
    };
    if (sameResponse(this.asked.challenge, asked.challenge)) {
      throw protocolError('its CHAP challenge is the one that it is asked');
    }
    return [...pairs, ...emitChallenge(this.asked)];
  }

  /**
   * Looks at the target's proof, where one was asked for.
   * @throws IscsiError ISCSI_LOGIN_FAILED where it is wrong or missing
   */
  check(values: ReadonlyMap<string, string>): void {
    const { target } = this.options;
    if (target === undefined || this.asked === undefined) return;
    const name = values.get('CHAP_N');
    const response = values.get('CHAP_R');
    if (name === undefined || response === undefined) {
      throw unproven('it does not prove itself by CHAP, as it was asked');
    }
    const expected = this.responseTo(this.asked, target.secret);
    if (name !== target.name || !sameResponse(readResponse(response), expected)) {
      throw unproven(`its CHAP proof, as ${JSON.stringify(name)}, is wrong`);
    }
  }

  private responseTo(asked: ChapChallenge, secret: Uint8Array): Uint8Array {
    try {
      return chapResponse(this.tools.md5, asked, secret);
    } catch (error) {
      const why = `CHAP cannot be computed: ${(error as Error).message}`;
      throw new IscsiError('ISCSI_LOGIN_FAILED', why, { cause: error });
    }
  }
}

function unproven(what: string): IscsiError {
  return new IscsiError('ISCSI_LOGIN_FAILED', `the target is not trusted: ${what}`);
}

function needed(values: ReadonlyMap<string, string>, key: string): string {
  const value = values.get(key);
  if (value === undefined) throw protocolError(`it sends no ${key}`);
  return value;
}
