// A consumer that posts receives again out of their own flush: legal, endless, and warned of.
import assert from 'node:assert/strict';
import { type DatEvent, type Evd, openIa } from 'dapl';
import { type Logger, silentLogger } from 'dapl/spi';
import { softroce } from 'dapl/providers/softroce';
import { connected, type Peer } from '../../../plugins/testing/suite/peer.js';
import { loopback } from '../../support/loopback.js';
import { patience } from '../../support/patience.js';

const RECEIVES = 64;
/** Then the consumer stops. A machine does about a million a second. */
const COMPLETIONS = 200_000;
const TICK_MS = 2;

/** How events are taken until `take` says that it has seen enough. */
type Way = (evd: Evd, take: (event: DatEvent) => boolean) => Promise<void>;

const upcalls =
  (policy: 'ONE' | 'MANY'): Way =>
  async (evd, take) => {
    await new Promise<void>((resolve) => {
      evd.modifyUpcall(policy, (event) => {
        if (!take(event)) resolve();
      });
    });
    await evd.modifyUpcall('TEARDOWN');
  };

const WAYS: Readonly<Record<string, Way>> = {
  'upcalls, ONE': upcalls('ONE'),
  'upcalls, MANY': upcalls('MANY'),
  'upcalls, NOTIFY': async (evd, take) => {
    await new Promise<void>((resolve) => {
      evd.modifyUpcall('NOTIFY', () => {
        // All of them would never end: each makes the next one.
        for (let left = RECEIVES; left > 0; left--) {
          const event = evd.dequeue();
          if (event === undefined) return;
          if (!take(event)) return resolve();
        }
      });
    });
    await evd.modifyUpcall('TEARDOWN');
  },
  iteration: async (evd, take) => {
    for await (const batch of evd) {
      for (const event of batch) if (!take(event)) return;
    }
  },
  wait: async (evd, take) => {
    for (;;) if (!take((await evd.wait()).event)) return;
  },
  events$: async (evd, take) => {
    await new Promise<void>((resolve) => {
      const subscription = evd.events$.subscribe((event) => {
        if (take(event)) return;
        subscription.unsubscribe();
        resolve();
      });
    });
  },
};

/** How late timers were meanwhile, in ms, the least late first. */
async function latenessDuring(run: () => Promise<void>): Promise<number[]> {
  const late: number[] = [];
  let before = performance.now();
  const timer = setInterval(() => {
    const now = performance.now();
    late.push(now - before - TICK_MS);
    before = now;
  }, TICK_MS);
  try {
    await run();
  } finally {
    clearInterval(timer);
  }
  late.push(performance.now() - before);
  return late.sort((a, b) => a - b);
}

/** Until so many have come. */
function postingAgain({ ep, lmr }: Peer): {
  take: (event: DatEvent) => boolean;
  seen: () => number;
} {
  let seen = 0;
  const take = (event: DatEvent): boolean => {
    if (event.type !== 'dto') return true;
    seen++;
    if (seen < COMPLETIONS) ep.postRecv(lmr.segment(), 1);
    return seen < COMPLETIONS;
  };
  return { take, seen: () => seen };
}

describe('Receives that are posted again when they are flushed', () => {
  for (const [name, way] of Object.entries(WAYS)) {
    it(`leave timers their turns, and are warned of once: ${name}`, async () => {
      const warnings: string[] = [];
      const logger: Logger = {
        ...silentLogger,
        warn: (message) => void warnings.push(message),
        child: () => logger,
      };
      const active = await openIa(softroce({ addresses: [loopback(2, 91)] }), { logger });
      const passive = await openIa(softroce({ addresses: [loopback(2, 92)] }));
      const close = async (): Promise<void> => {
        await Promise.all([active.close('abrupt'), passive.close('abrupt')]);
      };
      const pair = { active, passive, passiveAddress: passive.address, close };
      try {
        const peers = await connected(pair, { attributes: { maxRecvDtos: RECEIVES } });
        const { ep, evd, lmr } = peers.active;
        for (let i = 0; i < RECEIVES; i++) ep.postRecv(lmr.segment(), 1);
        const { take, seen } = postingAgain(peers.active);
        ep.disconnect('abrupt');
        const late = await latenessDuring(() => way(evd, take));
        assert.ok(seen() >= COMPLETIONS);
        assert.ok(late.length >= 5, `timers had ${late.length} turns`);
        assert.ok(late[late.length >> 1]! < patience(20), `timers were ${late.join(', ')} ms late`);
        assert.equal(warnings.length, 1, warnings.join('\n'));
      } finally {
        await close();
      }
    }).timeout(20_000);
  }
});
