// The adapter beneath streams of rsockets, or a listener, is closed at any moment of their end.
import assert from 'node:assert/strict';
import { unhandledErrors } from '../../../../support/unhandled-errors.js';
import { counted, listening, type Pair, pairOf, worldOf } from './stream-scene.js';
import { rsocket } from '../../../../../samples/ulp/rsocket/index.js';

/** Microtasks from the beginning of the end to the close of the adapters. */
const STEPS = [0, 1, 2, 3, 5, 8, 13];

const ENDS: Readonly<Record<string, (pair: Pair) => Promise<unknown>>> = {
  'one side shuts down': ({ near }) => near.shutdown(),
  'a stream is closed': async ({ near }) => near.stream.close(),
  'both are closed': async ({ near, far }) => {
    near.stream.close();
    far.stream.close();
  },
  'one writes': ({ near }) => near.write(counted(0, 5000)),
};

describe('rsocket: an adapter that is closed', () => {
  for (const [when, begin] of Object.entries(ENDS)) {
    it(`leaves nothing unhandled while ${when}`, async () => {
      for (const steps of STEPS) {
        const pair = await pairOf();
        // The listener tells of the adapter's end.
        await pair.listener.close();
        const errors = await unhandledErrors(async () => {
          const done = begin(pair).catch(() => undefined);
          for (let i = 0; i < steps; i++) await Promise.resolve();
          await Promise.all([pair.client, pair.server].map((ia) => ia.close('abrupt')));
          await done;
        });
        assert.deepEqual(errors, [], `after ${steps} steps`);
      }
    });
  }

  it('ends its listener, which tells', async () => {
    const world = await worldOf();
    const told: string[] = [];
    await listening(rsocket(world.server, { after: world.after }), () => undefined, {
      onError: ({ code }) => void told.push(code),
    });
    assert.deepEqual(await unhandledErrors(() => world.server.close('abrupt')), []);
    assert.deepEqual(told, ['ECONNABORTED']);
    await world.client.close();
  });
});
