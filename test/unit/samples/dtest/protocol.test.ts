import assert from 'node:assert/strict';

import { readIntroduction, writeIntroduction } from '../../../../samples/dtest/introduction.js';
import {
  allLengths,
  greeting,
  isGreeting,
  readPlace,
  writePlace,
} from '../../../../samples/dtest/protocol.js';

describe('dtest protocol', () => {
  it('writes places in network order', () => {
    const place = { address: 0x1122334455667788n, lengthBytes: 0x2711, rmrContext: 0xaabbccdd };
    const message = Buffer.alloc(16);
    writePlace(message, place);
    assert.equal(message.toString('hex'), '112233445566778800002711aabbccdd');
    assert.deepEqual(readPlace(message), place);
  });

  it('greets with numbers, and knows the padded answer', () => {
    const answer = Buffer.alloc(196);
    answer.set(greeting(2));
    assert.equal(answer[47], 49);
    assert.ok(isGreeting(answer, 2));
    assert.ok(!isGreeting(answer, 1));
    assert.ok(!isGreeting(answer.subarray(0, 47), 2));
  });

  it('introduces as a little-endian machine prints network order', () => {
    const introduction = { address: '10.0.0.1', provider: 'ofa-v2-rxe' };
    const bytes = writeIntroduction(introduction);
    const text = '0000:00000000:00000000:0100000a:ofa-v2-rxe\0';
    assert.equal(bytes.length, 128);
    assert.equal(bytes.toString('latin1', 0, text.length), text);
    assert.deepEqual(readIntroduction(bytes), introduction);
    const other = writeIntroduction({ address: 'fd77::1', provider: 'x' });
    assert.deepEqual(readIntroduction(other), { address: undefined, provider: 'x' });
  });

  it('refuses what is no introduction', () => {
    const good = writeIntroduction({ address: '10.0.0.1', provider: 'x' });
    for (const bytes of [good.subarray(0, 127), Buffer.alloc(128), Buffer.alloc(128, 'SSH-2.0')]) {
      assert.throws(() => readIntroduction(bytes), /not from a dtest server/);
    }
    assert.throws(
      () => writeIntroduction({ address: '::1', provider: 'x'.repeat(99) }),
      /too long/,
    );
  });

  it('steps through the lengths that the C program does', () => {
    assert.deepEqual(allLengths(8, 0), [1, 2, 3, 4, 5, 7, 8]);
    assert.deepEqual(allLengths(10, 0), [1, 2, 3, 4, 5, 7, 8, 9, 15, 16]);
    assert.deepEqual(allLengths(250, 100), [99, 100, 101, 199, 200, 201]);
  });
});
