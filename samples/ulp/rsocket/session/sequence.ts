/** Sequence numbers of 16 bits, which wrap. */
export const SEQUENCE_MASK = 0xffff;

export function next16(sequence: number, by: number): number {
  return (sequence + by) & SEQUENCE_MASK;
}

/** Distance from one sequence number to the other: 0 to 65535. */
export function distance(from: number, to: number): number {
  return (to - from) & SEQUENCE_MASK;
}
