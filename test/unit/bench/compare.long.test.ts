import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { ROWS, type Row } from '../../../bench/compare/rows.js';
import { runBench } from '../../../bench/compare/run.js';
import { inBlock0, loopback, networkOf } from '../../support/loopback.js';

const NETWORK = networkOf(77);

/** Rows without the peers that need a compiler or a library. */
function rowsOf(...labels: readonly string[]): Row[] {
  const rows = ROWS.filter(({ label }) => labels.includes(label));
  assert.equal(rows.length, labels.length);
  const isHere = /^(softroce|dgram|node-)/;
  return rows.map((row) => {
    return { ...row, rivals: row.rivals.filter(({ cell }) => isHere.test(cell.contender)) };
  });
}

describe('Benchmark against the sockets of Node', function () {
  this.timeout(120_000);

  it('measures each workload, both sides, and ends its processes', async () => {
    const rows = rowsOf(
      '64 KiB RDMA WRITE, event',
      '64 KiB RDMA READ, spin',
      '1 MiB RDMA WRITE, dgram port',
      '8 B half RTT, RDMA WRITE, spin',
      '8 B half RTT, SEND, adaptive, events$',
      '8 B half RTT, SEND, adaptive, for await',
      '8 B half RTT, SEND, event',
      '64 B SEND, 64 in flight',
    );
    const rounds: number[] = [];
    const onRound = (round: number): void => void rounds.push(round);
    const summaries = await runBench({ rounds: 1, seconds: 0.02, rows, network: NETWORK, onRound });
    assert.deepEqual(rounds, [0, 1]);
    assert.deepEqual(
      summaries.map(({ label }) => label),
      rows.map(({ label }) => label),
    );
    for (const { label, unit, measurements, rivals } of summaries) {
      assert.ok(rivals.length > 0, label);
      for (const all of [measurements, ...rivals.map((rival) => rival.measurements)]) {
        assert.equal(all.length, 1, label);
        const [{ value, bytes, cpuSeconds, p99 }] = all as [(typeof measurements)[number]];
        assert.ok(value > 0 && Number.isFinite(value), label);
        assert.ok(bytes > 0 && cpuSeconds > 0, label);
        assert.equal(p99 !== undefined, unit === 'us', label);
      }
      const { sentPackets = 0, receivedPackets = 0 } = measurements[0]!.counters ?? {};
      assert.ok(sentPackets > 0 && receivedPackets > 0, label);
      const [rival] = rivals;
      assert.equal(rival!.ratios[0], measurements[0]!.value / rival!.measurements[0]!.value);
    }
  });

  it('measures messages in promises beside DAT, and requests beside peers of Node', async () => {
    const rows = rowsOf(
      '8 B half RTT, conn.send and receive, copied, event',
      '64 B conn.send and receive, lent, 64 in flight, adaptive',
      '64 B half RTT, request and answer, conn, event',
      '64 B requests and answers, channel, 64 in flight, adaptive',
    );
    const summaries = await runBench({ rounds: 1, seconds: 0.02, rows, network: networkOf(80) });
    assert.deepEqual(
      summaries.map(({ rivals }) => rivals.map(({ contender }) => contender)),
      [['softroce'], ['softroce'], ...rows.slice(2).map(() => ['node-framed', 'node-ws'])],
    );
    for (const { label, unit, measurements, rivals } of summaries) {
      for (const all of [measurements, ...rivals.map((rival) => rival.measurements)]) {
        const [{ value, bytes, p99 }] = all as [(typeof measurements)[number]];
        assert.ok(value > 0 && Number.isFinite(value) && bytes > 0, label);
        assert.equal(p99 !== undefined, unit === 'us', label);
      }
      assert.ok((measurements[0]!.counters?.['sentPackets'] ?? 0) > 0, label);
    }
  });

  it('shares the load over many endpoints, and measures idle processes', async () => {
    const [shared, ...others] = rowsOf(
      '64 B SEND, 64 in flight over 1,000 EPs',
      'CPU of two idle processes, connected',
    );
    const rows = [{ ...shared!, ours: { ...shared!.ours, endpoints: 20 }, rivals: [] }, ...others];
    const summaries = await runBench({ rounds: 1, seconds: 0.02, rows, network: networkOf(79) });
    const values = summaries.map(({ measurements }) => measurements[0]!.value);
    assert.ok(values[0]! > 0 && Number.isFinite(values[0]!));
    assert.ok(values[1]! >= 0 && values[1]! < 100);
  });

  it('says which address and port are busy', async () => {
    const rows = rowsOf('8 B half RTT, SEND, event');
    const busy = createSocket('udp4');
    await new Promise<void>((resolve) => busy.bind(4791, loopback(78, 1), resolve));
    try {
      const options = { rounds: 1, seconds: 0.02, rows, network: networkOf(78) };
      await assert.rejects(runBench(options), (error) => {
        assert.match(inBlock0(String(error)), /127\.0\.78\.1.*4791/s);
        return true;
      });
    } finally {
      busy.close();
    }
  });
});
