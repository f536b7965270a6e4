/** Memory registration: kinds of memory, ways to register it, and its release. */
import assert from 'node:assert/strict';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join as joinPath } from 'node:path';
import { type Ia, type Lmr, MemPrivileges, MemType, VaType } from 'dapl';
import { type Claim, group } from '../behaviour.js';
import { assertAll, connected, meet, type Peer, type Peers, refuses } from '../peer.js';

const { ALL, LOCAL_READ, REMOTE_READ } = MemPrivileges;

/** Lets the active side write 64 bytes of this value to the region. */
async function write({ active, passive }: Peers, lmr: Lmr, byte: number): Promise<void> {
  active.lmr.bytes.fill(byte, 0, 64);
  active.ep.postRdmaWrite(active.lmr.segment(0, 64), byte, passive.remote(0, lmr));
  await active.expect(`dto ${byte} SUCCESS`);
}

export const registering = group('Registering memory', (claim) => {
  kinds(claim);
  again(claim);
  naming(claim);
  addressing(claim);
  syncing(claim);
  mapping(claim);
  named(claim);
});

function kinds(claim: Claim): void {
  claim('memory of a SharedArrayBuffer is written by the peer', async (pair) => {
    const peers = await connected(pair);
    const { ia, pz } = peers.passive;
    const memory = new SharedArrayBuffer(128);
    const lmr = ia.createLmr(memory, { pz, privileges: ALL });
    await write(peers, lmr, 0x5a);
    assertAll(new Uint8Array(memory, 0, 64), 0x5a);
    assertAll(new Uint8Array(memory, 64, 64), 0);
    lmr.free();
  });

  claim('a region tells what it is', async (pair) => {
    const { ia, pz } = meet(pair).active;
    const memory = new Uint8Array(4096).subarray(100, 200);
    const lmr = ia.createLmr(memory, { pz, privileges: LOCAL_READ });
    const query = lmr.query();
    assert.equal(query.ia, ia);
    assert.equal(query.pz, pz);
    assert.equal(query.memType, 'VIRTUAL');
    assert.equal(query.region.byteOffset, 100);
    assert.equal(query.lengthBytes, 100);
    assert.equal(query.privileges, LOCAL_READ);
    assert.equal(query.vaType, VaType.VA);
    assert.equal(query.lmrContext, lmr.lmrContext);
    assert.equal(query.rmrContext, undefined);
    assert.ok(query.registeredSizeBytes >= 100);
    assert.equal(query.registeredAddress, lmr.address);
    assert.equal(query.boundRmrs, 0);
    lmr.free();
    refuses(() => lmr.query(), 'DAT_INVALID_HANDLE_LMR');
  });

  claim('memory that may move or belongs to others is refused', async (pair) => {
    const { ia, pz } = meet(pair).active;
    const make = (memory: unknown): Lmr => ia.createLmr(memory as ArrayBuffer, { pz });
    const transferred = new ArrayBuffer(8);
    structuredClone(transferred, { transfer: [transferred] });
    const Resizable = ArrayBuffer as new (n: number, o: object) => ArrayBuffer;
    const Growable = SharedArrayBuffer as new (n: number, o: object) => SharedArrayBuffer;
    for (const memory of [
      transferred,
      new Resizable(8, { maxByteLength: 16 }),
      new Growable(8, { maxByteLength: 16 }),
      Buffer.from('a small one'),
      'text',
      undefined,
    ]) {
      refuses(() => make(memory), 'DAT_INVALID_PARAMETER');
    }
    refuses(() => make(new ArrayBuffer(0)), 'DAT_LENGTH_ERROR');
    refuses(() => make(new SharedArrayBuffer(0)), 'DAT_LENGTH_ERROR');
  });
}

function again(claim: Claim): void {
  claim(
    'a region registered once more has a key, zone and privileges of its own',
    async (pair) => {
      const peers = await connected(pair);
      const { passive } = peers;
      const readable = passive.ia.createLmr(passive.lmr, {
        pz: passive.pz,
        privileges: LOCAL_READ | REMOTE_READ,
      });
      assert.equal(readable.bytes.buffer, passive.lmr.bytes.buffer);
      assert.notEqual(readable.rmrContext, passive.lmr.rmrContext);
      assert.equal(readable.query().memType, 'LMR');
      passive.lmr.free();
      passive.lmr.bytes[0] = 9;
      peers.active.ep.postRdmaRead(peers.active.lmr.segment(0, 1), 1, passive.remote(0, readable));
      await peers.active.expect('dto 1 SUCCESS');
      assert.equal(peers.active.lmr.bytes[0], 9);
    },
    ['rdma-read'],
  );
}

