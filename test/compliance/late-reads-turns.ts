/** Whose turn it is: each of two threads sleeps, event loop and all, until it is its own. */
export const [MAIN_SLEEPS, POSTED, GO] = [1, 2, 3];

export interface ReaderData {
  readonly own: string;
  readonly to: string;
  readonly lengthBytes: number;
  /** One word, shared. */
  readonly turn: Int32Array;
}

export function waitFor(turn: Int32Array, value: number): void {
  for (let now = Atomics.load(turn, 0); now !== value; now = Atomics.load(turn, 0)) {
    Atomics.wait(turn, 0, now);
  }
}
