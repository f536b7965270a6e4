// What bench:verbs is made of, without a guest: its loops over softroce, and its report.
import assert from 'node:assert/strict';

import { type Ia, openIa } from 'dapl';
import { softroce } from 'dapl/providers/softroce';

import { End } from '../../../bench/verbs/end.js';
import { measure, serve } from '../../../bench/verbs/loops.js';
import { ratiosOf, tables } from '../../../bench/verbs/report.js';
import { type Result, TESTS, type Work, workOf } from '../../../bench/verbs/workload.js';
import { lettersOf, resultOf } from '../../guest/bench/perftest.js';
import { loopback } from '../../support/loopback.js';
import { patience } from '../../support/patience.js';

const PORT = 7500;
const CLIENT = loopback(0, 61);
const SERVER = loopback(0, 62);

describe('bench:verbs: the loops', () => {
  let client: Ia;
  let server: Ia;

  before(async () => {
    [client, server] = (await Promise.all(
      [CLIENT, SERVER].map((address) => openIa(softroce({ addresses: [address] }))),
    )) as [Ia, Ia];
  });

  after(async () => {
    await Promise.all([client.close('abrupt'), server.close('abrupt')]);
  });

  async function play(work: Work): Promise<{ result: Result; sink: Uint8Array }> {
    const ends = { client: new End(client, work), server: new End(server, work) };
    ends.client.source.bytes.fill(1);
    ends.server.sink.bytes.fill(2);
    const psp = server.createPsp({ connQual: PORT });
    psp.requests$.subscribe(({ cr }) => cr?.accept(ends.server.ep));
    const established = ends.client.established();
    ends.client.ep.connect({ address: SERVER, connQual: PORT, timeoutMs: patience(30_000) });
    await established;
    const serving = serve(ends.server, ends.client.target(PORT));
    const result = await measure(ends.client, ends.server.target(PORT));
    const sink = ends.server.sink.bytes.slice();
    ends.server.stop();
    await serving;
    await Promise.all([ends.client.free(), ends.server.free()]);
    psp.free();
    return { result, sink };
  }

  for (const test of TESTS) {
    it(`${test} over softroce`, async () => {
      const work = { ...workOf(test, 5000), iterations: 150 };
      const { result, sink } = await play(work);
      if ('mibps' in result) assert.ok(result.mibps > 0, String(result.mibps));
      else assert.ok(result.p50 > 0 && result.p99 >= result.p50, JSON.stringify(result));
      const [first, last] = [sink[0], sink.at(-1)];
      if (test === 'ib_read_bw') assert.deepEqual([first, last], [2, 2], 'nothing is written');
      if (test === 'ib_write_bw') assert.deepEqual([first, last], [1, 1], 'all is written');
      // 20 round trips of warm-up and 150: the last byte counts them.
      if (test === 'ib_write_lat') assert.deepEqual([first, last], [1, 170]);
    });
  }

  it('a moderated bandwidth counts every message', async () => {
    const work = { ...workOf('ib_write_bw', 64), iterations: 1001 };
    assert.equal(work.moderation, 16);
    const { result } = await play(work);
    assert.ok('mibps' in result && result.mibps > 0);
  });
});

describe('bench:verbs: the parameters and the report', () => {
  it('one message is under way in a latency test, a window in the others', () => {
    assert.equal(workOf('ib_send_lat', 64).depth, 1);
    const work = workOf('ib_read_bw', 65_536);
    assert.deepEqual([work.depth, work.moderation], [64, 1]);
    assert.match(lettersOf(work, 4096), / -m 4096 -s 65536 -n 1024 -t 64 -Q 1 -o 16$/);
    assert.match(lettersOf(workOf('ib_send_lat', 2), 1024), / -m 1024 .* -e -I 0$/);
  });

  it('long messages are fewer, but never fewer than two windows', () => {
    assert.equal(workOf('ib_write_bw', 2).iterations, 4000);
    assert.equal(workOf('ib_write_bw', 2 ** 20).iterations, 128);
  });

  it("perftest's lines are read by their columns", () => {
    const bandwidth =
      ' #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n' +
      ' 65536      1000             30.94              28.12              0.000450\n';
    assert.deepEqual(resultOf(workOf('ib_write_bw', 65_536), bandwidth), { mibps: 28.12 });
    const latency =
      ' 2       500          50.5    911.1        60.25      61.0   12.3   300.5   911.1 \n';
    assert.deepEqual(resultOf(workOf('ib_send_lat', 2), latency), { p50: 60.25, p99: 300.5 });
    assert.throws(() => resultOf(workOf('ib_send_lat', 2), 'Failed'), /no result: Failed/);
  });

  it('ratios are of the same round; a side that was left out leaves its column empty', () => {
    const work = workOf('ib_write_bw', 64);
    const verbs = [10, 30, 20].map((mibps) => ({ mibps }));
    const perftest = [20, 30, 10].map((mibps) => ({ mibps }));
    const cell = { work, results: { verbs, perftest } };
    assert.deepEqual(ratiosOf(cell), [0.5, 1, 2]);
    const [, , , , line] = tables([cell]).split('\n');
    assert.match(line ?? '', /^\| +64 \| +20\.0 \| +20\.0 \| +\| 1\.00 \(0\.50–2\.00\) \|$/);
  });
});