function naming(claim: Claim): void {
  claim('memory shared under a name is the same for every adapter', async (pair) => {
    const memory = new Uint8Array(new SharedArrayBuffer(64));
    const share = (ia: Ia, bytes: Uint8Array, sharedAs: string | Uint8Array): Lmr =>
      ia.createLmr(bytes, { pz: ia.createPz(), sharedAs, privileges: ALL });
    const name = 'conformance';
    const first = share(pair.active, memory, name);
    const second = share(pair.passive, memory, Buffer.from(name));
    assert.equal(second.query().memType, 'SHARED_VIRTUAL');
    refuses(() => share(pair.active, new Uint8Array(64), name), 'DAT_INVALID_STATE');
    refuses(() => share(pair.active, memory.subarray(1), name), 'DAT_INVALID_STATE');
    refuses(() => share(pair.active, memory, ''), 'DAT_INVALID_PARAMETER');
    refuses(() => share(pair.active, memory, 'x'.repeat(41)), 'DAT_INVALID_PARAMETER');
    first.free();
    refuses(() => share(pair.active, new Uint8Array(64), name), 'DAT_INVALID_STATE');
    second.free();
    share(pair.active, new Uint8Array(64), name).free();
  });

  claim('a name is free again when its adapter has closed', async (pair) => {
    const share = (ia: Ia): Lmr =>
      ia.createLmr(new Uint8Array(64), { pz: ia.createPz(), sharedAs: 'closing' });
    share(pair.active);
    refuses(() => share(pair.passive), 'DAT_INVALID_STATE');
    await pair.active.close();
    share(pair.passive).free();
  });
}

function addressing(claim: Claim): void {
  claim('a zero-based region begins at address 0', async (pair) => {
    const peers = await connected(pair);
    const { passive } = peers;
    if (!passive.ia.query().ia.zbSupported) {
      const make = (): Lmr => passive.ia.allocate(64, { pz: passive.pz, vaType: VaType.ZB });
      refuses(make, 'DAT_MODEL_NOT_SUPPORTED');
      return;
    }
    const options = { pz: passive.pz, privileges: ALL, vaType: VaType.ZB };
    const lmr = passive.ia.allocate(256, options);
    assert.equal(lmr.address, 0n);
    assert.equal(lmr.query().vaType, VaType.ZB);
    await write(peers, lmr, 0x33);
    assertAll(lmr.bytes.subarray(0, 64), 0x33);
    passive.ep.postRecv(lmr.segment(128, 64), 1);
    peers.active.ep.postSend(peers.active.lmr.segment(0, 64), 2);
    await passive.expect('dto 1 SUCCESS');
    assertAll(lmr.bytes.subarray(128, 192), 0x33);
  });

  claim('a region and its options are checked: DAT_INVALID_PARAMETER', async (pair) => {
    const { ia, pz } = meet(pair).active;
    refuses(() => ia.allocate(8, { pz, vaType: 2 }), 'DAT_INVALID_PARAMETER');
    refuses(() => ia.allocate(8, { pz, privileges: 0x100 }), 'DAT_INVALID_PARAMETER');
    refuses(() => ia.allocate(0, { pz }), 'DAT_INVALID_PARAMETER');
    const freed = ia.allocate(8, { pz });
    freed.free();
    refuses(() => ia.createLmr(freed, { pz }), 'DAT_INVALID_HANDLE_LMR');
    const hint = ia.memTypeHint(MemType.VIRTUAL, 1000);
    assert.ok(hint.preferredLengthBytes >= 1000 && hint.preferredAlignmentBytes >= 1);
    refuses(() => ia.memTypeHint(MemType.PHYSICAL, 1000), 'DAT_MODEL_NOT_SUPPORTED');
    refuses(() => ia.memTypeHint(7, 1000), 'DAT_INVALID_PARAMETER');
    refuses(() => ia.reservedLmr(), 'DAT_MODEL_NOT_SUPPORTED');
    refuses(() => ia.allocateFastLmr(), 'DAT_MODEL_NOT_SUPPORTED');
  });
}

function syncing(claim: Claim): void {
  claim('syncRdmaRead and syncRdmaWrite check their segments', async (pair) => {
    const { active, passive } = meet(pair);
    const { ia, lmr, pz } = active;
    for (const sync of [ia.syncRdmaRead.bind(ia), ia.syncRdmaWrite.bind(ia)]) {
      sync([]);
      sync(lmr.segment());
      sync([lmr.segment(0, 1), lmr.segment(1, 1)]);
      refuses(() => sync(passive.lmr.segment()), 'DAT_INVALID_HANDLE_LMR');
      refuses(() => sync([{} as never]), 'DAT_INVALID_PARAMETER');
      const gone = ia.createLmr(new ArrayBuffer(8), { pz });
      const segment = gone.segment();
      // Memory that a device writes into cannot be detached. Other memory can, and is detected.
      if (wasTakenAway(gone.bytes)) refuses(() => sync(segment), 'DAT_INVALID_STATE_LMR_FREE');
      else sync(segment);
      const freed = ia.allocate(8, { pz });
      const stale = freed.segment();
      freed.free();
      refuses(() => sync(stale), 'DAT_INVALID_HANDLE_LMR');
    }
  });
}

