/**
 * What a disk may hold after a loss of power, by what was asked of it and what it has answered; and
 * a mix of requests that a seed decides. The disk is behind an interface: the same mix runs against
 * the device server alone and through an initiator.
 */
import assert from 'node:assert/strict';

/** A disk as its consumer sees it. Every call rejects when the power has gone. */
export interface DiskUnderTest {
  readonly blockBytes: number;
  write(lba: number, data: Uint8Array, fua: boolean): Promise<void>;
  flush(): Promise<void>;
  unmap(lba: number, blocks: number): Promise<void>;
  /** Compares with what is expected there, and writes if it is. */
  compareAndWrite?(lba: number, expected: Uint8Array, data: Uint8Array): Promise<void>;
}

/** A block has the number of the write that made it in each of its words; 0 after none. */
export function blockOf(number: number, blockBytes: number): Uint8Array {
  return new Uint8Array(new Uint32Array(blockBytes / 4).fill(number).buffer);
}

/** The number, or undefined for a block that no write has made. */
export function numberOf(block: Uint8Array): number | undefined {
  const words = new Uint32Array(Uint8Array.from(block).buffer);
  return words.every((word) => word === words[0]) ? words[0] : undefined;
}

interface Place {
  /** What was there at the last flush that was answered. */
  durable: number;
  /** Since then, oldest first. */
  since: { readonly number: number; isAnswered: boolean }[];
}

export class DurabilityModel {
  private readonly places: Place[];

  constructor(blocks: number) {
    this.places = Array.from({ length: blocks }, () => ({ durable: 0, since: [] }));
  }

  /** What a read finds. */
  latest(lba: number): number {
    const place = this.places[lba]!;
    return place.since.at(-1)?.number ?? place.durable;
  }

  /** A write that is under way. @returns what notes its answer */
  write(lba: number, blocks: number, number: number): (isDurable: boolean) => void {
    const entries = Array.from({ length: blocks }, (_, i) => {
      const entry = { number, isAnswered: false };
      const place = this.places[lba + i]!;
      place.since.push(entry);
      return { entry, place };
    });
    return (isDurable) => {
      for (const { entry, place } of entries) {
        entry.isAnswered = true;
        if (isDurable) settle(place, place.since.indexOf(entry));
      }
    };
  }

  /** A flush that is under way: it covers what has been answered by now. @returns as above */
  flush(): () => void {
    const covered = this.places.map((place) => ({
      place,
      last: place.since.findLast(({ isAnswered }) => isAnswered),
    }));
    return () => {
      for (const { place, last } of covered) {
        if (last !== undefined) settle(place, place.since.indexOf(last));
      }
    };
  }

  /** @throws AssertionError for a block that holds what it must not, after the power was lost */
  check(lba: number, block: Uint8Array): void {
    const { durable, since } = this.places[lba]!;
    const allowed = [durable, ...since.map(({ number }) => number)];
    const found = numberOf(block);
    assert.ok(
      found !== undefined && allowed.includes(found),
      `block ${lba} has ${found}, may have ${allowed.join(', ')}`,
    );
  }
}

/** Everything up to this one can be forgotten. */
function settle(place: Place, index: number): void {
  if (index < 0) return;
  place.durable = place.since[index]!.number;
  place.since.splice(0, index + 1);
}

export interface MixOptions {
  readonly random: () => number;
  readonly blocks: number;
  /** Requests of each lane, and lanes that are busy at a time, each with blocks of its own. */
  readonly requests: number;
  readonly lanes: number;
  /** Every write is durable when it is answered. */
  readonly writeThrough?: boolean;
}

/** Runs the mix until its end, or the power's. */
export async function runMix(
  disk: DiskUnderTest,
  model: DurabilityModel,
  { random, blocks, requests, lanes, writeThrough = false }: MixOptions,
): Promise<void> {
  const below = (limit: number): number => Math.floor(random() * limit);
  const perLane = Math.floor(blocks / lanes);
  let lastNumber = 0;
  const lane = async (first: number): Promise<void> => {
    for (let i = 0; i < requests; i++) {
      const lba = first + below(perLane);
      const count = 1 + below(Math.min(4, first + perLane - lba));
      const choice = below(10);
      if (choice < 2) {
        const answered = model.flush();
        await disk.flush();
        answered();
      } else if (choice === 2) {
        const answered = model.write(lba, count, 0);
        await disk.unmap(lba, count);
        answered(writeThrough);
      } else if (choice === 3 && disk.compareAndWrite !== undefined) {
        const number = ++lastNumber;
        const expected = blockOf(model.latest(lba), disk.blockBytes);
        const answered = model.write(lba, 1, number);
        await disk.compareAndWrite(lba, expected, blockOf(number, disk.blockBytes));
        answered(writeThrough);
      } else {
        const number = ++lastNumber;
        const fua = below(4) === 0;
        const one = blockOf(number, disk.blockBytes);
        const data = Buffer.concat(Array.from({ length: count }, () => one));
        const answered = model.write(lba, count, number);
        await disk.write(lba, data, fua);
        answered(fua || writeThrough);
      }
    }
  };
  const ends = await Promise.allSettled(Array.from({ length: lanes }, (_, i) => lane(i * perLane)));
  for (const end of ends) {
    if (end.status === 'rejected' && !(end.reason instanceof PowerLost)) throw end.reason;
  }
}

/** What a disk under test throws when its power has gone. */
export class PowerLost extends Error {}
