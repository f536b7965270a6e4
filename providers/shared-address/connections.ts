/**
 * Records of the connections of all processes of a shared device, from which another process can
 * end those of a killed process. A process takes blocks of records and writes only to its own, so
 * nothing is locked. It keeps a block until it ends.
 */
import type { ConnectionRecord } from '../../core/spi/index.js';
import { BLOCK_CONNECTIONS, BLOCKS, CONNECTIONS, type TableMemory } from './table-layout.js';

const GID_BYTES = 16;

export class ConnectionRecords {
  /** Word of the record of each, by its local communication id. */
  private readonly places = new Map<number, number>();
  private readonly free: number[] = [];

  constructor(
    private readonly table: TableMemory,
    private readonly slot: number,
  ) {}

  /** @returns false where there is no room: the peer then learns of our death by its timeouts */
  note(record: ConnectionRecord): boolean {
    const at = this.places.get(record.localCommId) ?? this.free.pop() ?? this.takeBlock();
    if (at === undefined) return false;
    this.places.set(record.localCommId, at);
    const { words } = this.table;
    Atomics.store(words, at, 0);
    words[at + 1] = record.localQpn;
    words[at + 2] = record.remoteQpn;
    words[at + 3] = record.localCommId;
    words[at + 4] = record.remoteCommId;
    words[at + 5] = record.localGidIndex;
    const bytes = new Uint8Array(words.buffer);
    bytes.set(record.peerGid, 4 * (at + 8));
    Atomics.store(words, at, 1);
    return true;
  }

  /** Removes a connection; does nothing if it is not noted. */
  forget(localCommId: number): void {
    const at = this.places.get(localCommId);
    if (at === undefined) return;
    this.places.delete(localCommId);
    Atomics.store(this.table.words, at, 0);
    this.free.push(at);
  }

  private takeBlock(): number | undefined {
    const { words } = this.table;
    for (let block = 0; block < BLOCKS.COUNT; block++) {
      if (Atomics.compareExchange(words, BLOCKS.AT + block, 0, this.slot + 1) !== 0) continue;
      const first = recordAt(block * BLOCK_CONNECTIONS);
      for (let i = BLOCK_CONNECTIONS - 1; i > 0; i--) this.free.push(first + i * CONNECTIONS.WORDS);
      return first;
    }
    return undefined;
  }
}

/**
 * Connections of a process that is gone. The records stay until they are dropped: the broker that
 * handles them may be killed, too, before peers have been told.
 */
export function connectionsOf(table: TableMemory, slot: number): ConnectionRecord[] {
  return blocksOf(table, slot).flatMap((block) => {
    const places = Array.from({ length: BLOCK_CONNECTIONS }, (_, i) =>
      recordAt(block * BLOCK_CONNECTIONS + i),
    );
    return places
      .filter((at) => Atomics.load(table.words, at) === 1)
      .map((at) => readRecord(table, at));
  });
}

export function dropConnections(table: TableMemory, slot: number): void {
  for (const block of blocksOf(table, slot)) {
    for (let i = 0; i < BLOCK_CONNECTIONS; i++) {
      Atomics.store(table.words, recordAt(block * BLOCK_CONNECTIONS + i), 0);
    }
    table.setOwner(BLOCKS.AT + block, undefined);
  }
}

function blocksOf(table: TableMemory, slot: number): number[] {
  const all = Array.from({ length: BLOCKS.COUNT }, (_, block) => block);
  return all.filter((block) => table.ownerAt(BLOCKS.AT + block) === slot);
}

function readRecord({ words }: TableMemory, at: number): ConnectionRecord {
  const bytes = new Uint8Array(words.buffer);
  const word = (index: number): number => words[at + index] ?? 0;
  return {
    localQpn: word(1),
    remoteQpn: word(2),
    localCommId: word(3),
    remoteCommId: word(4),
    localGidIndex: word(5),
    peerGid: bytes.slice(4 * (at + 8), 4 * (at + 8) + GID_BYTES),
  };
}

function recordAt(index: number): number {
  return CONNECTIONS.AT + CONNECTIONS.WORDS * index;
}
