/** Remote access is limited to what was granted. A violation ends one connection. */
import assert from 'node:assert/strict';
import { CompletionFlags, type Lmr, MemPrivileges, type RemoteAddress } from 'dapl';
import { type Claim, group } from '../behaviour.js';
import type { CompliancePair } from '../fixture.js';
import {
  assertAll,
  connect,
  connected,
  expectQuiet,
  type Peer,
  type Peers,
  refuses,
  settle,
} from '../peer.js';

const { LOCAL_READ, LOCAL_WRITE, REMOTE_READ, REMOTE_WRITE } = MemPrivileges;

type Operation = 'RDMA write' | 'RDMA read';
const OPERATIONS: readonly Operation[] = ['RDMA write', 'RDMA read'];

function post(peer: Peer, operation: Operation, remote: RemoteAddress, bytes = 64): void {
  const segment = peer.lmr.segment(0, bytes);
  if (operation === 'RDMA write') peer.ep.postRdmaWrite(segment, 1, remote);
  else peer.ep.postRdmaRead(segment, 1, remote);
}

/** Registers 4096 bytes in the middle of a larger buffer. */
function grant(peer: Peer, privileges: number): { lmr: Lmr; memory: Uint8Array } {
  const memory = new Uint8Array(3 * 4096).fill(0xee);
  const lmr = peer.ia.createLmr(memory.subarray(4096, 8192), { pz: peer.pz, privileges });
  return { lmr, memory };
}

function at(lmr: Lmr, offsetBytes: number): RemoteAddress {
  return { address: lmr.address + BigInt(offsetBytes), rmrContext: lmr.rmrContext ?? 0 };
}

function withKeyBit(lmr: Lmr, bit: number): RemoteAddress {
  return { ...at(lmr, 0), rmrContext: ((lmr.rmrContext ?? 0) ^ bit) >>> 0 };
}

/** Asserts a remote access violation: both sides break once, with a flight record. */
async function assertRefused({ active, passive, pair }: Peers, memory: Uint8Array): Promise<void> {
  const [, broken] = await active.expect('dto 1 REMOTE_ACCESS', 'BROKEN');
  assert.ok(broken?.type === 'connection' && (broken.flightRecord?.length ?? 0) > 0);
  await passive.expect('BROKEN');
  await settle(pair);
  assert.deepEqual(active.drain(), []);
  assert.deepEqual(passive.drain(), []);
  assertAll(memory, 0xee);
  assertAll(active.lmr.bytes.subarray(0, 64), 0x11);
}

/** Connects, and fills the active side's memory with 0x11. */
async function scene(pair: CompliancePair): Promise<Peers> {
  const peers = await connected(pair);
  peers.active.lmr.bytes.fill(0x11);
  return peers;
}

