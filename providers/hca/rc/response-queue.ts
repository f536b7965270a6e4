/**
 * Responses that a responder owes its peer, in order: acknowledgements, NAKs, and READ and atomic
 * results. An acknowledgement covers all before it, so only the last of a run is kept: that is how
 * the packets of one receive burst share one ACK.
 */
import {
  type ConnectionMemory,
  FEW_RESPONSES,
  RESPONSE_ROW,
  RESPONSES_AT,
} from '../queue-pair/queue-pair-memory.js';

export const RESPONSE = { ACK: 0, NAK: 1, RESOURCE: 2 } as const;

/** Words of an entry. For RESOURCE, the syndrome is the resource's number, which keeps its MSN. */
const { kind: KIND, psn: PSN, syndrome: SYNDROME, msn: MSN } = RESPONSE_ROW.at;
const STRIDE = RESPONSE_ROW.end;

export class ResponseQueue {
  /** Replaces the few entries in the queue pair's memory when more are owed. */
  private many: Uint32Array | undefined = undefined;
  private mask = FEW_RESPONSES - 1;
  private head = 0;
  private tail = 0;
  /** Entries that it may grow to, a power of two. */
  private limit = 64;

  constructor(private readonly memory: ConnectionMemory) {}

  /** Begins anew, and empty. @param limit entries that it may grow to, a power of two */
  begin(limit: number): void {
    this.limit = limit;
    this.many = undefined;
    this.mask = FEW_RESPONSES - 1;
    this.clear();
  }

  private get length(): number {
    return this.tail - this.head;
  }

  get empty(): boolean {
    return this.head === this.tail;
  }

  /** A request that may need an entry must be dropped, as if it had been lost. */
  get full(): boolean {
    return this.tail - this.head > this.limit - 3;
  }

  clear(): void {
    this.head = 0;
    this.tail = 0;
  }

  get kind(): number {
    return this.words[this.at(this.head) + KIND]!;
  }

  get psn(): number {
    return this.words[this.at(this.head) + PSN]!;
  }

  get syndrome(): number {
    return this.words[this.at(this.head) + SYNDROME]!;
  }

  get msn(): number {
    return this.words[this.at(this.head) + MSN]!;
  }

  shift(): void {
    this.head += 1;
    if (this.head === this.tail) this.clear();
  }

  acknowledge(psn: number, syndrome: number, msn: number): void {
    this.dropTail(RESPONSE.ACK);
    this.push(RESPONSE.ACK, psn, syndrome, msn);
  }

  /** A NAK says all that the ACKs and NAKs right before it said. */
  nak(psn: number, syndrome: number, msn: number): void {
    while (this.dropTail(RESPONSE.ACK) || this.dropTail(RESPONSE.NAK));
    this.push(RESPONSE.NAK, psn, syndrome, msn);
  }

  /** A READ or atomic response acknowledges everything before it. */
  resource(psn: number, resource: number): void {
    this.dropTail(RESPONSE.ACK);
    this.push(RESPONSE.RESOURCE, psn, resource, 0);
  }

  /** As `resource`, ahead of all responses already owed. */
  resourceFirst(psn: number, resource: number): void {
    this.makeRoom();
    this.head -= 1;
    this.put(this.head, RESPONSE.RESOURCE, psn, resource, 0);
  }

  private push(kind: number, psn: number, syndrome: number, msn: number): void {
    this.makeRoom();
    this.put(this.tail, kind, psn, syndrome, msn);
    this.tail += 1;
  }

  private put(index: number, kind: number, psn: number, syndrome: number, msn: number): void {
    const { words } = this;
    const at = this.at(index);
    words[at + KIND] = kind;
    words[at + PSN] = psn;
    words[at + SYNDROME] = syndrome;
    words[at + MSN] = msn;
  }

  private makeRoom(): void {
    if (this.tail - this.head > this.mask) this.grow();
  }

  private grow(): void {
    const words = new Uint32Array((this.mask + 1) * STRIDE * 2);
    const { length } = this;
    for (let i = 0; i < length; i++) {
      const from = this.at(this.head + i);
      words.set(this.words.subarray(from, from + STRIDE), i * STRIDE);
    }
    this.many = words;
    this.mask = words.length / STRIDE - 1;
    this.head = 0;
    this.tail = length;
  }

  private dropTail(kind: number): boolean {
    if (this.head === this.tail || this.words[this.at(this.tail - 1) + KIND] !== kind) return false;
    this.tail -= 1;
    return true;
  }

  private get words(): Uint32Array {
    return this.many ?? this.memory.words;
  }

  private at(index: number): number {
    const first = this.many === undefined ? this.memory.firstWord + RESPONSES_AT : 0;
    return first + (index & this.mask) * STRIDE;
  }
}
