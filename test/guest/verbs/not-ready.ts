/** Messages that find no receive: NAK and wait, for ever or only so often. IBTA 9.7.5.2.8. */
import assert from 'node:assert/strict';

import { paused } from '../../support/patience.js';
import { WrOpcode } from '../../../core/spi/index.js';
import type { Region, Segment } from './end.js';
import { type Connected, connectPair, type Ends, EVERYTHING } from './manual-pair.js';
import { RNR_WAIT_US } from './rnr-waits.js';

const { RDMA_READ, RDMA_WRITE, RDMA_WRITE_WITH_IMM, SEND } = WrOpcode;
const LATE_MS = 250;
const BYTES = 3000;
export interface PlayedWait {
  readonly name: string;
  readonly timer: keyof typeof RNR_WAIT_US;
  readonly qpns: { readonly requester: number; readonly responder: number };
  /** How many RNR NAKs there must have been; and one more for each repetition that crossed one. */
  readonly naks: { readonly least: number; readonly most: number };
}

/** Returns what the wire must show. */
export async function playNotReady(ends: Ends, mtuBytes: number): Promise<PlayedWait[]> {
  const { requester, responder } = ends;
  const local = await requester.end.region(requester.domain, BYTES, EVERYTHING);
  const target = await responder.end.region(responder.domain, 4 * BYTES, EVERYTHING);
  const scene = { ends, mtuBytes, local, target };
  const waits: PlayedWait[] = [];
  for (const timer of [20, 24] as const) waits.push(await late(scene, timer));
  for (const retries of [0, 2]) waits.push(await never(scene, retries));
  return waits;
}

interface Scene {
  readonly ends: Ends;
  readonly mtuBytes: number;
  readonly local: Region;
  readonly target: Region;
}

function played(
  name: string,
  timer: PlayedWait['timer'],
  pairs: Connected,
  naks: PlayedWait['naks'],
): PlayedWait {
  const { requester, responder } = pairs;
  return { name, timer, qpns: { requester: requester.qpn, responder: responder.qpn }, naks };
}

/** Receives come late, one after the other: everything arrives, in order. */
async function late(scene: Scene, timer: PlayedWait['timer']): Promise<PlayedWait> {
  const { ends, local, target } = scene;
  const [asks, answers] = [ends.requester.end, ends.responder.end];
  const pairs = await connectPair(ends, { mtuBytes: scene.mtuBytes, minRnrTimer: timer });
  const segments: Segment[] = [{ region: local, offset: 0, length: BYTES }];
  const remote = { remoteAddress: target.address, rkey: target.rkey };
  const requests = [SEND, RDMA_WRITE, RDMA_WRITE_WITH_IMM, RDMA_READ, SEND];
  for (const [wr, opcode] of requests.entries()) {
    await asks.send(pairs.requester, { opcode, wr, segments, immediate: wr, ...remote });
  }
  await asks.post(pairs.requester);
  const receives: (string | number)[][] = [];
  for (const wr of [20, 21, 22]) {
    await paused(LATE_MS / 3);
    const place = { region: target, offset: (wr - 19) * BYTES, length: BYTES };
    await answers.receive(pairs.responder, wr, [place]);
    const { receives: done } = await answers.poll(pairs.responder, 0, 1);
    receives.push(...done.map(({ wr: id, status, bytes }) => [id, status, bytes]));
  }
  const { sends } = await asks.poll(pairs.requester, requests.length, 0);
  const expected = requests.map((_, wr) => [wr, 'SUCCESS']);
  const name = `late receives, timer ${timer}`;
  assert.deepEqual(
    sends.map(({ wr, status }) => [wr, status]),
    expected,
    name,
  );
  assert.deepEqual(
    receives,
    [20, 21, 22].map((wr) => [wr, 'SUCCESS', BYTES]),
    name,
  );
  const naks = { least: 1, most: Math.ceil((20 * LATE_MS * 1000) / RNR_WAIT_US[timer]) };
  return played(name, timer, pairs, naks);
}

/** No receive ever comes: the retries are counted, and only the requester fails. */
async function never(scene: Scene, rnrRetryCount: number): Promise<PlayedWait> {
  const { ends, local } = scene;
  const [asks, answers] = [ends.requester.end, ends.responder.end];
  const timer = 14;
  const options = { mtuBytes: scene.mtuBytes, minRnrTimer: timer, rnrRetryCount };
  const pairs = await connectPair(ends, options);
  const name = `no receive, ${rnrRetryCount} retries`;
  const segments = [{ region: local, offset: 0, length: 8 }];
  await asks.send(pairs.requester, { opcode: SEND, wr: 1, segments });
  await asks.post(pairs.requester);
  const { sends } = await asks.poll(pairs.requester, 1, 0);
  assert.deepEqual(
    sends.map(({ wr, status }) => [wr, status]),
    [[1, 'RNR_RETRY_EXC_ERR']],
    name,
  );
  assert.equal(await asks.state(pairs.requester), 'ERR', name);
  assert.equal(await answers.state(pairs.responder), 'RTS', name);
  return played(name, timer, pairs, { least: rnrRetryCount + 1, most: rnrRetryCount + 1 });
}
