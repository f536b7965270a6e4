import assert from 'node:assert/strict';

import * as wire from '../../../../../../samples/ulp/iser/wire/index.js';
import { hex, toHex } from './bytes.js';

describe('iSER headers', () => {
  for (const [what, values, bytes] of [
    ['a command without data', {}, '10 00*27'],
    [
      'a read (captured)',
      { readValid: true, readStag: 0x152f, readBase: 0xff1b3517c2a06300n },
      '14000000 00000000 0000000000000000 0000152f ff1b3517c2a06300',
    ],
    [
      'a write (captured)',
      { writeValid: true, writeStag: 0x1620, writeBase: 0xff1b3516fc112000n },
      '18000000 00001620 ff1b3516fc112000 00000000 0000000000000000',
    ],
  ] as const) {
    it(`of ${what} is these bytes, and is read`, () => {
      assert.equal(toHex(wire.iserHeader.make(values).bytes), toHex(hex(bytes)));
      const message = wire.readIserMessage(Buffer.concat([hex(bytes), hex('aabb')]));
      assert(message.type === 'control');
      assert.deepEqual(
        { ...wire.iserHeader.record(message.header), ...values },
        wire.iserHeader.record(message.header),
      );
      assert.equal(toHex(message.pdu), 'aabb');
    });
  }

  it('Hello and HelloReply are these bytes (RFC 7145, 9.3 and 9.4)', () => {
    assert.equal(toHex(wire.iserHello.make({ ird: 16 }).bytes), toHex(hex('20aa0010 00*24')));
    const reply = wire.iserHelloReply.make({ ord: 4, reject: true });
    assert.equal(toHex(reply.bytes), toHex(hex('31aa0004 00*24')));
    assert.equal(wire.readIserMessage(hex('20aa0010 00*24')).type, 'hello');
    assert.equal(wire.readIserMessage(reply.bytes).type, 'helloReply');
  });

  it('what is no iSER message is refused', () => {
    assert.throws(() => wire.readIserMessage(hex('10 00*26')), {
      name: 'WireError',
      message: 'iSER message in bytes is 27, must be at least 28',
    });
    assert.throws(() => wire.readIserMessage(hex('40 00*27')), { fault: 'opcode' });
  });

  it('the flags of the connection are negative', () => {
    assert.equal(toHex(wire.iserCmHeader.make({ zbvaNotSupported: true }).bytes), '80000000');
    assert.equal(wire.iserCmHeader.view(hex('c0000000')).sendWithInvalidateNotSupported, true);
  });
});
