/** Completion flags as endpoint attributes: which completions notify (DAT_COMPLETION_FLAGS). */
import assert from 'node:assert/strict';
import { CompletionFlags, type Evd, EvdFlags, UpcallPolicy } from 'dapl';
import { group } from '../behaviour.js';
import type { CompliancePair } from '../fixture.js';
import { connect, meet, type Peers, refuses, settle, textOf } from '../peer.js';
import { PATIENCE_MS } from '../pace.js';

const { UNSIGNALLED, SUPPRESS, SOLICITED_WAIT, EVD_THRESHOLD, DEFAULT } = CompletionFlags;

interface Flags {
  readonly recvCompletionFlags?: number;
  readonly requestCompletionFlags?: number;
}

interface Scene extends Peers {
  /** The EVD for completions of the active endpoint. */
  readonly requests: Evd;
  readonly receives: Evd;
}

/** Connects. The active side has an EVD for each stream, which take completions only. */
async function separate(pair: CompliancePair, flags: Flags): Promise<Scene> {
  const peers = meet(pair);
  const { ia, pz, evd } = peers.active;
  const requests = ia.createEvd({ qlen: 64, streams: EvdFlags.DTO });
  const receives = ia.createEvd({ qlen: 64, streams: EvdFlags.DTO });
  const ep = ia.createEndpoint({
    pz,
    requestEvd: requests,
    recvEvd: receives,
    connectEvd: evd,
    attributes: flags,
  });
  const active = Object.assign(Object.create(peers.active) as typeof peers.active, { ep });
  await connect({ ...peers, active });
  return { ...peers, active, requests, receives };
}

/** True if the promise settles while pending work finishes. */
async function settles(pair: CompliancePair, promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  const note = (): void => void (settled = true);
  promise.then(note, note);
  await settle(pair);
  return settled;
}

