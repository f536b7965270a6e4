// The table that processes of a shared device have mapped: listeners, classes, connections, slots.
import assert from 'node:assert/strict';
import {
  Claims,
  classOwnerOf,
  dropClaims,
  listenerOf,
} from '../../../providers/shared-address/claims.js';
import {
  ConnectionRecords,
  connectionsOf,
  dropConnections,
} from '../../../providers/shared-address/connections.js';
import {
  BLOCKS,
  CONNECTIONS,
  LISTENERS,
  TABLE_BYTES,
  TableMemory,
} from '../../../providers/shared-address/table-layout.js';

const ALL = (1n << 64n) - 1n;
const NO_LOCK = { withLock: <T>(body: () => T): T => body() };
const GUID = 0x0123456789abcdefn;

interface Scene {
  readonly memory: ArrayBuffer;
  readonly table: TableMemory;
  readonly of: (slot: number) => Claims;
}

function newScene(): Scene {
  const memory = new ArrayBuffer(TABLE_BYTES);
  const table = TableMemory.create(memory, GUID);
  return { memory, table, of: (slot) => new Claims(table, NO_LOCK, slot) };
}

const recordOf = (localCommId: number) => ({
  localQpn: 0x20010,
  remoteQpn: 0x30011,
  localCommId,
  remoteCommId: 0x3000002,
  peerGid: Uint8Array.from({ length: 16 }, (_, i) => 200 + i),
  localGidIndex: 4,
});

describe('slots: the shared table', () => {
  it('is one for who maps it, and nothing else is', () => {
    const { memory, table } = newScene();
    assert.equal(TableMemory.open(memory)?.nodeGuid, GUID);
    assert.equal(TableMemory.open(new ArrayBuffer(TABLE_BYTES)), undefined);
    assert.equal(TableMemory.open(new ArrayBuffer(64)), undefined);
    table.setState(3, 'RESTING');
    table.setRestEndUs(3, 1.5e15);
    const other = TableMemory.open(memory)!;
    assert.equal(other.stateOf(3), 'RESTING');
    assert.equal(other.restEndUs(3), 1.5e15);
    assert.equal(other.stateOf(4), 'FREE');
  });

  it('a service has one owner; its own process may claim it again', () => {
    const { table, of } = newScene();
    of(1).claimService(0x1060401n, ALL);
    assert.equal(listenerOf(table, 0x1060401n), 1);
    assert.throws(() => of(2).claimService(0x1060401n, ALL), {
      code: 'EADDRINUSE',
      message: /slot 1/,
    });
    of(2).claimService(0x1060402n, ALL);
    of(2).releaseService(0x1060401n, ALL);
    assert.equal(listenerOf(table, 0x1060401n), 1, "another's is not released");
    of(1).releaseService(0x1060401n, ALL);
    of(2).claimService(0x1060401n, ALL);
    assert.equal(listenerOf(table, 0x1060401n), 2);
  });

  it('a mask counts on both sides', () => {
    const { table, of } = newScene();
    of(1).claimService(0x1060000n, ~0xffffn & ALL);
    assert.equal(listenerOf(table, 0x106ffffn), 1);
    assert.equal(listenerOf(table, 0x1070000n), undefined);
    assert.throws(() => of(2).claimService(0x1060007n, ALL), { code: 'EADDRINUSE' });
  });

  it('listeners have room for 4,096, which the next is told', () => {
    const { of } = newScene();
    for (let i = 0; i < LISTENERS.COUNT; i++) of(i % 3).claimService(BigInt(i), ALL);
    assert.throws(() => of(1).claimService(1n << 40n, ALL), { code: 'ENOMEM', message: /4096/ });
    of(0).releaseService(0n, ALL);
    of(1).claimService(1n << 40n, ALL);
  });

  it('classes of management datagrams have one owner, as often as it says', () => {
    const { table, of } = newScene();
    of(1).claimClass(0x30);
    of(1).claimClass(0x30);
    assert.throws(() => of(2).claimClass(0x30), { code: 'EADDRINUSE' });
    of(1).releaseClass(0x30);
    assert.equal(classOwnerOf(table, 0x30), 1);
    of(1).releaseClass(0x30);
    assert.equal(classOwnerOf(table, 0x30), undefined);
  });

  it('of a process that is gone nothing stays', () => {
    const { table, of } = newScene();
    of(1).claimService(7n, ALL);
    of(1).claimClass(0x31);
    of(2).claimService(8n, ALL);
    const records = new ConnectionRecords(table, 1);
    for (let id = 1; id <= 100; id++) assert.ok(records.note(recordOf(id)));
    records.forget(50);
    dropClaims(table, 1);
    assert.equal(listenerOf(table, 7n), undefined);
    assert.equal(classOwnerOf(table, 0x31), undefined);
    assert.equal(listenerOf(table, 8n), 2);
    const left = connectionsOf(table, 1);
    assert.equal(left.length, 99);
    assert.deepEqual(
      left.find(({ localCommId }) => localCommId === 7),
      recordOf(7),
    );
    assert.equal(connectionsOf(table, 1).length, 99, 'until they are dropped');
    dropConnections(table, 1);
    assert.deepEqual(connectionsOf(table, 1), []);
  });

  it('a connection is noted anew in its place, and the last of them finds no room', () => {
    const { table } = newScene();
    const records = new ConnectionRecords(table, 1);
    for (let round = 0; round < 3; round++) assert.ok(records.note(recordOf(1)));
    assert.equal(connectionsOf(table, 1).length, 1);
    dropConnections(table, 1);
    const many = new ConnectionRecords(table, 2);
    for (let id = 1; id <= CONNECTIONS.COUNT; id++) assert.ok(many.note(recordOf(id)));
    assert.equal(many.note(recordOf(CONNECTIONS.COUNT + 1)), false);
    many.forget(9);
    assert.ok(many.note(recordOf(CONNECTIONS.COUNT + 1)));
  });

  it('an entry that is written half-way is not there', () => {
    const { table, of } = newScene();
    of(1).claimService(7n, ALL);
    // As far as a process comes that is killed before it has written the owner.
    table.setU64(LISTENERS.AT + LISTENERS.WORDS + 2, 9n);
    table.setU64(LISTENERS.AT + LISTENERS.WORDS + 4, ALL);
    table.listenerEntries = 2;
    assert.equal(listenerOf(table, 9n), undefined);
    of(2).claimService(9n, ALL);
    assert.equal(listenerOf(table, 9n), 2);
    table.setOwner(BLOCKS.AT, 3);
    assert.deepEqual(connectionsOf(table, 3), []);
  });
});
