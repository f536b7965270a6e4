/** Event dispatchers under traffic: every way to take events delivers all of them, in order. */
import assert from 'node:assert/strict';
import {
  CompletionFlags,
  type DatEvent,
  DatEventNumber,
  EventBatch,
  type Evd,
  EvdFlags,
} from 'dapl';
import { type Claim, group } from '../behaviour.js';
import type { CompliancePair } from '../fixture.js';
import { PATIENCE_MS } from '../pace.js';
import { ask, connected, meet, type Peer, refuses, settle, textOf, until } from '../peer.js';

const MESSAGES = 400;
const EVENT_LOOP_TURN = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Takes `count` events of an EVD. */
type Taker = (evd: Evd, count: number) => Promise<DatEvent[]>;

const TAKERS: Readonly<Record<string, Taker>> = {
  'dequeue in a polling loop': async (evd, count) => {
    const events: DatEvent[] = [];
    while (events.length < count) {
      const event = evd.dequeue();
      if (event === undefined) await EVENT_LOOP_TURN();
      else events.push(event);
    }
    return events;
  },
  wait: async (evd, count) => {
    const events: DatEvent[] = [];
    while (events.length < count) events.push((await evd.wait()).event);
    return events;
  },
  'wait with a threshold': async (evd, count) => {
    const events: DatEvent[] = [];
    while (events.length < count) {
      const threshold = Math.min(10, count - events.length);
      const { event, nmore } = await evd.wait({ threshold });
      events.push(event);
      for (let i = 0; i < nmore; i++) events.push(evd.dequeue() as DatEvent);
    }
    return events;
  },
  'for await': async (evd, count) => {
    const events: DatEvent[] = [];
    for await (const batch of evd) {
      events.push(...batch);
      if (events.length >= count) break;
    }
    return events;
  },
  events$: (evd, count) => {
    return new Promise((resolve) => {
      const events: DatEvent[] = [];
      const subscription = evd.events$.subscribe((event) => {
        events.push(event);
        if (events.length < count) return;
        queueMicrotask(() => subscription.unsubscribe());
        resolve(events);
      });
    });
  },
  'upcall under ONE': (evd, count) => byUpcall(evd, count, 'ONE', () => undefined),
  'upcall under ONE, asynchronous': (evd, count) => byUpcall(evd, count, 'ONE', EVENT_LOOP_TURN),
  'upcall under MANY, asynchronous': (evd, count) => byUpcall(evd, count, 'MANY', EVENT_LOOP_TURN),
  'upcall under NOTIFY': (evd, count) => {
    return new Promise((resolve) => {
      const events: DatEvent[] = [];
      evd.modifyUpcall('NOTIFY', () => {
        for (let event = evd.dequeue(); event; event = evd.dequeue()) events.push(event);
        if (events.length === count) resolve(events);
      });
    });
  },
};

function byUpcall(
  evd: Evd,
  count: number,
  policy: 'ONE' | 'MANY',
  work: () => void | Promise<void>,
): Promise<DatEvent[]> {
  return new Promise((resolve) => {
    const events: DatEvent[] = [];
    evd.modifyUpcall(policy, (event) => {
      events.push(event);
      if (events.length === count) resolve(events);
      return work();
    });
  });
}

/** Sends numbered messages, with at most `window` in flight. */
async function sendAll(peer: Peer, count: number): Promise<void> {
  let done = 0;
  for (let i = 0; i < count; i++) {
    peer.ep.postSend(peer.lmr.segment(i, 1), i);
    while (i - done >= 60) if (textOf(await peer.next()) === `dto ${done} SUCCESS`) done++;
    if (i % 7 === 0) await EVENT_LOOP_TURN();
  }
  while (done < count) if (textOf(await peer.next()) === `dto ${done} SUCCESS`) done++;
}

