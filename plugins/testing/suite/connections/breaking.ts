/** Each operation under each kind of end: every request completes once, and one event follows. */
import assert from 'node:assert/strict';
import { MemPrivileges } from 'dapl';
import type { Capability } from '../capabilities.js';
import type { CompliancePair } from '../fixture.js';
import { type Claim, group } from '../behaviour.js';
import {
  connected,
  expectQuiet,
  type Peer,
  type Peers,
  type PeersOptions,
  settle,
  textOf,
  waiting,
} from '../peer.js';

const { ALL, REMOTE_ATOMIC } = MemPrivileges;
const COOKIES = [1, 2, 3];

/** A kind of request from the active to the passive side. */
interface Operation {
  readonly name: string;
  readonly needs: readonly Capability[];
  /** True if it consumes a receive of the peer. */
  readonly receives: boolean;
  /** True if it names memory of the peer. */
  readonly reaches: boolean;
  post(active: Peer, passive: Peer, cookie: number): void;
}

const OPERATIONS: readonly Operation[] = [
  {
    name: 'send',
    needs: [],
    receives: true,
    reaches: false,
    post: (a, _p, cookie) => a.ep.postSend(a.lmr.segment(0, 4000), cookie),
  },
  {
    name: 'send with immediate',
    needs: [],
    receives: true,
    reaches: false,
    post: (a, _p, cookie) => a.ep.postSendWithImmediate(a.lmr.segment(0, 4000), cookie, 7),
  },
  {
    name: 'RDMA write',
    needs: [],
    receives: false,
    reaches: true,
    post: (a, p, cookie) => a.ep.postRdmaWrite(a.lmr.segment(0, 4000), cookie, p.remote()),
  },
  {
    name: 'RDMA write with immediate',
    needs: [],
    receives: true,
    reaches: true,
    post: (a, p, cookie) =>
      a.ep.postRdmaWriteWithImmediate(a.lmr.segment(0, 4000), cookie, p.remote(), 7),
  },
  {
    name: 'RDMA read',
    needs: ['rdma-read'],
    receives: false,
    reaches: true,
    post: (a, p, cookie) => a.ep.postRdmaRead(a.lmr.segment(0, 4000), cookie, p.remote()),
  },
  {
    name: 'RDMA read to an RMR',
    needs: ['rdma-read'],
    receives: false,
    reaches: true,
    post: (a, p, cookie) => {
      const { address, rmrContext = 0 } = a.lmr;
      a.ep.postRdmaReadToRmr({ address, rmrContext, lengthBytes: 4000 }, cookie, p.remote());
    },
  },
  {
    name: 'fetch-and-add',
    needs: ['atomic'],
    receives: false,
    reaches: true,
    post: (a, p, cookie) => a.ep.postFetchAdd(a.lmr.segment(0, 8), cookie, p.remote(), 1n),
  },
  {
    name: 'compare-and-swap',
    needs: ['atomic'],
    receives: false,
    reaches: true,
    post: (a, p, cookie) => a.ep.postCompareSwap(a.lmr.segment(0, 8), cookie, p.remote(), 0n, 1n),
  },
];

/** Asserts that requests that have ended hold no object. */
function assertReleased({ active }: Peers): void {
  active.ep.free();
  active.lmr.free();
  active.pz.free();
}

function peersFor(pair: CompliancePair, options: PeersOptions = {}): Promise<Peers> {
  return connected(pair, { privileges: ALL | REMOTE_ATOMIC, ...options });
}

function postAll(operation: Operation, { active, passive }: Peers): void {
  if (operation.receives) {
    for (const cookie of COOKIES) passive.ep.postRecv(passive.lmr.segment(0, 4000), cookie);
  }
  for (const cookie of COOKIES) operation.post(active, passive, cookie);
}

/** Asserts one completion per request, in order, no success after a failure, then an end event. */
function assertEnds(seen: readonly string[], ...ends: readonly string[]): void {
  const dtos = seen.slice(0, -1);
  assert.deepEqual(
    dtos.map((line) => line.split(' ')[1]),
    COOKIES.map(String),
    seen.join(),
  );
  const failures = dtos.map((line) => !line.endsWith('SUCCESS'));
  assert.deepEqual(failures, [...failures].sort(), seen.join());
  assert.ok(ends.includes(seen.at(-1) ?? ''), seen.join());
}

