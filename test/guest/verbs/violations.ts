/** Requests that must fail: each on a connection of its own, beside one that carries on. */
import assert from 'node:assert/strict';

import { Access, WrOpcode } from '../../../core/spi/index.js';
import type { Pair, Region, Request } from './end.js';
import { type Connected, connectPair, type Ends, EVERYTHING } from './manual-pair.js';

const { LOCAL_WRITE, MW_BIND, REMOTE_ATOMIC, REMOTE_READ, REMOTE_WRITE } = Access;
const { ATOMIC_CMP_AND_SWP, ATOMIC_FETCH_AND_ADD, RDMA_READ, RDMA_WRITE } = WrOpcode;
const { RDMA_WRITE_WITH_IMM, SEND, SEND_WITH_INV } = WrOpcode;
export const NAK = {
  PSN_SEQUENCE: 0x60,
  INVALID_REQUEST: 0x61,
  REMOTE_ACCESS: 0x62,
  REMOTE_OPERATIONAL: 0x63,
} as const;

const TARGET_BYTES = 8192;
const RECEIVE_BYTES = 256;

/** What a violation is made of. */
interface Scene {
  readonly ends: Ends;
  readonly pairs: Connected;
  /** Of the requester: where requests send from and read into. */
  readonly local: Region;
  /** Of the responder: everything is permitted in it. */
  readonly target: Region;
}

type Offence = Omit<Request, 'wr'>;

interface Outcome {
  /** Of the request that fails, or does not. */
  readonly status: string;
  /** What the responder says to it on the wire; nothing when it says that all is well. */
  readonly nak: number | undefined;
  /** Of the receive that waits at the responder, whether the request takes it or not. */
  readonly receive: string;
}

/** How rxe is known to differ, and why that is its business. */
interface Deviation extends Partial<Outcome> {
  readonly why: string;
}

export interface Violation {
  readonly name: string;
  readonly make: (scene: Scene) => Offence | Promise<Offence>;
  /** What IBTA wants, and the HCA does. */
  readonly outcome: Outcome;
  readonly rxeResponds?: Deviation;
  readonly rxeAsks?: Deviation | 'refuses to post it';
  /** Where the waiting receive puts what comes; the target unless said. */
  readonly receiveInto?: (scene: Scene) => Promise<Region>;
  /** What the responder's queue pair permits. */
  readonly access?: number;
  /** The state that each queue pair is in afterwards; ERR unless said. */
  readonly states?: readonly [requester: string, responder: string];
}

/** What must come of it, by who asks and who answers (names of ends). */
export function outcomeOf(violation: Violation, asks: string, answers: string): Outcome {
  const { outcome, rxeAsks, rxeResponds } = violation;
  return {
    ...outcome,
    ...(answers === 'rxe' && rxeResponds),
    ...(asks === 'rxe' && typeof rxeAsks === 'object' && rxeAsks),
  };
}

function to(
  scene: Scene,
  region: Region,
  offset: number,
  length: number,
  opcode: WrOpcode,
): Offence {
  return {
    opcode,
    segments: [{ region: scene.local, offset: 0, length }],
    remoteAddress: region.address + BigInt(offset),
    rkey: region.rkey,
  };
}

const remote =
  (access: number) =>
  ({ ends }: Scene): Promise<Region> =>
    ends.responder.end.region(ends.responder.domain, TARGET_BYTES, LOCAL_WRITE | access);

/** A request to a region of which exactly that is permitted. */
const limited =
  (access: number, length: number, opcode: WrOpcode) =>
  async (scene: Scene): Promise<Offence> =>
    to(scene, await remote(access)(scene), 0, length, opcode);

const receive = 'WR_FLUSH_ERR';
const access62 = {
  outcome: { status: 'REM_ACCESS_ERR', nak: NAK.REMOTE_ACCESS, receive },
} as const;
const invalid61 = {
  outcome: { status: 'REM_INV_REQ_ERR', nak: NAK.INVALID_REQUEST, receive },
} as const;
/** A length error at the responder is an invalid request to the requester. */
const tooLong = {
  outcome: { ...invalid61.outcome, receive: 'LOC_LEN_ERR' },
  rxeResponds: {
    status: 'REM_OP_ERR',
    nak: NAK.REMOTE_OPERATIONAL,
    receive: 'LOC_QP_OP_ERR',
    why: 'it takes a receive that is too short for one that is malformed',
  },
} as const;

