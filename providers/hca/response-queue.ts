/**
 * What a responder owes its peer, in order: acknowledgements, NAKs, and READ and atomic results. An
 * acknowledgement covers all before it, so of a run of them only the last is kept: that is how the
 * packets of one receive burst share one ACK.
 */
export const RESPONSE = { ACK: 0, NAK: 1, RESOURCE: 2 } as const;

/** Words of an entry. For RESOURCE, SYNDROME holds the resource's number. */
const KIND = 0;
const PSN = 1;
const SYNDROME = 2;
const MSN = 3;
const STRIDE = 4;
/** Entries at first: most connections never owe more at a time. A power of two. */
const INITIAL_ENTRIES = 4;

export class ResponseQueue {
  private words = new Uint32Array(INITIAL_ENTRIES * STRIDE);
  private mask = INITIAL_ENTRIES - 1;
  private head = 0;
  private tail = 0;

  /** @param limit entries that it may grow to, a power of two */
  constructor(private readonly limit: number) {}

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
  resource(psn: number, resource: number, msn: number): void {
    this.dropTail(RESPONSE.ACK);
    this.push(RESPONSE.RESOURCE, psn, resource, msn);
  }

  /** The same before all that is owed already. */
  resourceFirst(psn: number, resource: number, msn: number): void {
    this.makeRoom();
    this.head -= 1;
    this.put(this.head, RESPONSE.RESOURCE, psn, resource, msn);
  }

  private push(kind: number, psn: number, syndrome: number, msn: number): void {
    this.makeRoom();
    this.put(this.tail, kind, psn, syndrome, msn);
    this.tail += 1;
  }

  private put(index: number, kind: number, psn: number, syndrome: number, msn: number): void {
    const at = this.at(index);
    this.words[at + KIND] = kind;
    this.words[at + PSN] = psn;
    this.words[at + SYNDROME] = syndrome;
    this.words[at + MSN] = msn;
  }

  private makeRoom(): void {
    if (this.tail - this.head > this.mask) this.grow();
  }

  private grow(): void {
    const words = new Uint32Array(this.words.length * 2);
    const { length } = this;
    for (let i = 0; i < length; i++) {
      const from = this.at(this.head + i);
      words.set(this.words.subarray(from, from + STRIDE), i * STRIDE);
    }
    this.words = words;
    this.mask = words.length / STRIDE - 1;
    this.head = 0;
    this.tail = length;
  }

  private dropTail(kind: number): boolean {
    if (this.head === this.tail || this.words[this.at(this.tail - 1) + KIND] !== kind) return false;
    this.tail -= 1;
    return true;
  }

  private at(index: number): number {
    return (index & this.mask) * STRIDE;
  }
}
