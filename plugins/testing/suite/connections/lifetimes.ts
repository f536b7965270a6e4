/** Lifetime of memory in use by own requests and by the peer. */
import assert from 'node:assert/strict';
import { type Lmr, MemPrivileges } from 'dapl';
import { type Claim, group } from '../behaviour.js';
import {
  assertAll,
  assertSameBytes,
  connected,
  type Peers,
  refuses,
  settle,
  textOf,
} from '../peer.js';

const { ALL, LOCAL_READ, REMOTE_READ, REMOTE_WRITE } = MemPrivileges;
const MANY = 64;
const LATENCY = ['latency'] as const;
const READ = ['rdma-read'] as const;

export const lifetimes = group('Lifetimes of memory', (claim) => {
  ours(claim);
  theirs(claim);
  claim('remote privileges do not need local ones', async (pair) => {
    const { active, passive } = await connected(pair);
    const privileges = REMOTE_READ | REMOTE_WRITE;
    const lmr = passive.ia.allocate(64, { pz: passive.pz, privileges });
    active.lmr.bytes.fill(0x42, 0, 64);
    active.ep.postRdmaWrite(active.lmr.segment(0, 64), 1, passive.remote(0, lmr));
    await active.expect('dto 1 SUCCESS');
    assertAll(lmr.bytes, 0x42);
    refuses(() => passive.ep.postRecv(lmr.segment()), 'DAT_PRIVILEGES_VIOLATION');
    refuses(() => passive.ep.postSend(lmr.segment()), 'DAT_PRIVILEGES_VIOLATION');
  });

  claim(
    'the privilege to be read by peers does not need the local one',
    async (pair) => {
      const { active, passive } = await connected(pair);
      const lmr = passive.ia.allocate(64, { pz: passive.pz, privileges: REMOTE_READ });
      lmr.bytes.fill(0x42);
      active.ep.postRdmaRead(active.lmr.segment(64, 64), 2, passive.remote(0, lmr));
      await active.expect('dto 2 SUCCESS');
      assertAll(active.lmr.bytes.subarray(64, 128), 0x42);
      refuses(() => passive.ep.postSend(lmr.segment()), 'DAT_PRIVILEGES_VIOLATION');
    },
    READ,
  );
});

function ours(claim: Claim): void {
  const operations: Readonly<Record<string, (peers: Peers, lmr: Lmr) => void>> = {
    receive: ({ active }, lmr) => active.ep.postRecv(lmr.segment(), 1),
    send: ({ active }, lmr) => active.ep.postSend(lmr.segment(), 1),
    'RDMA write': ({ active, passive }, lmr) =>
      active.ep.postRdmaWrite(lmr.segment(), 1, passive.remote()),
    'RDMA read': ({ active, passive }, lmr) =>
      active.ep.postRdmaRead(lmr.segment(), 1, passive.remote()),
  };
  for (const [name, post] of Object.entries(operations)) {
    claim(
      `a region lent to a ${name} is not freed before it has ended`,
      async (pair) => {
        const peers = await connected(pair);
        const { active, passive } = peers;
        const lmr = active.ia.allocate(64, { pz: active.pz });
        post(peers, lmr);
        refuses(() => lmr.free(), 'DAT_INVALID_STATE_LMR_IN_USE');
        passive.ep.postRecv(passive.lmr.segment(0, 64), 11);
        passive.ep.postSend(passive.lmr.segment(0, 64), 12);
        if (name !== 'receive') active.ep.postRecv(active.lmr.segment(0, 64), 2);
        while (textOf(await active.next()) !== 'dto 1 SUCCESS');
        lmr.free();
        assert.equal(lmr.isFreed, true);
      },
      [...(name.startsWith('RDMA') ? LATENCY : []), ...(name === 'RDMA read' ? READ : [])],
    );
  }
}

/** Asserts the completions of requests 0 to MANY: successes, one refusal, then flushes. */
async function assertCutOff({ active }: Peers): Promise<void> {
  const lines = await active.until('BROKEN');
  const done = lines.filter((line) => line.endsWith('SUCCESS')).length;
  const expected = Array.from({ length: MANY + 1 }, (_, i) => {
    const status = i < done ? 'SUCCESS' : i === done ? 'REMOTE_ACCESS' : 'FLUSHED';
    return `dto ${i} ${status}`;
  });
  assert.ok(done <= MANY);
  assert.deepEqual(lines, [...expected, 'BROKEN']);
}

function theirs(claim: Claim): void {
  const bytes = 1 << 16;

  claim('a region freed while the peer writes it: refused, not a byte more', async (pair) => {
    const peers = await connected(pair);
    const { active, passive } = peers;
    const lmr = passive.ia.allocate(bytes, { pz: passive.pz, privileges: ALL });
    const { bytes: memory } = lmr;
    const remote = passive.remote(0, lmr);
    active.lmr.bytes.fill(0x11);
    passive.ep.postRecv([], 99);
    active.ep.postSend([], 0);
    for (let i = 1; i < MANY; i++) {
      active.ep.postRdmaWrite(active.lmr.segment(0, bytes), i, remote);
    }
    await passive.expect('dto 99 SUCCESS');
    lmr.free();
    const before = memory.slice();
    active.ep.postRdmaWrite(active.lmr.segment(0, 8), MANY, remote);
    await assertCutOff(peers);
    await settle(pair);
    assertSameBytes(memory, before);
    await passive.expect('BROKEN');
  });

  claim(
    'a region freed while the peer reads it: refused, not a byte more',
    async (pair) => {
      const peers = await connected(pair);
      const { active, passive } = peers;
      const privileges = LOCAL_READ | REMOTE_READ;
      const lmr = passive.ia.allocate(bytes, { pz: passive.pz, privileges });
      const { bytes: memory } = lmr;
      const remote = passive.remote(0, lmr);
      memory.fill(0x11);
      passive.ep.postRecv([], 99);
      active.ep.postSend([], 0);
      for (let i = 1; i < MANY; i++) {
        active.ep.postRdmaRead(active.lmr.segment(0, bytes), i, remote);
      }
      await passive.expect('dto 99 SUCCESS');
      lmr.free();
      memory.fill(0x99);
      active.ep.postRdmaRead(active.lmr.segment(0, 8), MANY, remote);
      await assertCutOff(peers);
      assert.ok(!active.lmr.bytes.includes(0x99), 'what came later is not shown to the peer');
      await passive.expect('BROKEN');
    },
    READ,
  );
}
