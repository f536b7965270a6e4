// Connections by seed, over loss, cut links and deaths at any step; and planted bugs that it finds.
import assert from 'node:assert/strict';
import { ConnectionMemory } from '../../../../../samples/ulp/rsocket/transport/memory.js';
import { Link } from '../../../../../samples/ulp/rsocket/transport/link.js';
import { PendingWrite } from '../../../../../samples/ulp/rsocket/transport/pending-write.js';
import { StagingRing } from '../../../../../samples/ulp/rsocket/transport/staging-ring.js';
import { ReceiveWindow } from '../../../../../samples/ulp/rsocket/session/receive-window.js';
import { Session } from '../../../../../samples/ulp/rsocket/session/index.js';
import { planted } from './planted.js';
import { simulate } from './simulation.js';

const SEEDS = 40;

const PLANTS: Readonly<Record<string, () => () => void>> = {
  'halves are given too early': () =>
    planted(
      ReceiveWindow.prototype,
      'receiveData',
      (whole) =>
        function (this: ReceiveWindow, bytes) {
          whole.call(this, bytes);
          this['freeBytes'] += bytes;
          this['grantedBytes'] += bytes;
        },
    ),
  'credits are never given': () =>
    planted(
      ReceiveWindow.prototype,
      'giveCredits',
      (whole) =>
        function (this: ReceiveWindow) {
          whole.call(this);
          return this.credits;
        },
    ),
  'an end overtakes what was written': () =>
    planted(
      Session.prototype,
      'shutdown',
      (whole) =>
        function (this: Session) {
          whole.call(this);
          this['ending'] = 'DISCONNECT';
        },
    ),
  'parts of the ring come back too early': () =>
    planted(
      StagingRing.prototype,
      'take',
      (whole) =>
        function (this: StagingRing, bytes) {
          const segments = whole.call(this, bytes);
          this['usedBytes'] = 0;
          return segments;
        },
    ),
  'what passes the end of the ring is copied to its beginning alone': () =>
    planted(
      StagingRing.prototype,
      'copy',
      (whole) =>
        function (this: StagingRing, bytes, offset) {
          const room = this['sizeBytes'] - ((this['at'] + offset) % this['sizeBytes']);
          whole.call(this, bytes.subarray(0, Math.min(bytes.length, room)), offset);
        },
    ),
  'a write ends twice': () =>
    planted(
      PendingWrite.prototype,
      'end',
      (whole) =>
        function (this: PendingWrite, error) {
          whole.call(this, error);
          if (error !== undefined) this['done'](error);
        },
    ),
  'receives are not posted again': () =>
    planted(
      Link.prototype,
      'onCompletion' as never,
      (whole: (this: Link, at: number) => void) =>
        function (this: Link, at: number) {
          whole.call(this, at);
          if (this['spent'] > 0) this['spent']--;
        } as never,
    ),
  'memory is not given back': () =>
    planted(ConnectionMemory.prototype, 'free', () => () => undefined),
};

describe('rsocket: simulation', () => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    it(`seed ${seed}`, async () => {
      assert.deepEqual((await simulate(seed)).faults, []);
    });
  }

  for (const [name, plant] of Object.entries(PLANTS)) {
    it(`finds: ${name}`, async () => {
      const restore = plant();
      try {
        for (let seed = 1; seed <= SEEDS; seed++) {
          const found = await simulate(seed).then(
            ({ faults }) => faults.length > 0,
            () => true,
          );
          if (found) return;
        }
        assert.fail('no seed has found it');
      } finally {
        restore();
      }
    });
  }
});