export const VIOLATIONS: readonly Violation[] = [
  {
    name: 'WRITE with a key that is none',
    make: (scene: Scene): Offence => ({
      ...to(scene, scene.target, 0, 100, RDMA_WRITE),
      rkey: (scene.target.rkey ^ 0x5a5a5a5a) >>> 0,
    }),
    ...access62,
  },
  {
    name: 'READ beyond the end of the region',
    make: (scene: Scene): Offence => to(scene, scene.target, TARGET_BYTES - 4, 8, RDMA_READ),
    ...access62,
  },
  {
    name: 'WRITE of several packets beyond the end of the region',
    make: (scene: Scene): Offence => to(scene, scene.target, TARGET_BYTES - 4096, 5000, RDMA_WRITE),
    ...access62,
  },
  {
    name: 'WRITE before the beginning of the region',
    make: (scene: Scene): Offence => to(scene, scene.target, -1, 8, RDMA_WRITE),
    ...access62,
  },
  { name: 'WRITE to a region without', make: limited(REMOTE_READ, 8, RDMA_WRITE), ...access62 },
  { name: 'READ from a region without', make: limited(REMOTE_WRITE, 8, RDMA_READ), ...access62 },
  {
    name: 'FETCH_ADD in a region without',
    make: limited(REMOTE_WRITE | REMOTE_READ, 8, ATOMIC_FETCH_AND_ADD),
    ...access62,
  },
  {
    name: 'WRITE with immediate to a region without',
    make: limited(REMOTE_READ, 8, RDMA_WRITE_WITH_IMM),
    ...access62,
    rxeResponds: {
      receive: 'REM_ACCESS_ERR',
      why: 'it takes the receive before it looks at the key',
    },
  },
  {
    name: 'WRITE through a queue pair without',
    make: (scene: Scene): Offence => to(scene, scene.target, 0, 8, RDMA_WRITE),
    access: LOCAL_WRITE | REMOTE_READ | REMOTE_ATOMIC,
    ...invalid61,
  },
  {
    name: 'READ through a queue pair without',
    make: (scene: Scene): Offence => to(scene, scene.target, 0, 8, RDMA_READ),
    access: LOCAL_WRITE | REMOTE_WRITE | REMOTE_ATOMIC,
    ...invalid61,
  },
  {
    name: 'CMP_SWAP through a queue pair without',
    make: (scene: Scene): Offence => to(scene, scene.target, 0, 8, ATOMIC_CMP_AND_SWP),
    access: LOCAL_WRITE | REMOTE_WRITE | REMOTE_READ,
    ...invalid61,
  },
  {
    name: 'WRITE to a region of another domain',
    make: async (scene: Scene): Promise<Offence> => {
      const { end } = scene.ends.responder;
      const region = await end.region(await end.domain(), TARGET_BYTES, EVERYTHING);
      return to(scene, region, 0, 8, RDMA_WRITE);
    },
    ...access62,
  },
  {
    name: 'READ from a region that has been deregistered',
    make: async (scene: Scene): Promise<Offence> => {
      const region = await remote(EVERYTHING)(scene);
      await scene.ends.responder.end.deregister(region);
      return to(scene, region, 0, 8, RDMA_READ);
    },
    ...access62,
  },
  { name: 'WRITE through a window that has been invalidated', make: shutWindow, ...access62 },
  {
    name: 'FETCH_ADD of a word that is not aligned',
    make: (scene: Scene): Offence => to(scene, scene.target, 4, 8, ATOMIC_FETCH_AND_ADD),
    ...invalid61,
    rxeAsks: 'refuses to post it',
  },
  {
    name: 'SEND longer than the receive',
    make: (scene: Scene): Offence => to(scene, scene.target, 0, RECEIVE_BYTES + 1, SEND),
    ...tooLong,
  },
  {
    name: 'SEND of several packets longer than the receive',
    make: (scene: Scene): Offence => to(scene, scene.target, 0, 5000, SEND),
    ...tooLong,
  },
  {
    name: 'SEND into a receive whose region has been deregistered',
    make: (scene: Scene): Offence => to(scene, scene.target, 0, 8, SEND),
    receiveInto: async (scene: Scene): Promise<Region> => {
      const region = await remote(EVERYTHING)(scene);
      await scene.ends.responder.end.deregister(region);
      return region;
    },
    outcome: {
      status: 'REM_OP_ERR',
      nak: NAK.REMOTE_OPERATIONAL,
      receive: 'LOC_PROT_ERR',
    },
    rxeResponds: {
      receive: 'LOC_QP_OP_ERR',
      why: 'a key of its own that is gone makes a malformed receive of it',
    },
  },
  {
    name: 'SEND that invalidates a key that is none',
    make: (scene: Scene): Offence => ({
      ...to(scene, scene.target, 0, 8, SEND_WITH_INV),
      immediate: (scene.target.rkey ^ 0x5a5a5a5a) >>> 0,
    }),
    // The kernel's way, and ours: the sender's part has been done.
    outcome: { status: 'SUCCESS', nak: undefined, receive: 'REM_INV_REQ_ERR' },
    states: ['RTS', 'ERR'],
  },
  {
    name: 'SEND from a region that has been deregistered',
    make: async (scene: Scene): Promise<Offence> => {
      const { end, domain } = scene.ends.requester;
      const region = await end.region(domain, 64, LOCAL_WRITE);
      await end.deregister(region);
      return { opcode: SEND, segments: [{ region, offset: 0, length: 8 }] };
    },
    outcome: { status: 'LOC_PROT_ERR', nak: undefined, receive },
    rxeAsks: { status: 'LOC_QP_OP_ERR', why: 'a key that is gone is a malformed request to it' },
    states: ['ERR', 'RTS'],
  },
  {
    name: 'WRITE of no bytes with a key that is none',
    make: (scene: Scene): Offence => ({
      ...to(scene, scene.target, 0, 0, RDMA_WRITE),
      segments: [],
      rkey: 1,
    }),
    // IBTA C9-88: no bytes, no check.
    outcome: { status: 'SUCCESS', nak: undefined, receive },
    states: ['RTS', 'RTS'],
  },
];

