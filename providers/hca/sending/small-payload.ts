/**
 * Payload of so few bytes is moved here and now, by JavaScript: that takes less than for the port
 * to find out where it lies.
 */
export const FEW_BYTES = 16;

/** Registered memory, as bytes are moved from and to it; that it is there has been checked. */
export interface RegionBytes {
  /** The port's number of it. */
  readonly port: number;
  readonly bytes: Uint8Array;
  readonly view: DataView;
}
