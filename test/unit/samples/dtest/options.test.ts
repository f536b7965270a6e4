import assert from 'node:assert/strict';

import { type Options, parseOptions } from '../../../../samples/dtest/options.js';

const options = (line: string): Options => parseOptions(['node', 'dtest', ...line.split(' ')]);

describe('dtest command line', () => {
  it('has the defaults of the C program', () => {
    assert.deepEqual(options('-I 10.0.0.1'), {
      host: undefined,
      source: '10.0.0.1',
      provider: 'softroce',
      announced: 'ofa-v2-rxe',
      mode: 'all',
      lengthBytes: 4_194_304,
      lengths: [4_194_304],
      burst: 1000,
      signalRate: 10,
      unidirectional: false,
      checkData: false,
      poll: false,
    });
  });

  it('knows what goes with a ping-pong of writes', () => {
    const { mode, lengths, signalRate, unidirectional } = options('-h 10.0.0.1 -W -B 50');
    assert.deepEqual([mode, lengths, signalRate], ['write-ping-pong', [1], 1]);
    assert.equal(unidirectional, true);
    assert.deepEqual(options('-h 10.0.0.1 -D').lengths, [4_194_304]);
    assert.deepEqual(options('-h 10.0.0.1 -D -a -b 4').lengths, [1, 2, 3, 4]);
    assert.deepEqual(options('-h 10.0.0.1 -W -i 50 -b 60').lengths, [49, 50, 51]);
    assert.equal(options('-h 10.0.0.1 -B 3 -S 10').signalRate, 3);
  });

  it('says what is wrong, in a sentence', () => {
    for (const [line, sentence] of [
      ['-w', 'a server needs -I, its own address; a client needs -h'],
      ['-s -h 10.0.0.1', '-s and -h exclude each other'],
      ['-I 10.0.0.1 -a', '-a and -i go with -W or -D'],
      ['-I 10.0.0.1 -w -i 5', '-a and -i go with -W or -D'],
    ] as const) {
      assert.throws(() => options(line), { message: sentence });
    }
  });
});
