/** Names of a logical unit and its target (SPC-4 7.8.6). */

export interface Identity {
  /** T10 vendor identification: at most 8 characters of ASCII. */
  readonly vendor: string;
  /** At most 16. */
  readonly product: string;
  /** At most 4. */
  readonly revision: string;
  /** Identifies this unit; at most 36 characters of ASCII. */
  readonly serial: string;
}

const LIMITS = { vendor: 8, product: 16, revision: 4, serial: 36 } as const;

/** @throws RangeError if a name is empty, too long or not ASCII */
export function checkIdentity(identity: Identity): Identity {
  for (const [name, limit] of Object.entries(LIMITS)) {
    const text = identity[name as keyof Identity];
    if (text.length > 0 && text.length <= limit && /^[\x20-\x7e]*$/.test(text)) continue;
    const shown = JSON.stringify(text);
    throw new RangeError(`${name} is ${shown}, must be 1 to ${limit} characters of ASCII`);
  }
  return identity;
}

/**
 * An NAA identifier of the locally assigned form: 3, and a 60-bit hash (FNV-1a) of the serial
 * number alone, because the disk stays the same behind a target of another name.
 */
export function naaOf({ serial }: Identity): bigint {
  let hash = 0xcbf29ce484222325n;
  for (const byte of new TextEncoder().encode(serial)) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  }
  return (3n << 60n) | (hash & ((1n << 60n) - 1n));
}
