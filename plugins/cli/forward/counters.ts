/** What a forwarder counts, and the line that says it. */
import type { Forwarding } from './forwarding.js';

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const;

export class Counters {
  /** Connections that have come. */
  accepted = 0;
  /** Connections for which the other end could not be reached. */
  refused = 0;
  /** Connections that were joined, and have ended with an error. */
  broken = 0;
  private forthBytes = 0;
  private backBytes = 0;

  /** @param open the connections that are there */
  constructor(private readonly open: ReadonlySet<Forwarding>) {}

  /** Keeps the bytes of a connection that has ended. */
  keep({ forthBytes, backBytes }: Forwarding): void {
    this.forthBytes += forthBytes;
    this.backBytes += backBytes;
  }

  get totalBytes(): { readonly forth: number; readonly back: number } {
    let { forthBytes: forth, backBytes: back } = this;
    for (const forwarding of this.open) {
      forth += forwarding.forthBytes;
      back += forwarding.backBytes;
    }
    return { forth, back };
  }

  get text(): string {
    const { forth, back } = this.totalBytes;
    return [
      `${this.open.size} open of ${this.accepted}`,
      `${this.refused} refused`,
      `${this.broken} broken`,
      `${bytesText(forth)} forth`,
      `${bytesText(back)} back`,
    ].join(', ');
  }
}

/** With three digits, in units of 1024. */
export function bytesText(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  const digits = unit === 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return `${value.toFixed(digits)} ${UNITS[unit]!}`;
}
