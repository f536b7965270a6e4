import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { type Measurement, ROWS } from '../../../bench/compare/cells.js';
import { median, summarize, table } from '../../../bench/compare/report.js';
import { runBench } from '../../../bench/main.js';

const NETWORK = '127.0.77';

function rowsOf(...labels: readonly string[]): typeof ROWS {
  return ROWS.filter(({ label }) => labels.includes(label));
}

describe('Benchmark against Node TCP', function () {
  this.timeout(60_000);

  it('measures each workload on each transport, both sides, and ends its processes', async () => {
    const rows = rowsOf(
      '64 KiB RDMA WRITE',
      '64 KiB SEND',
      '1 MiB RDMA WRITE, dgram port',
      '8 B half RTT, event',
      '64 B SEND, 64 in flight',
    );
    assert.equal(rows.length, 5);
    const rounds: number[] = [];
    const onRound = (round: number): void => void rounds.push(round);
    const summaries = await runBench({ rounds: 1, seconds: 0.02, rows, network: NETWORK, onRound });
    assert.deepEqual(rounds, [0, 1]);
    assert.deepEqual(
      summaries.map(({ label }) => label),
      rows.map(({ label }) => label),
    );
    for (const { label, unit, ours, peer, ratios } of summaries) {
      for (const measurements of [ours, peer]) {
        assert.equal(measurements.length, 1, label);
        const [{ value, bytes, cpuSeconds, p99 }] = measurements as [(typeof ours)[number]];
        assert.ok(value > 0 && Number.isFinite(value), label);
        assert.ok(bytes > 0 && cpuSeconds > 0, label);
        assert.equal(p99 !== undefined, unit === 'us', label);
      }
      assert.equal(ratios[0], ours[0]!.value / peer[0]!.value);
    }
  });

  it('says which address and port are busy', async () => {
    const rows = rowsOf('8 B half RTT, event');
    const busy = createSocket('udp4');
    await new Promise<void>((resolve) => busy.bind(4791, '127.0.78.1', resolve));
    try {
      const options = { rounds: 1, seconds: 0.02, rows, network: '127.0.78' };
      await assert.rejects(runBench(options), /127\.0\.78\.1.*4791/s);
    } finally {
      busy.close();
    }
  });

  it('prints medians with their ranges, and the ratio of each round', () => {
    assert.equal(median([3, 1, 2]), 2);
    assert.equal(median([4, 1, 3, 2]), 2.5);
    const of = (value: number, p99: number): Measurement => {
      return { value, p99, bytes: 2 ** 30, cpuSeconds: 1 };
    };
    const [row] = rowsOf('8 B half RTT, event');
    const summary = summarize(row!, [of(3, 5), of(2, 4), of(4, 6)], [of(6, 9), of(4, 8), of(2, 7)]);
    assert.deepEqual(summary.ratios, [0.5, 0.5, 2]);
    const [heading = '', line = ''] = table([summary]).split('\n');
    assert.match(heading, /softroce +Node TCP +ratio/);
    assert.match(
      line,
      /3\.00 \(2\.00–4\.00\) us +4\.00 \(2\.00–6\.00\) us +0\.500 \(0\.500–2\.00\)/,
    );
    assert.match(line, /5\.00 \/ 8\.00/);
  });
});
