import assert from 'node:assert/strict';
import { Lmr } from '../../core/index.js';
import { type CycleReport, CycleSimulation } from './cycle-simulation.js';

const CYCLES = 10_000;
/** What a leak of 500 bytes a connection would come to. */
const FLAT_BYTES = 4.5e6;

async function run(seed: number, cycles: number): Promise<CycleReport> {
  const simulation = new CycleSimulation({ seed, cycles });
  try {
    return await simulation.run();
  } catch (error) {
    const repeat = `Repeat with: npm run sim -- --seed ${seed} --cycles ${cycles}`;
    const lines = [...simulation.trace.lines, repeat];
    throw new Error(`${String(error)}\n${lines.join('\n')}`, { cause: error });
  }
}

describe('simulator, cycles', function () {
  this.timeout(400_000);

  it(`connects, transfers and disconnects ${CYCLES} times over bad MADs`, async function () {
    const report = await run(2, CYCLES);
    const { cycles, established, transfers, mads, heldEarlyBytes, heldLateBytes } = report;
    assert.equal(cycles, CYCLES);
    assert.ok(established >= CYCLES * 0.99, `${established} established`);
    assert.equal(transfers, CYCLES / 50);
    for (const kind of ['lost', 'repeated', 'delayed'] as const) assert.ok(mads[kind] > 1000, kind);
    assert.ok(heldLateBytes - heldEarlyBytes < FLAT_BYTES, `${heldEarlyBytes}, ${heldLateBytes}`);
    const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;
    const heap = `${megabytes(heldEarlyBytes)} held early, ${megabytes(heldLateBytes)} late`;
    if (this.test) this.test.title += `: ${JSON.stringify(mads)}, ${heap}`;
  });

  const fresh = Date.now() % 2 ** 32;
  it(`finds nothing with the fresh seed ${fresh}`, async () => {
    await run(fresh, 500);
  });

  it('does the same with the same seed', async () => {
    const [one, again] = [await run(5, 100), await run(5, 100)];
    assert.equal(one.hash, again.hash);
  });

  it('notices what a connection leaves behind', async () => {
    // eslint-disable-next-line @typescript-eslint/unbound-method -- put back as it was
    const { free } = Lmr.prototype;
    let left = 3;
    Lmr.prototype.free = function (this: Lmr) {
      if (--left !== 0) free.call(this);
    };
    try {
      await assert.rejects(run(6, 50), /1 objects belong to protection zone/);
    } finally {
      Lmr.prototype.free = free;
    }
  });
});
