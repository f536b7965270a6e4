import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';

import * as wire from '../../../../../../samples/ulp/iser/wire/index.js';
import { toHex } from './bytes.js';

const md5: wire.Md5 = (bytes) => createHash('md5').update(bytes).digest();
const secret = new TextEncoder().encode('a secret of bytes');

describe('CHAP', () => {
  it('a response is the digest of identifier, secret and challenge', () => {
    const asked = wire.readChallenge('7', '0x0102030405060708090a0b0c0d0e0f10');
    const seen: string[] = [];
    const record: wire.Md5 = (bytes) => {
      seen.push(toHex(bytes));
      return md5(bytes);
    };
    const response = wire.chapResponse(record, asked, secret);
    assert.deepEqual(seen, [`07${toHex(secret)}0102030405060708090a0b0c0d0e0f10`]);
    // md5sum of those bytes.
    assert.equal(toHex(response), '14255e966b113d3764bf47adb0ca3ca7');
    assert.equal(wire.sameResponse(response, wire.readResponse(wire.emitBinary(response))), true);
    response[15]! ^= 1;
    assert.equal(wire.sameResponse(response, wire.chapResponse(md5, asked, secret)), false);
    assert.equal(wire.sameResponse(response.subarray(1), response), false);
  });

  it('a challenge is sent as text and read back', () => {
    const asked = { identifier: 200, challenge: Uint8Array.of(1, 255) };
    const pairs = wire.emitChallenge(asked);
    assert.deepEqual(pairs, [
      ['CHAP_I', '200'],
      ['CHAP_C', '0x01ff'],
    ]);
    assert.deepEqual(wire.readChallenge(pairs[0]![1], pairs[1]![1]), asked);
  });

  it('what cannot be is refused', () => {
    assert.throws(() => wire.readChallenge('256', '0x01'), /CHAP_I is "256", must be 0 to 255/);
    assert.throws(() => wire.readChallenge('1', `0x${'00'.repeat(1025)}`), /1 to 1024 bytes/);
    assert.throws(() => wire.readResponse('0x01'), /CHAP_R is "0x01"/);
    assert.throws(() => wire.checkAlgorithm('6,7'), /CHAP_A is "6,7"/);
    wire.checkAlgorithm('7,5');
  });
});
