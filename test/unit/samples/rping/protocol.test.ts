import assert from 'node:assert/strict';

import {
  fillPing,
  placeMessage,
  placeOf,
  textLength,
  textOf,
} from '../../../../samples/rping/protocol.js';

describe('rping protocol', () => {
  // The first SEND of a client of librdmacm's rping, captured.
  const captured = Buffer.from('00005557ebdf75f0000005b400000064', 'hex');
  const place = { address: 0x5557ebdf75f0n, rmrContext: 0x5b4, length: 100 };

  it('reads and writes what rping sends', () => {
    assert.deepEqual(placeOf(captured), place);
    assert.deepEqual(Buffer.from(placeMessage(place)), captured);
    const told = { ...place, address: '0x5557ebdf75f0' };
    assert.deepEqual(Buffer.from(placeMessage(told)), captured);
  });

  it('refuses a message of another length', () => {
    assert.throws(() => placeOf(Buffer.alloc(15)), /16 bytes, not 15/);
  });

  it('fills a ping as rping does', () => {
    // The READ response to that client, captured: 100 bytes.
    const answer = Buffer.from(
      '72646d612d70696e672d303a204142434445464748494a4b4c4d4e4f505152535455565758595a5b' +
        '5c5d5e5f606162636465666768696a6b6c6d6e6f707172737475767778797a414243444546474849' +
        '4a4b4c4d4e4f505152535455565758595a5b5c00',
      'hex',
    );
    const buffer = Buffer.alloc(100);
    fillPing(buffer, 0);
    assert.deepEqual(buffer, answer);
    assert.equal(textLength(buffer), 100);
    assert.match(textOf(buffer), /^rdma-ping-0: ABC.*\\$/);
  });

  it('starts each ping one letter later, and begins again after z', () => {
    const buffer = Buffer.alloc(26);
    fillPing(buffer, 1);
    assert.equal(textOf(buffer), 'rdma-ping-1: BCDEFGHIJKLM');
    fillPing(buffer, 57);
    assert.equal(textOf(buffer), 'rdma-ping-57: zABCDEFGHIJ');
    fillPing(buffer, 58);
    assert.equal(textOf(buffer), 'rdma-ping-58: ABCDEFGHIJK');
  });
});
