/** The error for bytes that are not a valid SDP message. */

export interface SdpWireErrorOptions {
  /** The field by its name in the tables: `bsdh.len`. */
  readonly field: string;
  readonly value: number | bigint;
  /** Allowed values. */
  readonly limit: string;
}

/** Names the field, its value and the allowed values. */
export class SdpWireError extends Error {
  readonly field: string;
  readonly value: number | bigint;
  readonly limit: string;

  constructor({ field, value, limit }: SdpWireErrorOptions) {
    super(`${field} is ${value}: it must be ${limit}`);
    this.name = 'SdpWireError';
    this.field = field;
    this.value = value;
    this.limit = limit;
  }
}

/** @throws SdpWireError unless `holds` */
export function demand(
  holds: boolean,
  field: string,
  value: number | bigint,
  limit: string,
): asserts holds {
  if (!holds) throw new SdpWireError({ field, value, limit });
}