export const breaking = group('Breaking', (plain) => {
  for (const operation of OPERATIONS) {
    const claim: Claim = (name, run, needs = []) =>
      plain(`${operation.name}: ${name}`, run, [...operation.needs, ...needs]);

    claim(
      'the peer vanishes: TRANSPORT, FLUSHED, one BROKEN',
      async (pair) => {
        const transport = { ackTimeout: 8, retryCount: 2 };
        const peers = await peersFor(pair, { attributes: { transport } });
        pair.cut?.();
        postAll(operation, peers);
        await peers.active.expect('dto 1 TRANSPORT', 'dto 2 FLUSHED', 'dto 3 FLUSHED', 'BROKEN');
        await settle(pair);
        assert.deepEqual(peers.active.drain(), []);
        assertReleased(peers);
      },
      ['cut'],
    );

    claim('abrupt disconnect: each ends once, then DISCONNECTED', async (pair) => {
      const peers = await peersFor(pair);
      postAll(operation, peers);
      peers.active.ep.disconnect();
      assertEnds(await peers.active.until('DISCONNECTED'), 'DISCONNECTED');
      await peers.passive.until('DISCONNECTED');
      await expectQuiet(peers);
      assertReleased(peers);
    });

    claim('graceful disconnect: each succeeds, then DISCONNECTED', async (pair) => {
      const peers = await peersFor(pair);
      postAll(operation, peers);
      peers.active.ep.disconnect('graceful');
      const lines = COOKIES.map((cookie) => `dto ${cookie} SUCCESS`);
      await peers.active.expect(...lines, 'DISCONNECTED');
      await peers.passive.until('DISCONNECTED');
      assertReleased(peers);
    });

    claim('the peer disconnects: each ends once, then one end', async (pair) => {
      const peers = await peersFor(pair);
      postAll(operation, peers);
      peers.passive.ep.disconnect();
      const seen: string[] = [];
      while (!['DISCONNECTED', 'BROKEN'].includes(seen.at(-1) ?? '')) {
        seen.push(textOf(await peers.active.next()));
      }
      assertEnds(seen, 'DISCONNECTED', 'BROKEN');
      await peers.passive.until('DISCONNECTED');
      await expectQuiet(peers);
      assertReleased(peers);
    });

    claim('the endpoint is freed: nothing shows, nothing is held', async (pair) => {
      const peers = await peersFor(pair);
      postAll(operation, peers);
      peers.active.ep.free();
      peers.active.lmr.free();
      const seen = await peers.passive.until('DISCONNECTED');
      assert.equal(seen.filter((line) => line === 'DISCONNECTED').length, 1);
      assert.deepEqual(peers.active.drain(), []);
    });

    claim('reset after an end: what has come stays, in order', async (pair) => {
      const peers = await peersFor(pair);
      postAll(operation, peers);
      peers.active.ep.disconnect();
      await waiting(pair, peers.active, COOKIES.length + 1);
      peers.active.ep.reset();
      assertEnds(peers.active.drain(), 'DISCONNECTED');
      assertReleased(peers);
    });

    if (!operation.reaches) continue;
    claim('memory that is gone: REMOTE_ACCESS, FLUSHED, one BROKEN', async (pair) => {
      const peers = await peersFor(pair);
      const { active, passive } = peers;
      const remote = passive.remote();
      passive.lmr.free();
      const gone = Object.assign(Object.create(passive) as Peer, { remote: () => remote });
      if (operation.receives) for (const cookie of COOKIES) passive.ep.postRecv([], cookie);
      for (const cookie of COOKIES) operation.post(active, gone, cookie);
      const failures = ['dto 1 REMOTE_ACCESS', 'dto 2 FLUSHED', 'dto 3 FLUSHED'];
      await active.expect(...failures, 'BROKEN');
      assertReleased(peers);
    });
  }
});
