/** MADs that have come and wait for their turn; their bytes stay in QP1's receives until then. */
export type TakeMad = (
  index: number,
  byteLength: number,
  sourceQpn: number,
  sourcePort: number,
) => void;

/** Words of an entry: the parameters of TakeMad. */
const WORDS = 4;

export class ReceivedQueue {
  private readonly words: Uint32Array;
  private readonly mask: number;
  private head = 0;
  private tail = 0;

  /** @param entries of QP1's receive queue, a power of two: no more can wait */
  constructor(entries: number) {
    this.words = new Uint32Array(WORDS * entries);
    this.mask = entries - 1;
  }

  get length(): number {
    return this.tail - this.head;
  }

  push(index: number, byteLength: number, sourceQpn: number, sourcePort: number): void {
    const at = WORDS * (this.tail++ & this.mask);
    this.words[at] = index;
    this.words[at + 1] = byteLength;
    this.words[at + 2] = sourceQpn;
    this.words[at + 3] = sourcePort;
  }

  /** Takes the oldest; there must be one. */
  take(onMad: TakeMad): void {
    const at = WORDS * (this.head++ & this.mask);
    onMad(this.words[at]!, this.words[at + 1]!, this.words[at + 2]!, this.words[at + 3]!);
  }
}
