// Messages of processes that share a device: every byte, and what is none of them.
import assert from 'node:assert/strict';
import { SeededRandom } from '../../../plugins/faults/grammar/seeded-random.js';
import { UNIX_MESSAGE } from '../../../providers/host/index.js';
import {
  emitMessage,
  MAX_HANDED_BYTES,
  NO_SLOT,
  parseMessage,
  type SlotsMessage,
} from '../../../providers/shared-address/messages.js';
import { BYTES_AS, withBytesAs } from '../../support/same-bytes.js';

const PACKET = {
  sourceGid: Uint8Array.from({ length: 16 }, (_, i) => i),
  sourcePort: 4791,
  localGidIndex: 3,
  bytes: Uint8Array.from({ length: 12 }, (_, i) => 0xa0 + i),
};

const GOLDEN: readonly (readonly [SlotsMessage, number, string])[] = [
  [{ kind: 'HELLO', slot: NO_SLOT, nodeGuid: 0n }, 0, '44534c540101ffff0000000000000000'],
  [
    { kind: 'HELLO', slot: 7, nodeGuid: 0x1122334455667788n },
    0,
    '44534c54010107008877665544332211',
  ],
  [{ kind: 'PLACE', slot: 2, first: 16 }, 16, '44534c54010202001000000000000000'],
  [
    { kind: 'SLOT', slot: 2, nodeGuid: 1n, tableBytes: 0x10000 },
    1,
    '44534c540103020001000000000000000000010000000000',
  ],
  [{ kind: 'REFUSED', reason: 'unknown' }, 0, '44534c54010400000100000000000000'],
  [
    { kind: 'PACKET', slot: 5, packet: PACKET },
    0,
    '44534c5401050500b712030000000000000102030405060708090a0b0c0d0e0fa0a1a2a3a4a5a6a7a8a9aaab',
  ],
  [{ kind: 'GOODBYE', slot: 254 }, 0, '44534c540106fe00'],
];

describe('slots: messages', () => {
  for (const [message, descriptors, hex] of GOLDEN) {
    it(`${message.kind} is ${hex.length / 2} bytes`, () => {
      const bytes = emitMessage(message);
      assert.equal(Buffer.from(bytes).toString('hex'), hex);
      assert.deepEqual(parseMessage(bytes, descriptors), message);
    });

    for (const [kind, bytesAs] of Object.entries(BYTES_AS)) {
      it(`${message.kind} is the same with its bytes as ${kind}`, () => {
        const bytes = emitMessage(withBytesAs(message, bytesAs));
        assert.equal(Buffer.from(bytes).toString('hex'), hex);
        const came = bytesAs(bytes);
        const parsed = parseMessage(came, descriptors);
        came.fill(0);
        assert.deepEqual(parsed, message);
      });
    }

    it(`${message.kind} of another length, version, slot or with other descriptors is none`, () => {
      const bytes = emitMessage(message);
      assert.equal(parseMessage(bytes.subarray(0, bytes.length - 1), descriptors), undefined);
      const [fewer, more] = [descriptors - 1, descriptors + 17];
      if (message.kind !== 'PLACE') assert.equal(parseMessage(bytes, fewer), undefined);
      assert.equal(parseMessage(bytes, more), undefined);
      for (const at of [0, 4]) {
        const other = bytes.slice();
        other[at]! ^= 0x80;
        assert.equal(parseMessage(other, descriptors), undefined);
      }
      const slot255 = bytes.slice();
      slot255[6] = 255;
      slot255[7] = 0;
      assert.equal(parseMessage(slot255, descriptors), undefined);
    });
  }

  it('a packet that is too long to be handed over is no message', () => {
    const most = { ...PACKET, bytes: new Uint8Array(MAX_HANDED_BYTES) };
    const bytes = emitMessage({ kind: 'PACKET', slot: 1, packet: most });
    assert.equal(bytes.length, UNIX_MESSAGE.BYTES);
    assert.notEqual(parseMessage(bytes, 0), undefined);
    const longer = { ...PACKET, bytes: new Uint8Array(MAX_HANDED_BYTES + 1) };
    assert.equal(
      parseMessage(emitMessage({ kind: 'PACKET', slot: 1, packet: longer }), 0),
      undefined,
    );
  });

  it('what reads as a message is written as the same bytes again: no bit is ignored', () => {
    const random = new SeededRandom(3);
    let read = 0;
    for (let i = 0; i < 200_000; i++) {
      const [message, descriptors] = random.pick(GOLDEN);
      const bytes = emitMessage(message);
      bytes[random.between(4, bytes.length - 1)] = random.between(0, 255);
      const parsed = parseMessage(bytes, descriptors);
      if (parsed === undefined) continue;
      read++;
      assert.deepEqual(emitMessage(parsed), bytes);
    }
    assert.ok(read > 1000);
  });
});
