/** An adversary on the path of live connections: what must survive does, and bugs planted show. */
import assert from 'node:assert/strict';
import {
  type AdversaryOptions,
  type AdversaryReport,
  AdversaryRun,
  commandOf,
} from './adversary-run.js';
import { EDITS } from './edits.js';
import { ADVERSARY_PLANTS } from './plants.js';

const PACKETS = 50_000;
const FRESH_PACKETS = 5_000;
/** A planted bug must show in one of so many runs. */
const PLANT_SEEDS = 6;
const PLANT_PACKETS = 4_000;

async function run(options: AdversaryOptions): Promise<AdversaryReport> {
  const adversary = new AdversaryRun(options);
  try {
    return await adversary.run();
  } catch (error) {
    const lines = [...adversary.trace.lines, `Repeat with: ${commandOf(options)}`];
    throw new Error(`${String(error)}\n${lines.join('\n')}`, { cause: error });
  }
}

/** What it must have done, and what must have come of it: else it has stopped trying something. */
const MARKS = [
  ...['changed', 'added', 'sent again', 'reflected', 'from another source', 'swapped'],
  ...['duplicated', 'delayed', 'dropped', 'withheld'],
  ...EDITS.map(({ name }) => `edit ${name}`),
  ...['RC', 'UC', 'UD', 'XRC'].map((type) => `${type} lives`),
  ...['CM DISCONNECTED', 'CM BROKEN', 'MADs answered'],
];

describe('adversary on the path', function () {
  this.timeout(240_000);

  it(`breaks what it touches at most, with ${PACKETS} packets`, async () => {
    const { forged, marks } = await run({ seed: 2, packets: PACKETS });
    assert.ok(forged >= PACKETS);
    assert.deepEqual(
      MARKS.filter((name) => (marks.get(name) ?? 0) === 0),
      [],
    );
  });

  const fresh = Date.now() % 2 ** 32;
  it(`does nothing else with the fresh seed ${fresh}`, async () => {
    await run({ seed: fresh, packets: FRESH_PACKETS });
  });

  it('does the same with the same seed, and something else with another', async () => {
    const hashes: string[] = [];
    for (const seed of [7, 7, 8]) hashes.push((await run({ seed, packets: 1000 })).hash);
    assert.equal(hashes[0], hashes[1]);
    assert.notEqual(hashes[0], hashes[2]);
  });

  for (const plant of Object.keys(ADVERSARY_PLANTS)) {
    it(`is let in by the planted bug "${plant}", and that shows`, async () => {
      for (let seed = 1; seed <= PLANT_SEEDS; seed++) {
        const options = { seed, packets: PLANT_PACKETS, plant };
        // The port refuses to place what reaches beyond a region: an exception, which is one, too.
        const end = await new AdversaryRun(options).run().catch((error: unknown) => error);
        if (end instanceof Error) return;
      }
      assert.fail(`${PLANT_SEEDS} seeds have not found it`);
    });
  }
});
