import assert from 'node:assert/strict';

import { parseTask } from '../../../../samples/dapltest/options.js';

const task = (line: string): unknown => parseTask(line.split(' '));

describe('dapltest command line', () => {
  it('takes the letters of the C program, apart or together', () => {
    assert.deepEqual(task('-T S -D 10.0.0.1'), {
      test: 'S',
      device: '10.0.0.1',
      provider: 'softroce',
      port: 62_000,
    });
    assert.deepEqual(task('-TQ -s10.0.0.1 -n 50000'), {
      test: 'Q',
      device: undefined,
      provider: 'softroce',
      server: { address: '10.0.0.1', port: 50_000 },
    });
    const operation = { transfer: 'SR', segmentBytes: 4096, segments: 1 };
    assert.deepEqual(
      task('-T T -s 10.0.0.1 -D 10.0.0.2 -i 7 -t 2 -w 3 -P -r -R BE client SR 5 -f server SR -f'),
      {
        test: 'T',
        device: '10.0.0.2',
        provider: 'softroce',
        server: { address: '10.0.0.1', port: 62_000 },
        command: {
          iterations: 7,
          threads: 2,
          endpointsPerThread: 3,
          useRsp: true,
          validate: false,
          poll: true,
          operations: [
            { ...operation, initiator: 'client', segmentBytes: 5, reapSendOnReceive: true },
            { ...operation, initiator: 'server', reapSendOnReceive: true },
          ],
        },
      },
    );
    assert.deepEqual(task('-T P -s fd77::1 -m p -p 3 RR 100 2'), {
      test: 'P',
      device: undefined,
      provider: 'softroce',
      server: { address: 'fd77::1', port: 62_000 },
      command: {
        iterations: 1000,
        pipeline: 3,
        transfer: 'RR',
        mode: 'polling',
        segmentBytes: 100,
        segments: 2,
      },
    });
    assert.deepEqual(task('-T L -D 10.0.0.1 --provider verbs -m 5 -w 2 limit_pz limit_size_lmr'), {
      test: 'L',
      device: '10.0.0.1',
      provider: 'verbs',
      limits: {
        tests: ['limit_pz', 'limit_size_lmr'],
        maximum: 5,
        width: 2,
        firstPort: 62_000,
      },
    });
  });

  it('says what is wrong, in a sentence', () => {
    const to = '-s 10.0.0.1 -D 10.0.0.2';
    const sr = 'client SR server SR';
    const failures: [string, RegExp][] = [
      ['', /^-T comes first: S, T, P, Q or L/],
      ['-D 10.0.0.1 -T S', /^-T comes first/],
      ['-T S', /^a server needs -D, its own address$/],
      ['-T L', /^a limit test needs -D, the local address$/],
      [`-T T ${to} client SR`, /^at least one "client SR" and one "server SR"/],
      [`-T T ${to} ${sr} client SX`, /"client SX": next comes SR, RR or RW/],
      [`-T T ${to} ${sr} client RR many`, /"client RR many": .* are numbers/],
      [`-T T ${to} ${sr} -f`, /-f comes in pairs/],
      [`-T T ${to} ${sr} server RR -f`, /-f belongs to SR/],
      [
        `-T T ${to} ${sr} client -f`,
        /^options stand before the operations: -f \(it may end an SR\)$/,
      ],
      [`-T T ${to} ${sr} client SR -f 256`, /^options stand before the operations: -f/],
      [`-T T ${to} ${sr} -V`, /^options stand before the operations: -V$/],
      [`-T T ${to} -V ${sr} 256 1 -i 8`, /^options stand before the operations: -i$/],
      [`-T T ${to} ${sr} --provider verbs`, /^options stand before the operations: --provider$/],
      [`-T P ${to} SR`, /^operation "SR": it begins with RR or RW$/],
      [`-T P ${to} RW 1 2 3`, /^operation "RW 1 2 3": that is too much/],
    ];
    for (const [line, sentence] of failures) {
      assert.throws(() => task(line), { message: sentence }, line);
    }
  });
});