export const notifying = group('Completion flags', (claim) => {
  claim('UNSIGNALLED: the event is queued, a waiter sleeps on', async (pair) => {
    const scene = await separate(pair, { requestCompletionFlags: UNSIGNALLED });
    const { active, passive, requests } = scene;
    const waiting = requests.wait();
    active.ep.postRdmaWrite([], 1, passive.remote(), UNSIGNALLED);
    active.ep.postRdmaWrite([], 2, passive.remote(), UNSIGNALLED);
    assert.equal(await settles(pair, waiting), false);
    active.ep.postRdmaWrite([], 3, passive.remote());
    const { event, nmore } = await waiting;
    assert.equal(textOf(event), 'dto 1 SUCCESS');
    assert.equal(nmore, 2);
    assert.deepEqual(
      [requests.dequeue(), requests.dequeue()].map((next) => next && textOf(next)),
      ['dto 2 SUCCESS', 'dto 3 SUCCESS'],
    );
  });

  claim('UNSIGNALLED: no upcall for it; the next one takes it along, in order', async (pair) => {
    const scene = await separate(pair, { requestCompletionFlags: UNSIGNALLED });
    const { active, passive, requests } = scene;
    const seen: string[] = [];
    requests.modifyUpcall(UpcallPolicy.ONE, (event) => void seen.push(textOf(event)));
    active.ep.postRdmaWrite([], 1, passive.remote(), UNSIGNALLED);
    await settle(pair);
    assert.deepEqual(seen, []);
    active.ep.postRdmaWrite([], 2, passive.remote());
    while (seen.length < 2) await settle(pair);
    assert.deepEqual(seen, ['dto 1 SUCCESS', 'dto 2 SUCCESS']);
  });

  claim('UNSIGNALLED: dequeue finds the event; wait with events queued returns', async (pair) => {
    const scene = await separate(pair, { requestCompletionFlags: UNSIGNALLED });
    const { active, passive, requests } = scene;
    active.ep.postRdmaWrite([], 1, passive.remote(), UNSIGNALLED);
    active.ep.postRdmaWrite([], 2, passive.remote(), UNSIGNALLED);
    while (requests.query().pending < 2) await settle(pair);
    const first = requests.dequeue();
    assert.equal(first && textOf(first), 'dto 1 SUCCESS');
    assert.equal(textOf((await requests.wait({ timeoutMs: PATIENCE_MS })).event), 'dto 2 SUCCESS');
  });

  claim('UNSIGNALLED: a failure notifies', async (pair) => {
    const scene = await separate(pair, { requestCompletionFlags: UNSIGNALLED });
    const { active, passive, requests } = scene;
    const { address } = passive.remote();
    const waiting = requests.wait({ timeoutMs: PATIENCE_MS });
    const bytes = active.lmr.segment(0, 8);
    active.ep.postRdmaWrite(bytes, 1, { address, rmrContext: 1 }, UNSIGNALLED);
    assert.equal(textOf((await waiting).event), 'dto 1 REMOTE_ACCESS');
    await active.expect('BROKEN');
  });

  claim('UNSIGNALLED without the attribute is DAT_INVALID_PARAMETER', async (pair) => {
    const { active, passive } = await separate(pair, {});
    const { ep } = active;
    refuses(() => ep.postSend([], 1, UNSIGNALLED), 'DAT_INVALID_ARG5');
    refuses(() => ep.postRdmaWrite([], 1, passive.remote(), UNSIGNALLED), 'DAT_INVALID_ARG6');
    refuses(() => ep.postRecv([], 1, UNSIGNALLED), 'DAT_INVALID_ARG5');
    refuses(() => ep.postRecv([], 1, SUPPRESS), 'DAT_INVALID_ARG5');
  });

  claim('UNSIGNALLED receives: queued, and a waiter sleeps on', async (pair) => {
    const { active, passive, receives } = await separate(pair, {
      recvCompletionFlags: UNSIGNALLED,
    });
    active.ep.postRecv([], 1, UNSIGNALLED);
    active.ep.postRecv([], 2);
    const waiting = receives.wait();
    passive.ep.postSend([], 1);
    await passive.expect('dto 1 SUCCESS');
    assert.equal(await settles(pair, waiting), false);
    passive.ep.postSend([], 2);
    assert.equal(textOf((await waiting).event), 'dto 1 SUCCESS');
  });

  claim('SOLICITED_WAIT: only what the sender asked for wakes the receiver', async (pair) => {
    const { active, passive, receives } = await separate(pair, {
      recvCompletionFlags: SOLICITED_WAIT,
    });
    for (const cookie of [1, 2, 3]) active.ep.postRecv([], cookie);
    const waiting = receives.wait();
    passive.ep.postSend([], 1);
    passive.ep.postSendWithImmediate([], 2, 7);
    await passive.expect('dto 1 SUCCESS', 'dto 2 SUCCESS');
    assert.equal(await settles(pair, waiting), false);
    passive.ep.postSend([], 3, SOLICITED_WAIT);
    const { event, nmore } = await waiting;
    assert.equal(textOf(event), 'dto 1 SUCCESS');
    assert.equal(nmore, 2);
  });

  claim('SOLICITED_WAIT: writes with immediate can ask, too', async (pair) => {
    const { active, passive, receives } = await separate(pair, {
      recvCompletionFlags: SOLICITED_WAIT,
    });
    active.ep.postRecv([], 1);
    const waiting = receives.wait({ timeoutMs: PATIENCE_MS });
    passive.ep.postRdmaWriteWithImmediate([], 1, active.remote(), 9, SOLICITED_WAIT);
    assert.equal(textOf((await waiting).event), 'dto 1 SUCCESS');
  });

  claim(
    'DEFAULT: every completion notifies, and wait takes a threshold of 1 only',
    async (pair) => {
      const { active, passive, requests } = await separate(pair, {
        requestCompletionFlags: DEFAULT,
      });
      await assert.rejects(requests.wait({ threshold: 2 }), /EVD_CONFIG_NOTIFY/);
      const waiting = requests.wait({ timeoutMs: PATIENCE_MS });
      active.ep.postRdmaWrite([], 1, passive.remote());
      assert.equal(textOf((await waiting).event), 'dto 1 SUCCESS');
    },
  );

  claim('streams of different kinds do not share an event dispatcher', async (pair) => {
    const { ia, pz } = meet(pair).active;
    const evd = ia.createEvd({ qlen: 64, streams: EvdFlags.DTO });
    const make = (attributes: Flags): unknown =>
      ia.createEndpoint({ pz, recvEvd: evd, requestEvd: evd, attributes });
    const both = { recvCompletionFlags: UNSIGNALLED, requestCompletionFlags: UNSIGNALLED };
    refuses(() => make({ recvCompletionFlags: SOLICITED_WAIT }), 'DAT_INVALID_STATE');
    refuses(() => make({ recvCompletionFlags: UNSIGNALLED }), 'DAT_INVALID_STATE');
    make(both);
    refuses(() => make({}), 'DAT_INVALID_STATE_EVD_CONFIG_NOTIFY');
    make({ ...both, requestCompletionFlags: UNSIGNALLED | SUPPRESS });
    await settle(pair);
  });

  claim('flags that a stream does not take are refused by name', async (pair) => {
    const { ia, pz, evd } = meet(pair).active;
    const make = (attributes: Flags, own?: Evd): unknown =>
      ia.createEndpoint({
        pz,
        attributes,
        ...(own && { recvEvd: own, requestEvd: own }),
      });
    for (const attributes of [
      { recvCompletionFlags: SUPPRESS },
      { requestCompletionFlags: SOLICITED_WAIT },
      { recvCompletionFlags: SOLICITED_WAIT | UNSIGNALLED },
      { requestCompletionFlags: UNSIGNALLED | EVD_THRESHOLD },
      { requestCompletionFlags: 0x40 },
    ]) {
      refuses(() => make(attributes), 'DAT_INVALID_PARAMETER');
    }
    // Other events on the EVD would notify for these completions.
    refuses(() => make({ requestCompletionFlags: UNSIGNALLED }, evd), 'DAT_INVALID_PARAMETER');
    await settle(pair);
  });
});
