/** The table of streams in docs/evd.md: each row is here, and does what its cells say. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { config, map, type Observable, take } from 'rxjs';
import { EvdFlags } from '../../../core/index.js';
import {
  accepting,
  completionOf,
  connected,
  receives,
  states,
  upcalls,
} from '../../../core/rx/index.js';
import { Scene, SERVER, turns, until, watch } from './scene.js';

/** A stream, and what makes it emit. */
interface Source {
  readonly stream: () => Observable<unknown>;
  /** One thing more for it to emit. */
  readonly produce: () => unknown;
  /** What it belongs to goes. */
  readonly end: () => unknown;
}

interface Row {
  readonly subscribers: 'one' | 'any number';
  /** What a late subscriber gets of three things that have been produced. */
  readonly late: number;
  /** What one that leaves after the first leaves for the next. */
  readonly left: number;
  /** What a present subscriber gets of them, if it is not as much as a late one. */
  readonly thrown?: number;
  /** The last that it does. */
  readonly last: string;
  readonly source: (scene: Scene) => Source | Promise<Source>;
}

const handler = (event: unknown): unknown => event;

async function pairOf(scene: Scene): Promise<ReturnType<Scene['pair']>> {
  const pair = scene.pair();
  await scene.connect(pair);
  return pair;
}

function softwareEvd(scene: Scene): ReturnType<Scene['client']['createEvd']> {
  return scene.client.createEvd({ qlen: 8, streams: EvdFlags.SOFTWARE });
}

/** Requests for connections. */
function requests(
  scene: Scene,
  through: (psp: ReturnType<Scene['listen']>) => Source['stream'],
): Source {
  const psp = scene.listen();
  return {
    stream: through(psp),
    produce: async (): Promise<void> => {
      const ep = scene.endpoint(scene.client);
      ep.connect({ address: SERVER, connQual: psp.connQual });
      const before = psp.evd.query().pending;
      if (psp.evd.query().taker === 'none') await until(() => psp.evd.query().pending > before);
    },
    end: () => psp.free(),
  };
}

/** Changes of state: what comes before the first is the present one. */
async function changes(scene: Scene, through: typeof states): Promise<Source> {
  const { client } = await pairOf(scene);
  return { stream: () => through(client), produce: () => undefined, end: () => client.free() };
}

const ROWS: Readonly<Record<string, Row>> = {
  'evd.events$': {
    ...{ subscribers: 'one', late: 3, left: 2, last: 'complete' },
    source: (scene) => {
      const evd = softwareEvd(scene);
      return { stream: () => evd.events$, produce: () => evd.postSe(1), end: () => evd.free() };
    },
  },
  'ia.async$': {
    ...{ subscribers: 'one', late: 3, left: 2, last: 'complete' },
    source: (scene) => ({
      stream: () => scene.client.async$,
      produce: async () => {
        const evd = softwareEvd(scene);
        scene.client.asyncEvd.feed.post({
          type: 'async-error',
          number: 0x8005,
          object: evd,
          reason: 1,
          message: 'planted',
        });
      },
      end: () => scene.client.close(),
    }),
  },
  'psp.requests$': {
    ...{ subscribers: 'one', late: 3, left: 2, last: 'complete' },
    source: (scene) => requests(scene, (psp) => () => psp.requests$),
  },
  'ep.connection$': {
    // ESTABLISHED is one of them, and DISCONNECTED the other.
    ...{ subscribers: 'one', late: 2, left: 1, last: 'complete' },
    source: async (scene) => {
      const { client } = await pairOf(scene);
      return {
        stream: () => client.connection$,
        produce: async () => {
          client.disconnect();
          await until(() => client.state === 'DISCONNECTED');
        },
        end: () => client.free(),
      };
    },
  },
  'ep.completions$': {
    ...{ subscribers: 'one', late: 3, left: 2, last: 'complete' },
    source: async (scene) => {
      const { client, server } = await pairOf(scene);
      watch(receives(server));
      return {
        stream: () => client.completions$,
        produce: () => scene.send(client, 'a'),
        end: () => client.free(),
      };
    },
  },
  'cno.notifications$': {
    // Notifications fold into one trigger.
    ...{ subscribers: 'one', late: 1, left: 0, last: 'complete', thrown: 3 },
    source: (scene) => {
      const cno = scene.client.createCno();
      return {
        stream: () => cno.notifications$,
        produce: () => cno.trigger(),
        end: () => cno.free(),
      };
    },
  },
  'ep.state$': {
    ...{ subscribers: 'any number', late: 1, left: 1, last: 'complete' },
    source: (scene) => changes(scene, (ep) => ep.state$),
  },
  'upcalls(evd, ...)': {
    ...{ subscribers: 'one', late: 3, left: 2, last: 'complete' },
    source: (scene) => {
      const evd = softwareEvd(scene);
      return {
        stream: () => upcalls(evd, { policy: 'ONE' }, handler),
        produce: () => evd.postSe(1),
        end: () => evd.free(),
      };
    },
  },
  'accepting(psp, ...)': {
    ...{ subscribers: 'one', late: 3, left: 2, last: 'complete' },
    source: (scene) => {
      const endpoint = { pz: scene.server.createPz() };
      return requests(scene, (psp) => () => accepting(psp, { endpoint, limit: 1 }));
    },
  },
  'receives(ep)': {
    ...{ subscribers: 'one', late: 3, left: 2, last: 'complete' },
    source: async (scene) => {
      const { client, server } = await pairOf(scene);
      const messages$ = receives(server);
      // The first subscription posts the receives.
      messages$.subscribe().unsubscribe();
      return {
        stream: () => messages$,
        produce: () => scene.send(client, 'a'),
        end: () => client.disconnect(),
      };
    },
  },
  'completionOf(ep, cookie)': {
    ...{ subscribers: 'any number', late: 1, left: 1, last: 'DAT_ABORT' },
    source: async (scene) => {
      const { client, server } = await pairOf(scene);
      watch(receives(server));
      return {
        stream: () => completionOf(client, 1000),
        produce: () => scene.send(client, 'a'),
        end: () => client.free(),
      };
    },
  },
  'connected(ep)': {
    ...{ subscribers: 'any number', late: 1, left: 1, last: 'DAT_INVALID_STATE' },
    source: async (scene) => {
      const { client } = await pairOf(scene);
      return {
        stream: () => connected(client),
        produce: () => undefined,
        end: async () => {
          client.disconnect();
          await until(() => client.state === 'DISCONNECTED');
        },
      };
    },
  },
  'states(ep)': {
    ...{ subscribers: 'any number', late: 1, left: 1, last: 'complete' },
    source: (scene) => changes(scene, states),
  },
};