export const protecting = group('Protecting memory', (plain) => {
  const reading: Claim = (name, run) => plain(name, run, ['rdma-read']);
  for (const operation of OPERATIONS) {
    const claim = operation === 'RDMA read' ? reading : plain;
    const needed = operation === 'RDMA write' ? REMOTE_WRITE : REMOTE_READ;
    const other = operation === 'RDMA write' ? REMOTE_READ : REMOTE_WRITE;
    const both = LOCAL_READ | LOCAL_WRITE | REMOTE_READ | REMOTE_WRITE;
    const outside: Readonly<Record<string, (lmr: Lmr) => RemoteAddress>> = {
      'with an rkey that differs in its index': (lmr) => withKeyBit(lmr, 0x100),
      'with an rkey that differs in its tag': (lmr) => withKeyBit(lmr, 1),
      'one byte before the region': (lmr) => at(lmr, -1),
      'one byte past the region': (lmr) => at(lmr, 4096 - 63),
      'far away': (lmr) => at(lmr, 2 ** 40),
      'at the end of the address space': (lmr) => ({ ...at(lmr, 0), address: 2n ** 64n - 8n }),
    };
    for (const [where, remoteOf] of Object.entries(outside)) {
      claim(`${operation} ${where} is refused and touches nothing`, async (pair) => {
        const peers = await scene(pair);
        const { lmr, memory } = grant(peers.passive, both);
        post(peers.active, operation, remoteOf(lmr));
        await assertRefused(peers, memory);
      });
    }

    claim(`${operation} without the remote privilege is refused`, async (pair) => {
      const peers = await scene(pair);
      const { lmr, memory } = grant(peers.passive, LOCAL_READ | LOCAL_WRITE | other);
      post(peers.active, operation, at(lmr, 0));
      await assertRefused(peers, memory);
    });

    claim(`${operation} to a region of another protection zone is refused`, async (pair) => {
      const peers = await scene(pair);
      const { ia } = peers.passive;
      const memory = new Uint8Array(4096).fill(0xee);
      const lmr = ia.createLmr(memory, { pz: ia.createPz(), privileges: both });
      post(peers.active, operation, at(lmr, 0));
      await assertRefused(peers, memory);
    });

    claim(`${operation} to a freed region is refused`, async (pair) => {
      const peers = await scene(pair);
      const { lmr, memory } = grant(peers.passive, both);
      const remote = at(lmr, 0);
      lmr.free();
      post(peers.active, operation, remote);
      await assertRefused(peers, memory);
    });

    claim(`${operation} up to the very ends of the region succeeds`, async (pair) => {
      const { active, passive } = await scene(pair);
      const { lmr } = grant(passive, LOCAL_READ | LOCAL_WRITE | needed);
      post(active, operation, at(lmr, 0));
      post(active, operation, at(lmr, 4096 - 64));
      post(active, operation, at(lmr, 0), 4096);
      await active.expect('dto 1 SUCCESS', 'dto 1 SUCCESS', 'dto 1 SUCCESS');
    });

    claim(`${operation} of zero bytes needs no right key`, async (pair) => {
      const { active } = await connected(pair);
      post(active, operation, { address: 0n, rmrContext: 0 }, 0);
      await active.expect('dto 1 SUCCESS');
    });
  }

  afterwards(plain);
  locally(plain);
});

function afterwards(claim: Claim): void {
  claim('requests behind the failed one are flushed in order, then one BROKEN', async (pair) => {
    const peers = await connected(pair);
    const { active, passive } = peers;
    const remote = { address: passive.lmr.address, rmrContext: 1 };
    active.ep.postRecv(active.lmr.segment(), 10);
    active.ep.postRdmaWrite(active.lmr.segment(0, 8), 1, passive.remote());
    active.ep.postRdmaWrite(active.lmr.segment(0, 8), 2, remote);
    active.ep.postSend(active.lmr.segment(0, 8), 3, CompletionFlags.SUPPRESS);
    active.ep.postRdmaWrite(active.lmr.segment(0, 8), 4, passive.remote());
    const seen = await active.until('BROKEN');
    assert.ok(seen.includes('dto 10 FLUSHED'), 'the receive is flushed before BROKEN');
    const requests = seen.filter((text) => text !== 'dto 10 FLUSHED');
    const flushed = ['dto 3 FLUSHED', 'dto 4 FLUSHED'];
    assert.deepEqual(requests, ['dto 1 SUCCESS', 'dto 2 REMOTE_ACCESS', ...flushed, 'BROKEN']);
  });

  claim('other connections of the same adapters carry on', async (pair) => {
    const bad = await connected(pair);
    const good = await connected(pair);
    const remote = { address: bad.passive.lmr.address, rmrContext: 1 };
    bad.active.ep.postRdmaWrite(bad.active.lmr.segment(0, 8), 1, remote);
    for (let i = 0; i < 50; i++) {
      good.active.ep.postRdmaWrite(good.active.lmr.segment(0, 8), i, good.passive.remote());
    }
    await bad.active.expect('dto 1 REMOTE_ACCESS', 'BROKEN');
    await good.active.until('dto 49 SUCCESS');
    assert.equal(good.active.ep.state, 'CONNECTED');
    await expectQuiet(good);
  });

  claim('a broken endpoint resets and connects again', async (pair) => {
    const peers = await connected(pair);
    const { active, passive } = peers;
    const remote = { address: passive.lmr.address, rmrContext: 1 };
    active.ep.postRdmaWrite(active.lmr.segment(0, 8), 1, remote);
    await active.expect('dto 1 REMOTE_ACCESS', 'BROKEN');
    await passive.expect('BROKEN');
    active.ep.reset();
    passive.ep.reset();
    await connect(peers);
    active.ep.postRdmaWrite(active.lmr.segment(0, 8), 2, passive.remote());
    await active.expect('dto 2 SUCCESS');
  });
}

