import assert from 'node:assert/strict';

import { parseOperations } from '../../../../samples/dapltest/operations.js';
import { Ports } from '../../../../samples/dapltest/service.js';

describe('dapltest operations', () => {
  it('reads what the command line says, and adds what validation needs', () => {
    const words = 'client SR 10 -f server SR -f client RW 300 2'.split(' ');
    const operations = parseOperations(words, true);
    const sr = { transfer: 'SR', segmentBytes: 4096, segments: 1, reapSendOnReceive: false };
    assert.deepEqual(operations, [
      { ...sr, initiator: 'client', segmentBytes: 10, reapSendOnReceive: true },
      { ...sr, initiator: 'server', reapSendOnReceive: true },
      { ...sr, initiator: 'client', transfer: 'RW', segmentBytes: 300, segments: 2 },
      { ...sr, initiator: 'server' },
      { ...sr, initiator: 'client' },
      { ...sr, initiator: 'server' },
    ]);
    assert.equal(parseOperations(words, false).length, 3);
  });

  it('refuses what would not work, in a sentence', () => {
    const pair = 'client SR server SR ';
    const failures: [string, RegExp][] = [
      ['SR client SR', /"SR": it begins with "client" or "server"/],
      ['server SR', /at least one "client SR"/],
      [`${pair} client RW 1 2 3`, /too much/],
      [`${pair} client RW 1 0`, /at least one segment/],
      [`${pair} client RW 1 257`, /at most 256 segments/],
      [`${pair} client RW 2000000000`, /at most 1073741824 bytes/],
      [`${pair} client RW -1`, /numbers/],
      ['server SR -f client SR -f', /pairs/],
      [pair.repeat(50) + 'client RR', /101 operations, at most 100/],
    ];
    for (const [words, sentence] of failures) {
      assert.throws(() => parseOperations(words.trim().split(/ +/), false), sentence, words);
    }
    assert.throws(() => parseOperations(pair.repeat(49).trim().split(' '), true), /101 operations/);
  });
});

describe('dapltest ports', () => {
  it('hands out ports in turn, and none twice', () => {
    const ports = new Ports(1000, 10);
    assert.equal(ports.take(4), 1000);
    assert.equal(ports.take(4), 1004);
    assert.throws(() => ports.take(3), /3 ports are needed, but 2 are free/);
    assert.equal(ports.take(2), 1008);
    ports.giveBack(1002, 2);
    assert.equal(ports.take(2), 1002);
    ports.giveBack(1000, 10);
    assert.equal(ports.take(10), 1000);
    assert.throws(() => ports.take(11), /11 ports are needed/);
  });
});
