/** Bytes that are the same wherever they are made, and are no repetition of a short piece. */
const PERIOD_BYTES = 1 << 20;
let period: Buffer | undefined;

export function patternOf(bytes: number): Buffer {
  period ??= made();
  const whole = Buffer.alloc(bytes);
  for (let at = 0; at < bytes; at += PERIOD_BYTES) period.copy(whole, at);
  return whole;
}

/** A small generator (xorshift). */
function made(): Buffer {
  const words = new Uint32Array(PERIOD_BYTES / 4);
  let state = 0x9e3779b9;
  for (let i = 0; i < words.length; i++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    words[i] = state;
  }
  return Buffer.from(words.buffer);
}