async function shutWindow(scene: Scene): Promise<Offence> {
  const { ends, pairs, local } = scene;
  const { end, domain } = ends.responder;
  const region = await end.region(domain, TARGET_BYTES, LOCAL_WRITE | REMOTE_WRITE | MW_BIND);
  const window = await end.window(domain);
  const segment = { region, offset: 0, length: 64 };
  const rkey = await end.bind(pairs.responder, { wr: 1, window, segment, access: REMOTE_WRITE });
  await end.post(pairs.responder);
  const bound = await end.poll(pairs.responder, 1, 0);
  assert.equal(bound.sends[0]?.status, 'SUCCESS', 'bind');
  const asks = ends.requester.end;
  const segments = [{ region: local, offset: 0, length: 8 }];
  const write = { opcode: RDMA_WRITE, segments, remoteAddress: region.address, rkey } as const;
  await asks.send(pairs.requester, { ...write, wr: 1 });
  await end.receive(pairs.responder, 1, [{ region: scene.target, offset: 0, length: 64 }]);
  await asks.send(pairs.requester, { opcode: SEND_WITH_INV, wr: 2, immediate: rkey, segments });
  await asks.post(pairs.requester);
  const { sends } = await asks.poll(pairs.requester, 2, 0);
  assert.deepEqual(
    sends.map(({ status }) => status),
    ['SUCCESS', 'SUCCESS'],
    'an open window',
  );
  // The receive of a violation was posted before this one and has been taken by the message.
  await end.poll(pairs.responder, 0, 1);
  return write;
}

export interface PlayedViolation {
  readonly name: string;
  /** Where NAKs go to. */
  readonly requesterQpn: number;
  readonly nak: number | undefined;
}

