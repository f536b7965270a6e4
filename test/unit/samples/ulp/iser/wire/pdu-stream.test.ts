import assert from 'node:assert/strict';

import fc from 'fast-check';

import * as wire from '../../../../../../samples/ulp/iser/wire/index.js';
import { hex, toHex } from './bytes.js';

/** A Data-Out with this much data, as it is sent: with padding. */
function dataOut(dataBytes: number): Uint8Array {
  const header = wire.dataOut.make({ dataSegmentLength: dataBytes });
  const whole = new Uint8Array(48 + dataBytes + wire.padBytes(dataBytes));
  whole.set(header.bytes);
  whole.fill(dataBytes, 48, 48 + dataBytes);
  return whole;
}

describe('PDUs of a byte stream', () => {
  it('are the same, however the stream is cut', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 40 }), { maxLength: 8 }),
        fc.array(fc.integer({ min: 1, max: 200 }), { maxLength: 20 }),
        (lengths, cuts) => {
          const whole = Buffer.concat(lengths.map(dataOut));
          const stream = new wire.PduStream(40);
          const seen: string[] = [];
          let at = 0;
          for (const cut of [...cuts, whole.length]) {
            for (const pdu of stream.push(whole.subarray(at, at + cut))) seen.push(toHex(pdu));
            at += cut;
          }
          const expected = lengths.map((length) => toHex(dataOut(length).subarray(0, 48 + length)));
          assert.deepEqual(seen, expected);
        },
      ),
    );
  });

  it('one within a chunk is a part of it', () => {
    const chunk = dataOut(8);
    const [pdu] = new wire.PduStream(8).push(chunk);
    assert.equal(pdu!.buffer, chunk.buffer);
  });

  it('a data segment beyond the limit is refused before it has come', () => {
    const stream = new wire.PduStream(8192);
    assert.throws(() => stream.push(hex('05800000 00002001 00*40')), {
      name: 'WireError',
      fault: 'length',
      message: 'DataSegmentLength is 8193, must be at most 8192',
    });
  });
});