/** What it has emitted, without its end. */
const emitted = (seen: readonly unknown[]): number =>
  seen.filter((each) => typeof each !== 'string' || /^[A-Z]+$/.test(each)).length;

describe('rx: the table of streams', () => {
  const page = readFileSync(join(import.meta.dirname, '../../../../docs/evd.md'), 'utf8');
  const [, section = ''] = page.split('## Streams and their subscribers\n');
  const table = new Map(
    (section.split('\n## ')[0] ?? '')
      .split('\n')
      .filter((line) => line.startsWith('| `'))
      .map((line) => line.split('|').map((cell) => cell.trim()))
      .map(([, name = '', ...cells]) => [name.replaceAll('`', ''), cells]),
  );

  it('has each of these rows, and says how many may subscribe', () => {
    assert.deepEqual([...table.keys()].sort(), Object.keys(ROWS).sort());
    for (const [name, { subscribers }] of Object.entries(ROWS)) {
      assert.equal(table.get(name)?.[0], subscribers, name);
      assert.match(table.get(name)?.[3] ?? '', /^completes with the /);
    }
  });

  for (const [name, row] of Object.entries(ROWS)) {
    describe(name, () => {
      let scene: Scene;
      let source: Source;
      beforeEach(async () => {
        scene = await Scene.open();
        source = await row.source(scene);
      });
      afterEach(async () => scene.close());

      const produce = async (count: number): Promise<void> => {
        for (let i = 0; i < count; i++) await source.produce();
        await turns(5);
      };
      /** How often it can be made to emit. */
      const most = name === 'ep.connection$' ? 1 : 3;

      it('is cold: it takes nothing unsubscribed, and a late one gets what waits', async () => {
        await produce(most);
        const { seen } = watch(source.stream());
        await until(() => emitted(seen) >= row.late);
        await turns(5);
        assert.equal(emitted(seen), row.late);
      });

      it(`has ${row.subscribers} at a time`, async () => {
        const first = watch(source.stream());
        const second = watch(source.stream());
        assert.equal(second.seen.includes('DAT_INVALID_STATE'), row.subscribers === 'one');
        await produce(most);
        await until(() => emitted(first.seen) > 0);
      });

      it('leaves the rest to the next, whether it leaves or an operator throws', async () => {
        for (const isThrown of [false, true]) {
          if (isThrown && most === 1) break;
          await produce(most);
          const wrong = new Error('the operator');
          const first$ = source.stream().pipe(
            map((value) => {
              if (isThrown) throw wrong;
              return value;
            }),
            take(1),
          );
          const first = watch(first$);
          await until(() => first.seen.length > 0);
          await turns(5);
          assert.equal(first.seen.includes(wrong), isThrown);
          const next = watch(source.stream());
          await until(() => emitted(next.seen) >= row.left);
          await turns(5);
          assert.equal(emitted(next.seen), row.left);
          next.subscription.unsubscribe();
        }
      });

      it('goes on when a subscriber throws; that is an unhandled error', async () => {
        const unhandled: unknown[] = [];
        const { onUnhandledError } = config;
        config.onUnhandledError = (error) => unhandled.push(error);
        try {
          const wrong = new Error('the subscriber');
          let calls = 0;
          const subscription = source.stream().subscribe({
            next: () => {
              calls++;
              throw wrong;
            },
            // What else it may end with is no matter of the subscriber's.
            error: () => undefined,
          });
          await produce(most);
          await until(() => calls >= (row.thrown ?? row.late) && unhandled.length === calls);
          assert.equal(calls, row.thrown ?? row.late);
          subscription.unsubscribe();
          assert.deepEqual([...new Set(unhandled)], [wrong]);
        } finally {
          config.onUnhandledError = onUnhandledError;
        }
      });

      it(`ends with ${row.last} when what it belongs to ends`, async () => {
        const stream$ = source.stream();
        const early = row.subscribers === 'one' || name !== 'connected(ep)';
        const before = early ? watch(stream$) : undefined;
        await source.end();
        const { seen } = before ?? watch(stream$);
        await until(() => seen.includes(row.last));
        assert.equal(seen.at(-1), row.last);
      });
    });
  }
});