/** Plays all of them before it tells of those that did not end as they must. */
export async function playViolations(ends: Ends, mtuBytes: number): Promise<PlayedViolation[]> {
  const bystanders = await connectPair(ends, { mtuBytes });
  const { requester, responder } = ends;
  const local = await requester.end.region(requester.domain, TARGET_BYTES, EVERYTHING);
  const asks = requester.end.name;
  const played: PlayedViolation[] = [];
  const failures: string[] = [];
  for (const violation of VIOLATIONS) {
    const { access = EVERYTHING, name, rxeAsks } = violation;
    if (asks === 'rxe' && rxeAsks === 'refuses to post it') continue;
    const outcome = outcomeOf(violation, asks, responder.end.name);
    const pairs = await connectPair(ends, { mtuBytes, access });
    const target = await remote(EVERYTHING)({ ends } as Scene);
    try {
      await playOne({ ends, pairs, local, target }, violation, outcome);
      const untouched = { region: target, offset: RECEIVE_BYTES, length: 1024 };
      assert.equal(await responder.end.digest(untouched), NO_BYTES, 'memory has changed');
    } catch (error) {
      failures.push(`${name}: ${error instanceof Error ? error.message : String(error)}`);
    }
    await carryOn(ends, bystanders, local, target);
    played.push({ name, requesterQpn: pairs.requester.qpn, nak: outcome.nak });
  }
  assert.deepEqual(failures, []);
  return played;
}

/** Digest of 1024 zeros. */
const NO_BYTES = zerosDigest(1024);

function zerosDigest(length: number): number {
  let hash = 2166136261;
  for (let at = 0; at < length; at++) hash = Math.imul(hash, 16777619) >>> 0;
  return hash;
}

async function playOne(scene: Scene, violation: Violation, outcome: Outcome): Promise<void> {
  const { ends, pairs, target } = scene;
  const [asks, answers] = [ends.requester.end, ends.responder.end];
  const { receiveInto, states = ['ERR', 'ERR'] } = violation;
  const region = receiveInto === undefined ? target : await receiveInto(scene);
  await answers.receive(pairs.responder, 7, [{ region, offset: 0, length: RECEIVE_BYTES }]);
  const offence = await violation.make(scene);
  await asks.send(pairs.requester, { ...offence, wr: 10 });
  await asks.post(pairs.requester);
  const { sends } = await asks.poll(pairs.requester, 1, 0);
  assert.deepEqual(
    sends.map((send) => [send.wr, send.status]),
    [[10, outcome.status]],
  );
  if (states[1] === 'RTS') {
    assert.equal(await answers.state(pairs.responder), 'RTS', "the responder's state");
    await answers.toError(pairs.responder);
  }
  const { receives } = await answers.poll(pairs.responder, 0, 1);
  assert.deepEqual(
    receives.map(({ status }) => status),
    [outcome.receive],
    `the receive: ${receives[0]?.status ?? 'none'}`,
  );
  assert.equal(await asks.state(pairs.requester), states[0], "the requester's state");
  assert.equal(await answers.state(pairs.responder), 'ERR', "the responder's state");
  if (states[0] === 'ERR') await playFlush(pairs.requester, scene);
}

/** What is posted to a queue pair that has failed is flushed, in order. */
async function playFlush(pair: Pair, { ends, local }: Scene): Promise<void> {
  const { end } = ends.requester;
  const segments = [{ region: local, offset: 0, length: 8 }];
  for (const wr of [11, 12]) await end.send(pair, { opcode: SEND, wr, segments });
  await end.post(pair);
  const { sends } = await end.poll(pair, 2, 0);
  const expected = [11, 12].map((wr) => [wr, 'WR_FLUSH_ERR']);
  assert.deepEqual(
    sends.map(({ wr, status }) => [wr, status]),
    expected,
    'flush',
  );
}

/** The other connection of the same ends is not affected. */
async function carryOn(ends: Ends, pairs: Connected, local: Region, target: Region): Promise<void> {
  const [asks, answers] = [ends.requester.end, ends.responder.end];
  await answers.receive(pairs.responder, 50, [{ region: target, offset: 0, length: 64 }]);
  const segments = [{ region: local, offset: 0, length: 64 }];
  await asks.send(pairs.requester, { opcode: SEND, wr: 51, segments });
  await asks.post(pairs.requester);
  const [{ sends }, { receives }] = await Promise.all([
    asks.poll(pairs.requester, 1, 0),
    answers.poll(pairs.responder, 0, 1),
  ]);
  const statuses = [...sends, ...receives].map(({ wr, status }) => [wr, status]);
  assert.deepEqual(
    statuses,
    [
      [51, 'SUCCESS'],
      [50, 'SUCCESS'],
    ],
    'the other connection',
  );
}
