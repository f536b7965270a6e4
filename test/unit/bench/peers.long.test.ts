import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { buildWorktree } from '../../../bench/against/worktree.js';
import { type Workload, cell } from '../../../bench/compare/cells.js';
import { CONTENDERS, PEERS } from '../../../bench/compare/contender.js';
import { matrix } from '../../../bench/compare/matrix.js';
import { table } from '../../../bench/compare/report.js';
import { ROWS } from '../../../bench/compare/rows.js';
import { type Open, runBench } from '../../../bench/compare/run.js';
import { MissingPeer, peerProgram } from '../../../bench/peers/build.js';
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

  it('libfabric leaves no name in shared memory, which a process to come could meet', async () => {
    const program = await peerProgram('fabric').catch((error: unknown) => {
      if (error instanceof MissingPeer) return undefined;
      throw error;
    });
    if (program === undefined) return;
    const here = networkOf(76);
    const work = ['send', '64', '4', '0.02', 'shm', '4'];
    const server = spawn(program, ['server', `${here}.1`, `${here}.2`, '0', ...work]);
    const [line] = (await once(server.stdout, 'data')) as [Buffer];
    const { port } = JSON.parse(line.toString()) as { port: number };
    const client = spawn(program, ['client', `${here}.2`, `${here}.1`, String(port), ...work]);
    const ends = [server, client].map((side) => once(side, 'exit'));
    assert.deepEqual(await Promise.all(ends), [
      [0, null],
      [0, null],
    ]);
    const own = new RegExp(`\\b(${server.pid}|${client.pid})\\b`);
    assert.deepEqual(
      readdirSync('/dev/shm').filter((name) => own.test(name)),
      [],
    );
  });

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

  it('goes on without a peer that cannot run, whose rows say why', async () => {
    const reasons: Readonly<Record<string, string>> = {
      'node-tcp': 'no port to be had',
      'node-uds': 'gone in the second round',
    };
    const open: Open = async (contender, local, remote) => {
      if (contender === 'node-tcp') throw new Error(reasons[contender]);
      const pair = await CONTENDERS[contender]!.open(local, remote);
      if (contender !== 'node-uds') return pair;
      let rounds = 0;
      return {
        measure: (each, seconds) => {
          if (rounds++ > 0) throw new Error(reasons[contender]);
          return pair.measure(each, seconds);
        },
        close: () => pair.close(),
        kill: () => pair.kill(),
      };
    };
    const failed: Record<string, string> = {};
    const onFailed = (contender: string, why: string): void => void (failed[contender] = why);
    const rows = ROWS.filter(({ label }) => label === '8 B half RTT, SEND, event');
    const options = { rounds: 2, seconds: 0.02, rows, network: networkOf(73), open };
    const summaries = await runBench({ ...options, onFailed });
    assert.deepEqual(failed, reasons);
    assert.equal(summaries[0]!.measurements.length, 2);
    const report = table(summaries);
    assert.match(report, /^ +Node TCP +none +could not run: no port to be had$/m);
    assert.match(report, /^ +Node Unix socket +none +could not run: gone in the second round$/m);
    assert.match(
      matrix(summaries),
      /\| could not run: no port to be had \| could not run: gone in the second round \|/,
    );
    await assert.rejects(runBench(options), /no port to be had/);
  });

  it('says that there is no such commit', () => {
    assert.throws(() => buildWorktree('no-such-commit'), /no-such-commit/);
  });
});