/** A receiver of `MESSAGES` messages with a dispatcher of its own for receives. */
async function traffic(pair: CompliancePair, taker: Taker): Promise<void> {
  const attributes = { maxRecvDtos: MESSAGES };
  const peers = meet(pair, { passive: { attributes } });
  const { active, passive } = peers;
  const recvEvd = passive.ia.createEvd({ qlen: MESSAGES });
  const { pz, evd } = passive;
  const evds = { recvEvd, requestEvd: evd, connectEvd: evd };
  const ep = passive.ia.createEndpoint({ pz, ...evds, attributes });
  for (let i = 0; i < MESSAGES; i++) ep.postRecv(passive.lmr.segment(i, 1), i);
  (await ask(peers)).accept(ep);
  await active.expect('ESTABLISHED');
  const taken = taker(recvEvd, MESSAGES);
  await sendAll(active, MESSAGES);
  const events = await taken;
  assert.deepEqual(
    events.map(textOf),
    events.map((_, i) => `dto ${i} SUCCESS`),
  );
  await settle(pair);
  assert.equal(recvEvd.dequeue(), undefined);
}

export const dispatching = group('Dispatching events', (claim) => {
  for (const [name, taker] of Object.entries(TAKERS)) {
    claim(`${name} delivers all of ${MESSAGES} receives, in order`, (pair) => traffic(pair, taker));
  }

  claim('dequeueInto takes completions as numbers', async (pair) => {
    const { active, passive } = await connected(pair);
    for (let i = 0; i < 5; i++)
      active.ep.postRdmaWrite(active.lmr.segment(0, i), i, passive.remote());
    const batch = new EventBatch(8);
    const cookies: number[] = [];
    while (cookies.length < 5) {
      active.evd.dequeueInto(batch);
      for (let i = 0; i < batch.count; i++) cookies.push(batch.cookies[i] ?? -1);
      await EVENT_LOOP_TURN();
    }
    assert.deepEqual(cookies, [0, 1, 2, 3, 4]);
  });

  sharedOrder(claim);
  exclusion(claim);
  streams(claim);
});

function sharedOrder(claim: Claim): void {
  claim('a shared dispatcher: completions come before DISCONNECTED', async (pair) => {
    const { active, passive } = await connected(pair);
    for (let i = 0; i < 20; i++) passive.ep.postRecv(passive.lmr.segment(), i);
    for (let i = 0; i < 10; i++) active.ep.postSend(active.lmr.segment(0, 100), i);
    active.ep.disconnect('graceful');
    const seen = await passive.until('DISCONNECTED');
    const expected = Array.from({ length: 20 }, (_, i) => {
      return `dto ${i} ${i < 10 ? 'SUCCESS' : 'FLUSHED'}`;
    });
    assert.deepEqual(seen, [...expected, 'DISCONNECTED']);
  });

  claim('a shared dispatcher: the state has changed when the event is taken', async (pair) => {
    const peers = meet(pair);
    const { active } = peers;
    (await ask(peers)).accept(peers.passive.ep);
    await active.expect('ESTABLISHED');
    assert.equal(active.ep.state, 'CONNECTED');
    active.ep.disconnect();
    await active.expect('DISCONNECTED');
    assert.equal(active.ep.state, 'DISCONNECTED');
  });

  claim('many connections on one dispatcher: the completions of each in order', async (pair) => {
    const { active, passive } = await connected(pair);
    const second = await connected(pair);
    for (let i = 0; i < 50; i++) {
      active.ep.postRdmaWrite(active.lmr.segment(0, 2000), i, passive.remote());
      second.active.ep.postRdmaWrite(second.active.lmr.segment(0, 10), i, second.passive.remote());
    }
    await active.until('dto 49 SUCCESS');
    await second.active.until('dto 49 SUCCESS');
  });
}

