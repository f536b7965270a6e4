/** Connections and completions of requests as streams. */
import assert from 'node:assert/strict';
import { BehaviorSubject, firstValueFrom, map, timeout } from 'rxjs';
import {
  type Cr,
  type DatError,
  DatEventNumber,
  type Ep,
  EvdFlags,
  type Psp,
  PspFlags,
} from '../../../core/index.js';
import {
  accepting,
  type AcceptingOptions,
  completionOf,
  connected,
  receives,
  states,
} from '../../../core/rx/index.js';
import { dat } from '../evd/set-up.js';
import { Scene, SERVER, textOf, turns, until, watch } from './scene.js';

describe('rx: connections', () => {
  let scene: Scene;
  beforeEach(async () => {
    scene = await Scene.open();
  });
  afterEach(async () => scene.close());

  const endpoint = (): { endpoint: { pz: ReturnType<Scene['server']['createPz']> } } => ({
    endpoint: { pz: scene.server.createPz() },
  });

  /** Asks for a connection. */
  function connect(psp: Psp, ep = scene.endpoint(scene.client)): Ep {
    ep.connect({ address: SERVER, connQual: psp.connQual });
    return ep;
  }

  describe('accepting', () => {
    it('emits each endpoint when it is connected, ready to receive', async () => {
      const psp = scene.listen();
      const texts: string[] = [];
      const prepare = (ep: Ep): unknown =>
        receives(ep).subscribe(({ bytes }) => texts.push(textOf(bytes)));
      const { seen } = watch(accepting(psp, { ...endpoint(), prepare }));
      const clients = [1, 2, 3].map(() => connect(psp));
      await until(() => seen.length === 3);
      assert.deepEqual(
        (seen as Ep[]).map(({ state }) => state),
        Array(3).fill('CONNECTED'),
      );
      for (const [i, client] of clients.entries()) {
        await firstValueFrom(connected(client));
        await scene.send(client, `from ${i}`);
      }
      await until(() => texts.length === 3);
      assert.deepEqual(texts.sort(), ['from 0', 'from 1', 'from 2']);
    });

    it('sends private data, and lets prepare reject with some of its own', async () => {
      const psp = scene.listen();
      const options: AcceptingOptions = {
        ...endpoint(),
        privateData: Uint8Array.of(7),
        prepare: (_, cr) => {
          if (cr.privateData[0] === 9) cr.reject({ privateData: Uint8Array.of(8) });
        },
      };
      const { seen } = watch(accepting(psp, options));
      const answers: unknown[] = [];
      for (const byte of [1, 9]) {
        const ep = scene.endpoint(scene.client);
        ep.connection$.subscribe(({ number, privateData }) => {
          answers.push([number, privateData[0]]);
        });
        ep.connect({
          address: SERVER,
          connQual: psp.connQual,
          privateData: Uint8Array.of(byte),
        });
        await until(() => answers.length === (byte === 1 ? 1 : 2));
      }
      await turns();
      assert.deepEqual(answers, [
        [DatEventNumber.ESTABLISHED, 7],
        [DatEventNumber.PEER_REJECTED, 8],
      ]);
      assert.equal(seen.length, 1);
    });

    it('rejects where prepare throws, tells of it, and goes on', async () => {
      for (const isTold of [true, false]) {
        const psp = scene.listen();
        const wrong = new Error('not this one');
        const told: unknown[] = [];
        const errors: unknown[] = [];
        const async = scene.server.async$.subscribe((event) => {
          if (event.type === 'async-error') errors.push(event.cause);
        });
        let requests = 0;
        const prepare = (): void => {
          if (requests++ === 0) throw wrong;
        };
        const failed = (error: unknown, cr: Cr): unknown => told.push(error, cr.state);
        const options = { ...endpoint(), prepare, ...(isTold && { failed }) };
        const { seen } = watch(accepting(psp, options));
        const first = connect(psp);
        await assert.rejects(firstValueFrom(connected(first)), dat('DAT_INVALID_STATE'));
        connect(psp);
        await until(() => seen.length === 1);
        assert.deepEqual(told, isTold ? [wrong, 'REJECTED'] : []);
        assert.deepEqual(errors, isTold ? [] : [wrong]);
        async.unsubscribe();
        (seen[0] as Ep).free();
        options.endpoint.pz.free();
      }
    });

    it('frees the endpoint of a handshake that fails, and tells of that alone', async () => {
      const psp = scene.listen();
      const told: unknown[] = [];
      const failed = (error: unknown): unknown => told.push((error as DatError).code);
      const prepare = (): void => client.free();
      const options = { ...endpoint(), prepare, failed };
      const { seen } = watch(accepting(psp, options));
      const client = connect(psp);
      await until(() => told.length > 0);
      assert.deepEqual([seen, told], [[], ['DAT_INVALID_STATE']]);
      options.endpoint.pz.free();
    });

    it('leaves requests in the EVD during a pause', async () => {
      const psp = scene.listen();
      const paused$ = new BehaviorSubject(true);
      const { seen } = watch(accepting(psp, { ...endpoint(), paused$ }));
      for (let i = 0; i < 3; i++) connect(psp);
      await until(() => psp.evd.query().pending === 3);
      assert.deepEqual(seen, []);
      paused$.next(false);
      await until(() => seen.length === 3);
    });

    it('has no more handshakes at a time than the limit; others wait in the EVD', async () => {
      const psp = scene.listen();
      let begun = 0;
      let mostWaiting = 0;
      const prepare = (): void => {
        begun++;
        mostWaiting = Math.max(mostWaiting, psp.evd.query().pending);
      };
      const paused$ = new BehaviorSubject(true);
      const options = { ...endpoint(), limit: 1, prepare, paused$ };
      const { seen } = watch(accepting(psp, options));
      for (let i = 0; i < 3; i++) connect(psp);
      await until(() => psp.evd.query().pending === 3);
      paused$.next(false);
      await until(() => begun === 1);
      assert.deepEqual([psp.evd.query().pending, mostWaiting], [2, 2]);
      await until(() => seen.length === 3);
    });

    it('leaves requests to the next subscriber, and frees what comes too late', async () => {
      const psp = scene.listen();
      const options = endpoint();
      const first = watch(
        accepting(psp, { ...options, prepare: () => first.subscription.unsubscribe() }),
      );
      const early = connect(psp);
      await until(() => early.state === 'CONNECTED');
      await until(() => early.state === 'DISCONNECTED');
      assert.deepEqual(first.seen, []);
      options.endpoint.pz.free();
      connect(psp);
      await until(() => psp.evd.query().pending === 1);
      const second = watch(accepting(psp, endpoint()));
      await until(() => second.seen.length === 1);
    });

    it('completes when the service point is freed', async () => {
      const psp = scene.listen();
      const { seen } = watch(accepting(psp, endpoint()));
      psp.free();
      await until(() => seen.length > 0);
      assert.deepEqual(seen, ['complete']);
    });

    it('ends when the adapter is closed in the middle of a handshake', async () => {
      const psp = scene.listen();
      let begun = false;
      const { seen } = watch(accepting(psp, { ...endpoint(), prepare: () => (begun = true) }));
      connect(psp);
      await until(() => begun);
      await scene.server.close('abrupt');
      await until(() => seen.length > 0);
      assert.equal(seen.at(-1), 'complete');
    });

    it('lets its subscriber await the close of the adapter', async () => {
      const psp = scene.listen();
      let isClosed = false;
      accepting(psp, endpoint()).subscribe(() => {
        void scene.server.close('abrupt').then(() => (isClosed = true));
      });
      connect(psp);
      await until(() => isClosed);
    });

    it('takes endpoints that come with the requests', async () => {
      const pz = scene.server.createPz();
      const flags = PspFlags.PROVIDER;
      const psp = scene.server.createPsp({ connQual: 6000, flags, endpoint: { pz } });
      const prepared: Ep[] = [];
      const { seen } = watch(accepting(psp, { prepare: (ep) => prepared.push(ep) }));
      connect(psp);
      await until(() => seen.length === 1);
      assert.deepEqual(seen, prepared);
    });

    it('is one subscriber’s', () => {
      const psp = scene.listen();
      watch(accepting(psp, endpoint()));
      assert.deepEqual(watch(accepting(psp, endpoint())).seen, ['DAT_INVALID_STATE']);
    });

    it('refuses what is none of its own', () => {
      const psp = scene.listen();
      const calls: readonly (() => unknown)[] = [
        () => accepting({} as Psp, endpoint()),
        () => accepting(psp),
        () => accepting(psp, { ...endpoint(), limit: 0 }),
        () => accepting(psp, { ...endpoint(), privateData: new Uint8Array(197) }),
        () => accepting(psp, { ...endpoint(), reject: 1 } as AcceptingOptions),
      ];
      for (const call of calls) assert.throws(call, dat('DAT_INVALID_PARAMETER'));
      const evd = scene.server.createEvd({ qlen: 8, streams: EvdFlags.CR });
      const given = scene.server.createPsp({ connQual: 6001, evd });
      assert.throws(() => accepting(given, endpoint()), dat('DAT_INVALID_STATE'));
    });
  });

  describe('connected and states', () => {
    it('tell any number of a connection, before it and after it, and take no event', async () => {
      const pair = scene.pair();
      const early = [watch(connected(pair.client)), watch(connected(pair.client))];
      const all = watch(states(pair.client));
      await scene.connect(pair);
      await turns();
      const late = watch(connected(pair.client));
      for (const { seen } of [...early, late]) assert.deepEqual(seen, [pair.client, 'complete']);
      const { number } = await firstValueFrom(pair.client.connection$);
      assert.equal(number, DatEventNumber.ESTABLISHED);
      pair.client.disconnect();
      await until(() => pair.client.state === 'DISCONNECTED');
      pair.client.free();
      await turns();
      assert.deepEqual(all.seen, [
        'UNCONNECTED',
        'ACTIVE_CONNECTION_PENDING',
        'CONNECTED',
        'DISCONNECT_PENDING',
        'DISCONNECTED',
        'complete',
      ]);
      assert.deepEqual(watch(states(pair.client)).seen.at(-1), 'complete');
    });

    it('say why there is none: nobody listens, freed, over', async () => {
      const ep = scene.endpoint(scene.client);
      const failing = firstValueFrom(connected(ep));
      ep.connect({ address: SERVER, connQual: 6999 });
      await assert.rejects(failing, (error: DatError) => {
        assert.equal(error.subtype, 'DAT_INVALID_STATE_EP_DISCONNECTED');
        assert.match(error.message, new RegExp(`endpoint ${ep.id} is DISCONNECTED`));
        return Array.isArray(error.value) && error.value.length > 0;
      });
      assert.deepEqual(watch(connected(ep)).seen, ['DAT_INVALID_STATE']);
      const other = scene.endpoint(scene.client);
      const { seen } = watch(connected(other));
      other.free();
      await turns();
      assert.deepEqual(seen, ['DAT_ABORT']);
    });

    it('have no time limit of their own: timeout() is one, and touches nothing', async () => {
      const ep = scene.endpoint(scene.client);
      await assert.rejects(firstValueFrom(connected(ep).pipe(timeout(1))), {
        name: 'TimeoutError',
      });
      assert.equal(ep.state, 'UNCONNECTED');
      for (const call of [connected, states]) {
        assert.throws(() => call({} as Ep), dat('DAT_INVALID_PARAMETER'));
      }
    });
  });

  describe('completionOf', () => {
    it('emits the completion with that cookie; others stay in the EVD, in order', async () => {
      const pair = scene.pair();
      await scene.connect(pair);
      watch(receives(pair.server));
      const lmr = scene.client.allocate(64, { pz: pair.client.pz });
      for (const cookie of [1, 2, 3, 2, 4]) pair.client.postSend(lmr.segment(0, 1), cookie);
      const { seen } = watch(completionOf(pair.client, 3));
      await until(() => seen.length === 2);
      assert.deepEqual([(seen[0] as { cookie: number }).cookie, seen[1]], [3, 'complete']);
      const both = [watch(completionOf(pair.client, 2)), watch(completionOf(pair.client, 2))];
      await until(() => both.every((each) => each.seen.length === 2));
      assert.notEqual(both[0]!.seen[0], both[1]!.seen[0]);
      const evd = pair.client.query().requestEvd;
      await until(() => evd.query().pending === 2);
      const left = [evd.dequeue(), evd.dequeue()].map((event) =>
        event?.type === 'dto' ? event.cookie : event,
      );
      assert.deepEqual(left, [1, 4]);
    });

    it('emits one that came while another was waited for; the next can be waited for', async () => {
      const pair = scene.pair();
      await scene.connect(pair);
      const inbox = pair.server.ia.allocate(64, { pz: pair.server.pz });
      for (let i = 0; i < 3; i++) pair.server.postRecv(inbox.segment(), i);
      const { client } = pair;
      const outbox = client.ia.allocate(8, { pz: client.pz });
      const later = watch(completionOf(client, 2).pipe(map(({ cookie }) => cookie)));
      client.postSend(outbox.segment(), 1);
      await turns();
      const early = watch(completionOf(client, 1).pipe(map(({ cookie }) => cookie)));
      assert.deepEqual(early.seen, [1, 'complete']);
      client.postSend(outbox.segment(), 2);
      await until(() => later.seen.length > 0);
      assert.deepEqual(later.seen, [2, 'complete']);
      const again = watch(completionOf(client, 2).pipe(map(({ cookie }) => cookie)));
      client.postSend(outbox.segment(), 2);
      await until(() => again.seen.length > 0);
      assert.deepEqual([again.seen, later.seen.length], [[2, 'complete'], 2]);
      const free = watch(client.completions$);
      assert.deepEqual(free.seen, [], 'nothing takes the completions any more');
      free.subscription.unsubscribe();
    });

    it('leaves receives of the consumer’s own alone', async () => {
      const pair = scene.pair();
      await scene.connect(pair);
      const lmr = scene.client.allocate(128, { pz: pair.client.pz });
      pair.client.postRecv(lmr.segment(64, 64), 1);
      watch(receives(pair.server));
      await scene.send(pair.server, 'for me');
      const evd = pair.client.query().recvEvd;
      await until(() => evd.query().pending === 1);
      pair.client.postSend(lmr.segment(0, 1), 1);
      await firstValueFrom(completionOf(pair.client, 1));
      const event = evd.dequeue();
      assert.deepEqual(event?.type === 'dto' && event.transferredLength, 6);
    });

    it('errors with what has failed, and when the endpoint goes', async () => {
      const pair = scene.pair();
      await scene.connect(pair);
      const lmr = scene.client.allocate(64, { pz: pair.client.pz });
      const nowhere = { address: 0n, rmrContext: 0 };
      pair.client.postRdmaWrite(lmr.segment(), 1, nowhere);
      pair.client.postSend(lmr.segment(), 2);
      const codes = await Promise.all(
        [1, 2].map((cookie) =>
          firstValueFrom(completionOf(pair.client, cookie)).catch(({ code }: DatError) => code),
        ),
      );
      assert.deepEqual(codes, ['DAT_PRIVILEGES_VIOLATION', 'DAT_ABORT']);
      const { seen } = watch(completionOf(pair.server, 9));
      pair.server.free();
      await turns();
      assert.deepEqual(seen, ['DAT_ABORT']);
    });

    it('leaves with its subscriber; 10,000 of them leave nothing', async () => {
      const pair = scene.pair();
      for (let i = 0; i < 10_000; i++)
        watch(completionOf(pair.client, i)).subscription.unsubscribe();
      assert.equal(pair.client.query().requestEvd.query().taker, 'none');
      await scene.connect(pair);
      for (let i = 0; i < 1000; i++) {
        watch(connected(pair.client));
        watch(states(pair.client)).subscription.unsubscribe();
      }
    });

    it('refuses what is none of its own', async () => {
      const { client } = scene.pair();
      assert.throws(() => completionOf({} as Ep, 1), dat('DAT_INVALID_PARAMETER'));
      assert.throws(() => completionOf(client, -1), dat('DAT_INVALID_PARAMETER'));
      const requestEvd = scene.client.createEvd({ qlen: 8, streams: EvdFlags.DTO });
      const given = scene.endpoint(scene.client, { requestEvd });
      assert.deepEqual(watch(completionOf(given, 1)).seen, ['DAT_INVALID_STATE']);
      client.free();
      assert.deepEqual(watch(completionOf(client, 1)).seen, ['DAT_INVALID_HANDLE']);
    });
  });
});
