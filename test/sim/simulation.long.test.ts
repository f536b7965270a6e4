import assert from 'node:assert/strict';
import { InvariantError } from '../../core/spi/checks/index.js';
import { commandOf, defaultOptions, type SimOptions } from './options.js';
import { PLANTS } from './plants.js';
import { type SimReport, Simulation } from './simulation.js';
import { Violation } from './trace.js';

const OPS = 4000;
/** A planted bug must show in one of so many runs. */
const PLANT_SEEDS = 4;

async function run(options: Partial<SimOptions>): Promise<SimReport> {
  const all = { ...defaultOptions, ops: OPS, ...options };
  const simulation = new Simulation(all);
  try {
    return await simulation.run();
  } catch (error) {
    const lines = [...simulation.trace.lines, `Repeat with: ${commandOf(all)}`];
    throw new Error(`${String(error)}\n${lines.join('\n')}`, { cause: error });
  }
}

/**
 * What every machine sees with the fixed seeds: else the simulator has stopped trying something.
 */
const MARKS = [
  'SUCCESS',
  'WR_FLUSH_ERR',
  'LOC_PROT_ERR',
  'LOC_LEN_ERR',
  'REM_INV_REQ_ERR',
  'REM_ACCESS_ERR',
  'RETRY_EXC_ERR',
  'RNR_RETRY_EXC_ERR',
  'MW_BIND_ERR',
  'limits told',
  'keys invalidated',
  'UC messages received',
  'UC messages lost',
  'XRC requests',
  'XRC messages',
  'XRC QP_REQ_ERR',
  'XRC QP_ACCESS_ERR',
  'badIcrc',
  'timeouts',
  'retries',
  'rnrNaksReceived',
  'naksReceived',
  'drop duplicate',
  'drop sequenceGap',
  'drop staleResponse',
  'drop missingResponse',
  'drop unknownQpn',
];

describe('simulator', () => {
  const marks = new Map<string, number>();
  const note = (report: SimReport): void => {
    for (const [name, count] of report.marks) marks.set(name, (marks.get(name) ?? 0) + count);
  };

  // Each of the marks is seen by three of them at least, so that one may change its course.
  for (const seed of [2, 21, 38, 42, 54]) {
    it(`finds nothing with seed ${seed}`, async () => note(await run({ seed })));
  }

  const fresh = Date.now() % 2 ** 32;
  for (const seed of [fresh, fresh + 1, fresh + 2]) {
    it(`finds nothing with the fresh seed ${seed}`, async () => {
      await run({ seed });
    });
  }

  for (const seed of [3, 17, fresh]) {
    it(`finds nothing with seed ${seed} and faults of the ports`, async () => {
      const report = await run({ seed, ports: true });
      if (seed === fresh) return;
      for (const kind of ['refuse', 'own-mtu', 'path-mtu', 'icmp port-unreachable']) {
        assert.ok(report.marks.get(kind), `no ${kind}`);
      }
    });
  }

  it('loses no request by forged ICMP alone', async () => {
    const report = await run({ seed: 5, quiet: true, ports: true });
    assert.ok(report.marks.get('icmp port-unreachable'));
    assert.equal(report.marks.get('RETRY_EXC_ERR') ?? 0, 0);
  });

  it('has seen every kind of end and every kind of trouble', () => {
    const unseen = MARKS.filter((name) => (marks.get(name) ?? 0) === 0);
    assert.deepEqual(unseen, []);
  });

  it('does the same with the same seed, and something else with another', async () => {
    const reports = [await run({ seed: 7 }), await run({ seed: 7 }), await run({ seed: 8 })];
    const [one, again, other] = reports.map(({ hash }) => hash);
    assert.equal(one, again);
    assert.notEqual(one, other);
  });

  it('needs no retry on a network without faults', async () => {
    const report = await run({ seed: 5, quiet: true });
    const { lost, corrupted, partitioned } = report.fabric;
    assert.deepEqual([lost, corrupted, partitioned], [0, 0, 0]);
    assert.equal(report.marks.get('timeouts'), 0);
    assert.equal(report.marks.get('RETRY_EXC_ERR') ?? 0, 0);
  });

  it('holds out against steady loss, duplication, reordering and corruption', async () => {
    await run({ seed: 6, loss: 3, duplicate: 3, reorder: 5, corrupt: 1 });
  });

  for (const plant of Object.keys(PLANTS)) {
    it(`catches the planted bug "${plant}"`, async () => {
      for (let seed = 1; seed <= PLANT_SEEDS; seed++) {
        const simulation = new Simulation({ ...defaultOptions, ops: OPS, seed, plant });
        const caught = await simulation.run().catch((error: unknown) => error);
        // An invariant of the program may notice it before the simulation does.
        if (caught instanceof Violation || caught instanceof InvariantError) return;
        assert.ok(!(caught instanceof Error), String(caught));
      }
      assert.fail(`${PLANT_SEEDS} seeds have not found it`);
    });
  }
});