/** A file of 10000 bytes, each an 'a'. */
async function withFile(run: (path: string) => Promise<void>): Promise<void> {
  const directory = mkdtempSync(joinPath(tmpdir(), 'dapl-'));
  try {
    const path = joinPath(directory, 'file');
    writeFileSync(path, Buffer.alloc(10_000, 'a'));
    await run(path);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

function map(peer: Peer, path: string, flags: string, more: object = {}): Lmr {
  const fd = openSync(path, flags);
  try {
    return peer.ia.mapFile(fd, { pz: peer.pz, privileges: ALL, ...more });
  } finally {
    closeSync(fd);
  }
}

let names = 0;

/** A name that no other run on this machine uses. */
function newName(): string {
  return `claim-${process.pid}-${names++}`;
}

function named(claim: Claim): void {
  const needs = ['named-memory'] as const;
  const allocate = ({ ia, pz }: Peer, shared: unknown, bytes = 1 << 16): Lmr =>
    ia.allocate(bytes, { pz, privileges: ALL, shared: shared as string });

  claim(
    'memory of a name is the same for all that ask, and a peer writes into it',
    async (pair) => {
      const peers = await connected(pair);
      const name = newName();
      const lmr = allocate(peers.passive, name);
      assert.equal(lmr.query().memType, 'SHARED_VIRTUAL');
      assertAll(lmr.bytes, 0);
      const same = allocate(peers.active, name);
      await write(peers, lmr, 0x62);
      assertAll(same.bytes.subarray(0, 64), 0x62);
      lmr.free();
      same.bytes[0] = 0x63;
      assert.equal(lmr.bytes[0], 0x63, 'the memory outlives the region');
      assertAll(allocate(peers.active, newName()).bytes, 0);
    },
    needs,
  );

  claim(
    'memory of a name in another size, and what is no name, are refused with the reason',
    (pair) => {
      const { passive } = meet(pair);
      const name = newName();
      allocate(passive, name);
      refuses(() => allocate(passive, name, 1 << 17), 'DAT_INVALID_PARAMETER');
      for (const wrong of ['', 'n'.repeat(41), 'a\0b', 7, true]) {
        refuses(() => allocate(passive, wrong), 'DAT_INVALID_PARAMETER');
      }
      allocate(passive, name).free();
      return Promise.resolve();
    },
    needs,
  );
}

function mapping(claim: Claim): void {
  const needs = ['file-mapping'] as const;

  claim(
    'a peer writes into a mapped file, at any offset',
    async (pair) => {
      await withFile(async (path) => {
        const peers = await connected(pair);
        const lmr = map(peers.passive, path, 'r+', { offsetBytes: 4321, lengthBytes: 1000 });
        assert.equal(lmr.lengthBytes, 1000);
        assert.equal(lmr.query().memType, 'FILE');
        await write(peers, lmr, 0x62);
        const file = readFileSync(path);
        assert.equal(file.length, 10_000);
        assertAll(file.subarray(4321, 4385), 0x62);
        assertAll(file.subarray(0, 4321), 0x61);
        assertAll(file.subarray(4385), 0x61);
        lmr.free();
        lmr.bytes[0] = 0x63;
        assert.equal(readFileSync(path)[4321], 0x63, 'the mapping outlives the region');
      });
    },
    needs,
  );

  claim(
    'a file that is mapped privately is read, and never changed',
    async (pair) => {
      await withFile(async (path) => {
        const peers = await connected(pair);
        const lmr = map(peers.passive, path, 'r', { shared: false });
        assert.equal(lmr.lengthBytes, 10_000);
        assertAll(lmr.bytes, 0x61);
        await write(peers, lmr, 0x62);
        assertAll(lmr.bytes.subarray(0, 64), 0x62);
        assertAll(readFileSync(path), 0x61);
      });
    },
    needs,
  );

  claim(
    'what cannot be mapped is refused with the reason',
    async (pair) => {
      await withFile(async (path) => {
        const { passive } = meet(pair);
        const refused = (flags: string, more: object, code: string): void =>
          refuses(() => map(passive, path, flags, more), code);
        refused('r', {}, 'DAT_PRIVILEGES_VIOLATION');
        refused('r+', { offsetBytes: 9000, lengthBytes: 1001 }, 'DAT_INVALID_PARAMETER');
        refused('r+', { offsetBytes: 10_000 }, 'DAT_INVALID_PARAMETER');
        refused('r+', { lengthBytes: 0 }, 'DAT_INVALID_PARAMETER');
        refused('r+', { shared: 1 }, 'DAT_INVALID_PARAMETER');
        const { ia, pz } = passive;
        refuses(() => ia.mapFile(-1, { pz }), 'DAT_INVALID_PARAMETER');
        refuses(() => ia.mapFile(2 ** 20, { pz }), 'DAT_INVALID_PARAMETER');
        const directory = openSync(tmpdir(), 'r');
        refuses(() => ia.mapFile(directory, { pz, shared: false }), 'DAT_INVALID_PARAMETER');
        closeSync(directory);
      });
    },
    needs,
  );
}

/** Tries to detach the memory; false if it is pinned (Node copies it, or throws). */
function wasTakenAway(bytes: Uint8Array): boolean {
  try {
    structuredClone(bytes.buffer, { transfer: [bytes.buffer as ArrayBuffer] });
  } catch {
    return false;
  }
  return bytes.byteLength === 0;
}
