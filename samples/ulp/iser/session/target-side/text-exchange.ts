/** Text requests in full feature phase (RFC 7143, 11.10): SendTargets, long answers in parts. */
import {
  ANSWER,
  emitText,
  isKeyName,
  parseText,
  readKey,
  RESERVED_TAG,
  TextAssembly,
  type TextPair,
  textParts,
  type TextRequest,
  uniqueKeys,
  WireError,
} from '../../wire/index.js';
import type { SessionType } from './login/operational.js';

export interface TextReply {
  readonly data: Uint8Array;
  readonly isFinal: boolean;
  /** True if parts of the answer follow on request. */
  readonly continues: boolean;
  readonly targetTransferTag: number;
}

export interface TextRules {
  readonly sessionType: SessionType;
  readonly targetName: string;
  /** Addresses that initiators can connect to: `address:port,tag`, an IPv6 address in brackets. */
  readonly portals: () => readonly string[];
  /** Called when the initiator declares the length of data segments. */
  readonly limitSegments: (bytes: number) => void;
}

/** Limit of one request in bytes, with all its parts. */
const MAX_REQUEST_BYTES = 16_384;

/** The text negotiation of a session: one at a time (RFC 7143, 11.10.4). */
export class TextExchange {
  private readonly text = new TextAssembly(MAX_REQUEST_BYTES);
  private rest: Uint8Array[] = [];
  private tag = RESERVED_TAG;
  private nextTag = 1;

  constructor(private readonly rules: TextRules) {}

  /**
   * Handles a request.
   * @param segmentBytes limit of a part of the answer
   * @throws WireError for text that is invalid, and for an unknown transfer tag
   */
  request(header: TextRequest, data: Uint8Array, segmentBytes: number): TextReply {
    const { targetTransferTag, final } = header;
    if (targetTransferTag === RESERVED_TAG) {
      // A negotiation begins, and ends one that was under way.
      this.rest = [];
      this.text.clear();
    } else if (targetTransferTag !== this.tag || this.tag === RESERVED_TAG) {
      throw new WireError('field', 'TargetTransferTag', targetTransferTag, 'one that was given');
    }
    if (header.continue && final) throw new WireError('field', 'F and C', 3, 'one of them');
    if (this.rest.length > 0) return this.part();
    const text = this.text.add(data, !header.continue);
    if (text === undefined) return this.reply(new Uint8Array(0), { isFinal: false });
    const answer = emitText(this.answers(parseText(text)));
    this.rest = textParts(answer, segmentBytes);
    return this.part();
  }

  private part(): TextReply {
    const data = this.rest.shift() ?? new Uint8Array(0);
    const continues = this.rest.length > 0;
    return this.reply(data, { isFinal: !continues, continues });
  }

  private reply(
    data: Uint8Array,
    { isFinal, continues = false }: { isFinal: boolean; continues?: boolean },
  ): TextReply {
    this.tag = isFinal ? RESERVED_TAG : this.nextTag++ & 0x7fff_ffff;
    return { data, isFinal, continues, targetTransferTag: this.tag };
  }

  private answers(pairs: readonly TextPair[]): TextPair[] {
    return [...uniqueKeys(pairs)].flatMap(([key, value]) => this.answer(key, value));
  }

  private answer(key: string, value: string): TextPair[] {
    if (key === 'SendTargets') return this.targets(value);
    if (key === 'MaxRecvDataSegmentLength') {
      this.rules.limitSegments(readKey(key, value) as number);
      return [];
    }
    // What else there is belongs to login.
    return [[key, isKeyName(key) ? ANSWER.REJECT : ANSWER.NOT_UNDERSTOOD]];
  }

  private targets(wanted: string): TextPair[] {
    const { sessionType, targetName, portals } = this.rules;
    const isDiscovery = sessionType === 'Discovery';
    // All targets are for discovery, the own one is for a normal session (RFC 7143, appendix C).
    if (isDiscovery ? wanted === '' : wanted === 'All') return [['SendTargets', ANSWER.REJECT]];
    if (wanted !== 'All' && wanted !== '' && wanted !== targetName) return [];
    const addresses = portals().map((portal): TextPair => ['TargetAddress', portal]);
    return [['TargetName', targetName], ...addresses];
  }
}
