import assert from 'node:assert/strict';
import type { SlotsMessage } from '../../providers/shared-address/messages.js';
import { type SlotsReport, SlotsSimulation } from './slots-simulation.js';

/** Runs, each with a kill at every message until no message is left to kill at. */
const SEEDS = [1, 2, 4, 6];
const FRESH_RUNS = 250;
const KINDS: readonly SlotsMessage['kind'][] = [
  'HELLO',
  'PLACE',
  'SLOT',
  'REFUSED',
  'PACKET',
  'GOODBYE',
];

async function killed(seed: number, killAt: number): Promise<SlotsReport> {
  try {
    return await new SlotsSimulation({ seed, killAt }).run();
  } catch (error) {
    throw new Error(`seed ${seed}, killed at message ${killAt}`, { cause: error });
  }
}

describe('simulator, processes that share an address (long)', function () {
  this.timeout(900_000);
  /** Runs in which something was killed, by the message that it was at. */
  const hits = new Map<string, number>();

  for (const seed of SEEDS) {
    it(`finds nothing at any message of seed ${seed}`, async () => {
      const { messages } = await new SlotsSimulation({ seed }).run();
      let kills = 0;
      for (let killAt = 1; killAt <= messages; killAt++) {
        const report = await killed(seed, killAt);
        kills += report.killed.length;
        const at = report.killedAt;
        if (at !== undefined) hits.set(at, (hits.get(at) ?? 0) + 1);
      }
      assert.ok(kills >= 50, `${kills} processes were killed`);
    });
  }

  it('has killed at every kind of message', () => {
    const shown = [...hits].map(([kind, runs]) => `${kind} ${runs}`).join(', ');
    for (const kind of KINDS) assert.ok((hits.get(kind) ?? 0) >= 2, `${kind}, of ${shown}`);
  });

  const fresh = Date.now() % 2 ** 32;
  it(`finds nothing with fresh seeds from ${fresh} on`, async () => {
    for (let i = 0; i < FRESH_RUNS; i++) await killed(fresh + i, 1 + ((i * 37) % 70));
  });
});
