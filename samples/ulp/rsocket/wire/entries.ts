/**
 * Entries that are written into the peer's memory, in the byte order of the machine that reads
 * them: target entries (destination of the next bytes of the stream) and iomap entries (published
 * areas).
 */
import { IOMAP_BYTES, type RemoteRegion, TARGET_BYTES } from './connection-data.js';

const TARGET = { ADDRESS: 0, KEY: 8, LENGTH: 12 } as const;
const IOMAP = { OFFSET: 0, TARGET: 8 } as const;

/** An area that its owner has published: `offset` names its first byte. */
export interface IomapEntry {
  /** u64. */
  readonly offset: bigint;
  readonly region: RemoteRegion;
}

/** Offset of a target entry's slot in a target list. */
export function targetAt(slot: number): number {
  return slot * TARGET_BYTES;
}

/** Offset of an iomap entry's slot in a target list of that many target entries. */
export function iomapAt(slot: number, entries: number): number {
  return entries * TARGET_BYTES + slot * IOMAP_BYTES;
}

/** @param isLittle the byte order of the machine that reads the entry */
export function writeTarget(
  view: DataView,
  at: number,
  { address, key, length }: RemoteRegion,
  isLittle: boolean,
): void {
  view.setBigUint64(at + TARGET.ADDRESS, address, isLittle);
  view.setUint32(at + TARGET.KEY, key, isLittle);
  view.setUint32(at + TARGET.LENGTH, length, isLittle);
}

export function readTarget(view: DataView, at: number, isLittle: boolean): RemoteRegion {
  return {
    address: view.getBigUint64(at + TARGET.ADDRESS, isLittle),
    key: view.getUint32(at + TARGET.KEY, isLittle),
    length: view.getUint32(at + TARGET.LENGTH, isLittle),
  };
}

export function writeIomap(
  view: DataView,
  at: number,
  { offset, region }: IomapEntry,
  isLittle: boolean,
): void {
  view.setBigUint64(at + IOMAP.OFFSET, offset, isLittle);
  writeTarget(view, at + IOMAP.TARGET, region, isLittle);
}

export function readIomap(view: DataView, at: number, isLittle: boolean): IomapEntry {
  return {
    offset: view.getBigUint64(at + IOMAP.OFFSET, isLittle),
    region: readTarget(view, at + IOMAP.TARGET, isLittle),
  };
}
