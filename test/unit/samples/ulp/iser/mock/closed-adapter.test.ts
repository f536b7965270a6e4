// The adapter under a target, or under an initiator, is closed at any moment of a session, and of
// its end: whatever the objects above it still have to do then is no error of the process.
import assert from 'node:assert/strict';

import { type Ia, openIa } from 'dapl';
import { Fabric, mock } from 'dapl/providers/mock';
import {
  type Disk,
  IscsiTarget,
  MemoryBackend,
  openDisk,
} from '../../../../../../samples/ulp/iser/index.js';
import { unhandledErrors } from '../../../../../support/unhandled-errors.js';

const ADDRESS = '192.0.2.1';
const NAME = 'iqn.2026-01.io.test:closed';
/** Microtasks from the beginning of the end to the close of an adapter. */
const STEPS = [0, 1, 3, 8, 21];

interface Scene {
  readonly there: Ia;
  readonly here: Ia;
  readonly target: IscsiTarget;
  readonly disk: Disk;
}

async function sceneOf(): Promise<Scene> {
  const fabric = new Fabric({ seed: 1, autoRun: true });
  const there = await openIa(mock({ fabric, address: ADDRESS }));
  const here = await openIa(mock({ fabric, address: '192.0.2.2' }));
  const luns = new Map([[0, new MemoryBackend({ sizeBytes: 1 << 16 })]]);
  const target = new IscsiTarget({ name: NAME, luns, memoryBytes: 1 << 20 });
  target.listenIser(there, 3260);
  const disk = await openDisk({ target: NAME, address: ADDRESS, ia: here });
  return { there, here, target, disk };
}

const ENDS: Readonly<Record<string, (scene: Scene) => Promise<unknown> | undefined>> = {
  'in a session': () => undefined,
  'while the disk closes': ({ disk }) => disk.close(),
  'while the target closes': ({ target }) => target.close(0),
  'while blocks are read': ({ disk }) => disk.read(0n, new Uint8Array(4096)),
};

for (const [when, begin] of Object.entries(ENDS)) {
  for (const side of ['there', 'here', 'both'] as const) {
    it(`iser: the adapter is closed ${when} (${side})`, async () => {
      for (const steps of STEPS) {
        const errors = await unhandledErrors(async () => {
          const scene = await sceneOf();
          const { there, here, disk, target } = scene;
          const done = Promise.resolve(begin(scene)).catch(() => undefined);
          for (let i = 0; i < steps; i++) await Promise.resolve();
          const closed = side === 'both' ? [there, here] : [scene[side]];
          await Promise.all(closed.map((ia) => ia.close('abrupt')));
          await Promise.all([done, disk.close().catch(() => undefined), target.close(0)]);
          await Promise.all([there, here].map((ia) => ia.close('abrupt')));
        });
        assert.deepEqual(errors, [], `after ${steps} steps`);
      }
    });
  }
}