function locally(claim: Claim): void {
  claim('a segment of another protection zone: DAT_PROTECTION_VIOLATION', async (pair) => {
    const { active, passive } = await connected(pair);
    const foreign = active.ia.allocate(64, { pz: active.ia.createPz() });
    const { ep } = active;
    refuses(() => ep.postSend(foreign.segment()), 'DAT_PROTECTION_VIOLATION');
    refuses(() => ep.postRecv(foreign.segment()), 'DAT_PROTECTION_VIOLATION');
    const write = (): void => ep.postRdmaWrite(foreign.segment(), 1, passive.remote());
    refuses(write, 'DAT_PROTECTION_VIOLATION');
    assert.equal(ep.state, 'CONNECTED');
  });

  claim('a segment without the local privilege: DAT_PRIVILEGES_VIOLATION', async (pair) => {
    const { active, passive } = await connected(pair);
    const { ia, pz, ep } = active;
    const readable = ia.allocate(64, { pz, privileges: LOCAL_READ }).segment();
    refuses(() => ep.postRecv(readable), 'DAT_PRIVILEGES_VIOLATION');
    const writable = ia.allocate(64, { pz, privileges: LOCAL_WRITE }).segment();
    refuses(() => ep.postSend(writable), 'DAT_PRIVILEGES_VIOLATION');
    refuses(() => ep.postRdmaWrite(writable, 1, passive.remote()), 'DAT_PRIVILEGES_VIOLATION');
  });

  claim(
    'a sink of an RDMA read without the local privilege: DAT_PRIVILEGES_VIOLATION',
    async (pair) => {
      const { active, passive } = await connected(pair);
      const { ia, pz, ep } = active;
      const readable = ia.allocate(64, { pz, privileges: LOCAL_READ }).segment();
      refuses(() => ep.postRdmaRead(readable, 1, passive.remote()), 'DAT_PRIVILEGES_VIOLATION');
    },
    ['rdma-read'],
  );

  claim('a segment of a freed region: DAT_INVALID_HANDLE_LMR', async (pair) => {
    const { active } = await connected(pair);
    const lmr = active.ia.allocate(64, { pz: active.pz });
    const segment = lmr.segment();
    lmr.free();
    refuses(() => active.ep.postSend(segment), 'DAT_INVALID_HANDLE_LMR');
  });

  claim('a region without remote privileges has no rmrContext', async ({ active }) => {
    const lmr = active.allocate(64, { pz: active.createPz() });
    assert.equal(lmr.rmrContext, undefined);
  });

  claim(
    'keys are not to be guessed: no two regions in a row have near ones',
    async ({ active }) => {
      const pz = active.createPz();
      const keys = Array.from({ length: 64 }, () => {
        return active.allocate(64, { pz, privileges: MemPrivileges.ALL }).rmrContext ?? 0;
      });
      const gaps = keys.slice(1).map((key, i) => (key - (keys[i] ?? 0)) >>> 0);
      assert.equal(new Set(gaps).size, gaps.length);
    },
  );
}
