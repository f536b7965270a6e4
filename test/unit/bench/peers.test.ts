import assert from 'node:assert/strict';
import { buildWorktree } from '../../../bench/against/worktree.js';
import { type Workload, cell } from '../../../bench/compare/cells.js';
import { CONTENDERS, PEERS } from '../../../bench/compare/contender.js';
import { ROWS } from '../../../bench/compare/rows.js';
import { type Open, runBench } from '../../../bench/compare/run.js';
import { MissingPeer } from '../../../bench/peers/build.js';
import { networkOf } from '../../support/loopback.js';

const WORK: readonly (readonly [Workload, number])[] = [
  ['send', 65536],
  ['write', 65536],
  ['read', 65536],
  ['send', 64],
  ['ping', 8],
];

/** Of what the wall cannot do there is no cell. */
function worksOf(peer: string): typeof WORK {
  return peer === 'wall' ? WORK.filter(([work]) => work === 'send' || work === 'ping') : WORK;
}

async function measure(peer: string, network: string): Promise<number[]> {
  const pair = await CONTENDERS[peer]!.open(`${network}.1`, `${network}.2`);
  try {
    const values: number[] = [];
    for (const [work, bytes] of worksOf(peer)) {
      const { value, bytes: moved } = await pair.measure(cell(peer, work, bytes), 0.1);
      assert.ok(moved > 0, `${peer} ${work}`);
      values.push(value);
    }
    return values;
  } finally {
    pair.kill();
  }
}

describe('Peers of the benchmark in C', function () {
  this.timeout(120_000);

  for (const peer of PEERS.filter((name) => !name.startsWith('node-'))) {
    it(`${peer} is compiled and measures each workload, or says what to install`, async () => {
      try {
        const values = await measure(peer, networkOf(75));
        assert.equal(values.length, worksOf(peer).length);
        assert.ok(values.every((value) => value > 0 && Number.isFinite(value)));
      } catch (error) {
        if (!(error instanceof MissingPeer)) throw error;
        assert.match(error.message, /apt install (libfabric-dev|libucx-dev|build-essential)/);
      }
    });
  }

  it('goes on without a peer that is not installed, and names it', async () => {
    const open: Open = (contender, local, remote) => {
      if (contender === 'node-tcp') return Promise.reject(new MissingPeer('needs apt install x'));
      return CONTENDERS[contender]!.open(local, remote);
    };
    const skipped: string[] = [];
    const onSkipped = (...said: readonly string[]): void => void skipped.push(...said);
    const rows = ROWS.filter(({ label }) => label === '8 B half RTT, SEND, event');
    const options = { rounds: 1, seconds: 0.02, rows, network: networkOf(74), open, onSkipped };
    const [summary] = await runBench(options);
    assert.deepEqual(skipped, ['node-tcp', 'needs apt install x']);
    assert.equal(summary!.measurements.length, 1);
    assert.deepEqual(
      summary!.rivals.map(({ contender }) => contender),
      ['node-uds'],
    );
  });

  it('says that there is no such commit', () => {
    assert.throws(() => buildWorktree('no-such-commit'), /no-such-commit/);
  });
});