function exclusion(claim: Claim): void {
  claim('a waiter, a subscription and an upcall exclude each other', async ({ active }) => {
    const evd = active.createEvd({ qlen: 8 });
    const waiting = evd.wait();
    refuses(() => evd.modifyUpcall('ONE', () => undefined), 'DAT_INVALID_STATE');
    await assert.rejects(evd.wait(), /DAT_INVALID_STATE/);
    await evd.free();
    await assert.rejects(waiting, /DAT_ABORT/);
  });

  claim('wait gives up after its timeout: DAT_TIMEOUT_EXPIRED', async ({ active }) => {
    const evd = active.createEvd({ qlen: 8 });
    await assert.rejects(evd.wait({ timeoutMs: 5 }), /DAT_TIMEOUT_EXPIRED/);
    await assert.rejects(evd.wait({ timeoutMs: 0 }), /DAT_TIMEOUT_EXPIRED/);
  });

  claim('a software event is taken as it was posted', async ({ active }) => {
    const evd = active.createEvd({ qlen: 1, streams: EvdFlags.SOFTWARE });
    const payload = { hello: 1 };
    evd.postSe(payload);
    refuses(() => evd.postSe(payload), 'DAT_QUEUE_FULL');
    const event = evd.dequeue();
    assert.ok(event?.type === 'software' && event.payload === payload);
    assert.equal(event.number, DatEventNumber.SOFTWARE);
  });

  claim('TEARDOWN resolves when the upcall in progress has ended', async (pair) => {
    const { active, passive } = await connected(pair);
    let ended = false;
    const started = new Promise<void>((resolve) => {
      active.evd.modifyUpcall('ONE', async () => {
        resolve();
        await EVENT_LOOP_TURN();
        ended = true;
      });
    });
    active.ep.postRdmaWrite(active.lmr.segment(0, 8), 1, passive.remote());
    await started;
    await active.evd.modifyUpcall('TEARDOWN');
    assert.equal(ended, true);
  });

  claim('a queue that overflows says so on the asynchronous dispatcher', async (pair) => {
    const { active, passive } = await connected(pair);
    const { pz, ia } = active;
    assert.ok(pz && passive);
    const small = ia.createEvd({ qlen: 1 });
    for (let i = 0; i < 3; i++) {
      const ep = ia.createEndpoint({ pz, connectEvd: small });
      ep.connect({ address: pair.passiveAddress, connQual: 1 });
    }
    const { event } = await ia.asyncEvd.wait({ timeoutMs: PATIENCE_MS });
    assert.equal(textOf(event), 'ASYNC_EVD_OVERFLOW');
  });
}

function streams(claim: Claim): void {
  claim('an endpoint made without dispatchers offers streams of everything', async (pair) => {
    const { active: to } = meet(pair);
    const pz = pair.passive.createPz();
    const lmr = pair.passive.allocate(64, { pz });
    const ep = pair.passive.createEndpoint({ pz });
    const psp = pair.passive.createPsp({ connQual: 7000 });
    const seen: string[] = [];
    const states: string[] = [];
    ep.state$.subscribe((state) => states.push(state));
    ep.completions$.subscribe((event) => seen.push(textOf(event)));
    ep.connection$.subscribe((event) => seen.push(textOf(event)));
    psp.requests$.subscribe(({ cr }) => cr.accept(ep));
    ep.postRecv(lmr.segment(), 1);
    to.ep.connect({ address: pair.passiveAddress, connQual: 7000 });
    await to.expect('ESTABLISHED');
    to.ep.postSend(to.lmr.segment(0, 8), 2, CompletionFlags.SUPPRESS);
    to.ep.disconnect('graceful');
    await to.expect('DISCONNECTED');
    await until(
      pair,
      () => seen.length > 2,
      () => `seen: ${seen.join()}`,
    );
    await settle(pair);
    assert.deepEqual(seen.sort(), ['DISCONNECTED', 'ESTABLISHED', 'dto 1 SUCCESS']);
    assert.deepEqual(states.slice(-2), ['CONNECTED', 'DISCONNECTED']);
  });
}
