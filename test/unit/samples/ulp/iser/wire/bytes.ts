/** Bytes as hex text: blanks are for the eye, `*N` behind a byte is that byte N times. */
export function hex(text: string): Uint8Array {
  const digits = text
    .replace(/([0-9a-f]{2})\*(\d+)/g, (_, byte: string, times: string) =>
      byte.repeat(Number(times)),
    )
    .replace(/\s/g, '');
  return new Uint8Array(Buffer.from(digits, 'hex'));
}

export function toHex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}
