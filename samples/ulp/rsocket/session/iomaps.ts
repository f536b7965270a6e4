/** Areas that the two sides have published to each other (riomap, riowrite of librdmacm). */
import { checkEnd, type IomapEntry, RsocketProtocolError } from '../wire/index.js';

/** What the peer has published, by slot. */
export class PeerIomaps {
  private readonly entries: (IomapEntry | undefined)[];

  /** @param slots that this side has announced */
  constructor(slots: number) {
    this.entries = new Array<IomapEntry | undefined>(slots).fill(undefined);
  }

  /** @throws RsocketProtocolError for a slot that was not announced */
  checkSlot(slot: number): void {
    const { length } = this.entries;
    if (slot < length) return;
    throw new RsocketProtocolError(
      'iomap slot',
      slot,
      length === 0 ? 'none' : `0 to ${length - 1}`,
    );
  }

  /** @throws RsocketProtocolError for an area that passes the end of all addresses */
  set(slot: number, entry: IomapEntry): void {
    checkEnd('iomap', entry.region);
    this.entries[slot] = entry;
  }

  /** The area that has this offset in it. */
  find(offset: bigint): IomapEntry | undefined {
    return this.entries.find(
      (entry) =>
        entry !== undefined &&
        offset >= entry.offset &&
        offset < entry.offset + BigInt(entry.region.length),
    );
  }
}

/** A publication that waits for its credit. */
export interface OwnIomap {
  readonly slot: number;
  readonly entry: IomapEntry;
}

/** What this side publishes. */
export class OwnIomaps {
  private readonly taken = new Set<number>();
  private readonly waiting: OwnIomap[] = [];

  /** @param slots that the peer has announced */
  constructor(readonly slots: number) {}

  /** @returns the slot; undefined where all are taken */
  publish(entry: IomapEntry): number | undefined {
    for (let slot = 0; slot < this.slots; slot++) {
      if (this.taken.has(slot)) continue;
      this.taken.add(slot);
      this.waiting.push({ slot, entry });
      return slot;
    }
    return undefined;
  }

  /** The area is no more: its slot may be published anew. */
  withdraw(slot: number): void {
    this.taken.delete(slot);
    const at = this.waiting.findIndex((own) => own.slot === slot);
    if (at >= 0) this.waiting.splice(at, 1);
  }

  get hasWaiting(): boolean {
    return this.waiting.length > 0;
  }

  /** The oldest that waits, which is sent now. */
  take(): OwnIomap | undefined {
    return this.waiting.shift();
  }
}
