// The adapter beneath a connection, a listener or datagrams is closed at any moment of their end:
// whatever is left to do then is no unhandled error.
import assert from 'node:assert/strict';
import { datagrams } from '../../../core/flow/index.js';
import { flowPair, type FlowPair } from '../../support/flow-scene.js';
import { unhandledErrors } from '../../support/unhandled-errors.js';

/** Microtasks from the beginning of the end to the close of the adapters. */
const STEPS = [0, 1, 2, 3, 5, 8, 13];

const ENDS: Readonly<Record<string, (pair: FlowPair) => Promise<unknown>>> = {
  'a connection closes': ({ near }) => near.close(),
  'a connection is cut': ({ near }) => near.close({ timeoutMs: 0 }),
  'both sides close': ({ near, far }) => Promise.all([near.close(), far.close()]),
  'a listener closes': ({ listener }) => listener.close(),
  'a listener lives, whose service point its consumer has freed': async ({ listener }) =>
    listener.psp.free(),
  'datagrams close': async ({ client }) => (await datagrams(client)).close(),
};

describe('flow: an adapter that is closed', () => {
  for (const [when, begin] of Object.entries(ENDS)) {
    it(`leaves nothing unhandled while ${when}`, async () => {
      for (const steps of STEPS) {
        const pair = await flowPair();
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
});
