import assert from 'node:assert/strict';
import { InvariantError } from '../../core/spi/checks/index.js';
import { DAT_PLANTS } from './dat-plants.js';
import { DatSimulation } from './dat-simulation.js';
import { commandOf, defaultOptions, type SimOptions } from './options.js';
import type { SimReport } from './simulation.js';
import { Violation } from './trace.js';

async function run(options: Partial<SimOptions>): Promise<SimReport> {
  const all = { ...defaultOptions, dat: true, ops: 3000, ...options };
  const simulation = new DatSimulation(all);
  try {
    return await simulation.run();
  } catch (error) {
    const lines = [...simulation.trace.lines, `Repeat with: ${commandOf(all)}`];
    throw new Error(`${String(error)}\n${lines.join('\n')}`, { cause: error });
  }
}

const MARKS = [
  'ESTABLISHED',
  'PEER_REJECTED',
  'DISCONNECTED',
  'BROKEN',
  'DTO SUCCESS',
  'DTO FLUSHED',
  'DTO REMOTE_ACCESS',
  'DTO TRANSPORT',
  'received',
  'received from an SRQ',
  'atomics',
  'windows bound',
  'windows unbound',
  'windows invalidated by the peer',
  'endpoints reset',
  'policies switched',
];

/** A planted bug must show in one of so many runs. */
const PLANT_SEEDS = 4;

describe('simulator, DAT API', () => {
  const marks = new Set<string>();

  for (const seed of [3, 4, 5]) {
    it(`finds nothing with seed ${seed}`, async () => {
      for (const name of (await run({ seed })).marks.keys()) marks.add(name);
    });
  }

  const fresh = Date.now() % 2 ** 32;
  it(`finds nothing with the fresh seed ${fresh}`, async () => {
    await run({ seed: fresh });
  });

  it('has seen every kind of end', () => {
    assert.deepEqual(
      MARKS.filter((name) => !marks.has(name)),
      [],
    );
  });

  it('does the same with the same seed', async () => {
    const [one, again] = [await run({ seed: 9, ops: 1000 }), await run({ seed: 9, ops: 1000 })];
    assert.equal(one.hash, again.hash);
  });

  for (const plant of Object.keys(DAT_PLANTS)) {
    it(`catches the planted bug "${plant}"`, async () => {
      for (let seed = 1; seed <= PLANT_SEEDS; seed++) {
        const options = { ...defaultOptions, dat: true, seed, ops: 1000, plant };
        const caught = await new DatSimulation(options).run().catch((error: unknown) => error);
        // An invariant of the program may notice it before the simulation does.
        if (caught instanceof Violation || caught instanceof InvariantError) return;
        assert.ok(!(caught instanceof Error), String(caught));
      }
      assert.fail(`${PLANT_SEEDS} seeds have not found it`);
    });
  }
});
