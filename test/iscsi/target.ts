/** A fresh target with a disk in memory for each test, so that none finds what another left. */
import { IscsiTarget } from '../../samples/ulp/iser/index.js';
import { MemoryBackend, ReadOnlyBackend } from '../../samples/ulp/block/index.js';
import { loopback } from '../support/loopback.js';

const NAME = 'iqn.2026-01.example.dapl:test';
/** More than one WRITE SAME takes; memory is taken where something is written. */
const DISK_BYTES = 256 << 20;

export interface DiskOptions {
  readonly blockBytes: number;
  readonly isReadOnly?: boolean;
}

export interface ServedDisk {
  readonly url: string;
  /** What the target noted meanwhile. */
  readonly notes: readonly string[];
  close(): Promise<void>;
}

export async function serveDisk(options: DiskOptions): Promise<ServedDisk> {
  const notes: string[] = [];
  const { blockBytes, isReadOnly = false } = options;
  const memory = new MemoryBackend({ sizeBytes: DISK_BYTES, blockBytes });
  const target = new IscsiTarget({
    name: NAME,
    luns: new Map([[0, isReadOnly ? new ReadOnlyBackend(memory) : memory]]),
    onNote: (note) => notes.push(note),
  });
  const portal = await target.listenTcp(loopback(50, 1), 0);
  return { url: `iscsi://${portal.name}/${NAME}/0`, notes, close: () => target.close(0) };
}
