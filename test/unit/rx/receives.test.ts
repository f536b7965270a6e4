/** Messages as a stream: copies that anything may hold, and lent buffers, a bounded number. */
import assert from 'node:assert/strict';
import {
  bufferTime,
  concatMap,
  filter,
  firstValueFrom,
  map,
  mergeMap,
  type Observable,
  take,
  tap,
} from 'rxjs';
import {
  DatDtoStatus,
  type DatError,
  type DatEvent,
  EvdFlags,
  MemPrivileges,
} from '../../../core/index.js';
import {
  completionOf,
  type Received,
  receives,
  type ReceivesOptions,
} from '../../../core/rx/index.js';
import { dat } from '../evd/set-up.js';
import { type Pair, Scene, textOf, turns, until, watch } from './scene.js';

const BUFFERS = 4;
/** Many times round all buffers. */
const MESSAGES = 60;
const TEXTS = Array.from({ length: MESSAGES }, (_, i) => `message ${i}`);

describe('rx: receives', () => {
  let scene: Scene;
  beforeEach(async () => {
    scene = await Scene.open();
  });
  afterEach(async () => scene.close());

  /** A pair whose server has this stream, and its messages as `through` makes them. */
  async function receiving<T>(
    options: ReceivesOptions,
    through: (messages$: Observable<Received>) => Observable<T>,
  ): Promise<Pair & { seen: unknown[] }> {
    // Some operators wait in real time, in which the fabric lets hours pass.
    const patient = { attributes: { transport: { rnrRetryCount: 7 } } };
    const pair = scene.pair({ client: patient, server: patient });
    const { seen } = watch(through(receives(pair.server, { buffers: BUFFERS, ...options })));
    await scene.connect(pair);
    return { ...pair, seen };
  }

  /** Of differing length, so that messages finish in another order than they came in. */
  const late = async (message: Received): Promise<string> => {
    await turns(message.bytes.length % 5);
    const text = textOf(message.bytes);
    message.release();
    return text;
  };
  const OPERATORS: Readonly<
    Record<string, (messages$: Observable<Received>) => Observable<string>>
  > = {
    concatMap: (messages$) => messages$.pipe(concatMap(late)),
    mergeMap: (messages$) => messages$.pipe(mergeMap(late)),
    bufferTime: (messages$) =>
      messages$.pipe(
        bufferTime(1),
        filter((batch) => batch.length > 0),
        concatMap((batch) => Promise.all(batch.map(late))),
        mergeMap((texts) => texts),
      ),
  };
  for (const [name, through] of Object.entries(OPERATORS)) {
    for (const lent of [false, true]) {
      it(`keep every message whole behind ${name}, ${lent ? 'lent' : 'copied'}`, async () => {
        const { client, seen } = await receiving({ lent }, through);
        await scene.send(client, ...TEXTS);
        await until(() => seen.length >= MESSAGES || client.state !== 'CONNECTED');
        const isOrdered = name !== 'mergeMap' || undefined;
        assert.deepEqual(isOrdered ? seen : seen.sort(), isOrdered ? TEXTS : [...TEXTS].sort());
        client.disconnect();
        await until(() => seen.length > MESSAGES);
        assert.equal(seen.at(-1), 'complete');
      });
    }
  }

  it('copy by default: messages that nobody releases stay as they are', async () => {
    const { client, seen } = await receiving({}, (messages$) => messages$);
    await scene.send(client, ...TEXTS);
    await until(() => seen.length === MESSAGES);
    const messages = seen as Received[];
    for (const message of messages) message.release();
    assert.deepEqual(
      messages.map(({ bytes }) => textOf(bytes)),
      TEXTS,
    );
  });

  it('lend no more than there are buffers: the peer waits until one is released', async () => {
    const { client, seen } = await receiving({ lent: true }, (messages$) => messages$);
    await scene.send(client, ...TEXTS.slice(0, 10));
    await turns();
    assert.equal(seen.length, BUFFERS);
    (seen[2] as Received).release();
    await until(() => seen.length > BUFFERS);
    await turns();
    assert.equal(seen.length, BUFFERS + 1);
    const [first] = seen as Received[];
    assert.deepEqual(
      [first, seen.at(-1) as Received].map((message) => textOf(message!.bytes)),
      ['message 0', 'message 4'],
    );
  });

  it('post a buffer once, however often it is released, and show it no more', async () => {
    const { client, server, seen } = await receiving({ lent: true }, (messages$) => messages$);
    await scene.send(client, 'a', 'b');
    await until(() => seen.length === 2);
    const posted = (): number => server.query().attributes.maxRecvDtos - server.receivesFree;
    assert.equal(posted(), BUFFERS - 2);
    const message = seen[0] as Received;
    for (let i = 0; i < 3; i++) message.release();
    assert.equal(posted(), BUFFERS - 1);
    assert.throws(() => message.bytes, dat('DAT_INVALID_STATE'));
    {
      using other = seen[1] as Received;
      assert.equal(textOf(other.bytes), 'b');
    }
    assert.equal(posted(), BUFFERS);
  });

  it('leave what comes without a subscriber in the EVD, for the next', async () => {
    const pair = scene.pair();
    const messages$ = receives(pair.server, { buffers: BUFFERS }).pipe(
      map(({ bytes }) => textOf(bytes)),
    );
    const first = watch(messages$.pipe(take(2)));
    await scene.connect(pair);
    await scene.send(pair.client, 'a', 'b', 'c', 'd');
    await until(() => first.seen.length === 3);
    await turns();
    const { recvEvd } = pair.server.query();
    assert.deepEqual([first.seen, recvEvd.query().pending], [['a', 'b', 'complete'], 2]);
    const second = watch(messages$);
    await until(() => second.seen.length === 2);
    assert.deepEqual(second.seen, ['c', 'd']);
  });

  it('leave the rest in the EVD when an operator behind them throws', async () => {
    const pair = scene.pair();
    const wrong = new Error('the operator');
    const messages$ = receives(pair.server);
    const { seen } = watch(
      messages$.pipe(
        tap(() => {
          throw wrong;
        }),
      ),
    );
    await scene.connect(pair);
    await scene.send(pair.client, 'a', 'b');
    await until(() => seen.length > 0);
    assert.deepEqual(seen, [wrong]);
    assert.equal(textOf((await firstValueFrom(messages$)).bytes), 'b');
  });

  it('are one subscriber’s, and nothing else takes the completions meanwhile', async () => {
    const { server } = scene.pair();
    const messages$ = receives(server);
    const { subscription } = watch(messages$);
    for (const other$ of [messages$, receives(server), server.completions$]) {
      assert.deepEqual(watch<unknown>(other$).seen, ['DAT_INVALID_STATE']);
    }
    subscription.unsubscribe();
    server.completions$.subscribe();
    assert.deepEqual(watch(messages$).seen, ['DAT_INVALID_STATE']);
  });

  it('refuse an endpoint whose receives go elsewhere', () => {
    const recvEvd = scene.server.createEvd({ qlen: 8, streams: EvdFlags.DTO });
    const given = scene.endpoint(scene.server, { recvEvd });
    assert.deepEqual(watch(receives(given)).seen, ['DAT_INVALID_STATE']);
    const srq = scene.server.createSrq({ pz: scene.server.createPz(), maxRecvDtos: 4 });
    const shared = scene.endpoint(scene.server, { srq });
    assert.deepEqual(watch(receives(shared)).seen, ['DAT_INVALID_STATE']);
  });

  it('refuse what is none of theirs', () => {
    const { server } = scene.pair();
    const { maxRecvDtos } = server.attributes;
    const calls: readonly (() => unknown)[] = [
      () => receives(scene.server as unknown as Pair['server']),
      () => receives(server, { buffers: maxRecvDtos + 1 }),
      () => receives(server, { bufferBytes: 0 }),
      () => receives(server, { lent: 1 as unknown as boolean }),
      () => receives(server, { size: 1 } as ReceivesOptions),
    ];
    for (const call of calls) assert.throws(call, dat('DAT_INVALID_PARAMETER'));
  });

  it('say so when a message is longer than a buffer', async () => {
    const pair = scene.pair();
    const errors: DatError[] = [];
    receives(pair.server, { bufferBytes: 4 }).subscribe({
      error: (error: DatError) => errors.push(error),
    });
    await scene.connect(pair);
    await scene.send(pair.client, 'too long');
    await until(() => errors.length > 0);
    const [{ code, message, value }] = errors as [DatError];
    assert.equal(code, 'DAT_LENGTH_ERROR');
    assert.match(message, /RECEIVE .*LOCAL_LENGTH.*bufferBytes, 4/);
    assert.equal((value as DatEvent & { status: number }).status, DatDtoStatus.LOCAL_LENGTH);
  });

  it('show no bytes for an RDMA write that tells of itself, and its immediate', async () => {
    const { client, server, seen } = await receiving({}, (messages$) => messages$);
    const target = scene.server.allocate(64, { pz: server.pz, privileges: MemPrivileges.ALL });
    const source = scene.client.allocate(64, { pz: client.pz });
    const { address } = target;
    const rmrContext = target.rmrContext!;
    client.postRdmaWriteWithImmediate(source.segment(), 1, { address, rmrContext }, 0xbeef);
    await until(() => seen.length > 0);
    const [{ bytes, event }] = seen as [Received];
    assert.deepEqual([bytes.length, event.immediate], [0, 0xbeef]);
  });

  it('go on after a reset of the endpoint, with nothing of the life before', async () => {
    const pair = scene.pair();
    const messages$ = receives(pair.server, { buffers: BUFFERS, lent: true });
    for (let life = 0; life < 3; life++) {
      const texts: string[] = [];
      let isOver = false;
      messages$.subscribe({
        next: (message) => {
          texts.push(textOf(message.bytes));
          if (life !== 1) message.release();
        },
        complete: () => (isOver = true),
      });
      await scene.connect(pair);
      await scene.send(pair.client, `life ${life}`, 'again');
      await until(() => texts.length === 2);
      assert.deepEqual(texts, [`life ${life}`, 'again']);
      pair.client.disconnect();
      await until(() => isOver && pair.server.state === 'DISCONNECTED');
      await until(() => pair.client.state === 'DISCONNECTED');
      for (const ep of [pair.client, pair.server]) ep.reset();
    }
    // Two were never released.
    watch(messages$);
    const { maxRecvDtos } = pair.server.attributes;
    assert.equal(maxRecvDtos - pair.server.receivesFree, BUFFERS - 2);
  });

  it('complete when a reset takes the receives away', async () => {
    const pair = scene.pair();
    await scene.connect(pair);
    pair.client.disconnect();
    await until(() => pair.server.state === 'DISCONNECTED');
    const { seen } = watch(receives(pair.server));
    pair.server.reset();
    await until(() => seen.length > 0);
    assert.deepEqual(seen, ['complete']);
  });

  it('take their memory with the endpoint, also while messages are lent', async () => {
    const { client, server, seen } = await receiving({ lent: true }, (messages$) => messages$);
    await scene.send(client, 'kept');
    await until(() => seen.length > 0);
    const [message] = seen as [Received];
    server.free();
    await until(() => seen.length > 1);
    await turns();
    assert.deepEqual(seen.slice(1), ['complete']);
    assert.equal(textOf(message.bytes), 'kept');
    message.release();
    server.pz.free();
  });

  it('leave completions of requests to those that wait for them', async () => {
    const { client, server, seen } = await receiving({}, (messages$) => messages$);
    await scene.send(client, 'a');
    await until(() => seen.length === 1);
    const lmr = scene.server.allocate(64, { pz: server.pz });
    server.postSend(lmr.segment(0, 1), 5);
    const receiver = watch(receives(client));
    const completion = await firstValueFrom(completionOf(server, 5));
    assert.equal(completion.cookie, 5);
    await scene.send(client, 'b');
    await until(() => seen.length === 2 && receiver.seen.length === 1);
  });

  it('of 10,000 subscriptions leave one region and its receives', async () => {
    const { server } = scene.pair();
    const messages$ = receives(server, { buffers: BUFFERS });
    for (let i = 0; i < 10_000; i++) messages$.subscribe().unsubscribe();
    await turns(2);
    assert.equal(server.attributes.maxRecvDtos - server.receivesFree, BUFFERS);
    assert.equal(server.query().recvEvd.query().taker, 'none');
    server.free();
    await turns(2);
    server.pz.free();
  });
});
