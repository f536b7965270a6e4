/**
 * Moves payload of few bytes at once, in JavaScript: that takes less time than the port needs to
 * look up its place.
 */
export const FEW_BYTES = 16;

/** Registered memory, as bytes are moved from and to it; that it is there has been checked. */
export interface RegionBytes {
  /** The port's number of it. */
  readonly port: number;
  readonly bytes: Uint8Array;
  readonly view: DataView;
}
