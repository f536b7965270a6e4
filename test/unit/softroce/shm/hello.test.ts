/** What devices of one host say to each other: golden bytes, and anything else is no message. */
import assert from 'node:assert/strict';
import { gidFromIp } from '../../../../core/spi/index.js';
import {
  emitMessage,
  type Hello,
  type MeetingMessage,
  parseMessage,
} from '../../../../providers/softroce/shm/hello.js';
import { BYTES_AS, withBytesAs } from '../../../support/same-bytes.js';
import { pattern } from '../../../../plugins/testing/port/harness.js';

const hello: Hello = {
  kind: 'HELLO',
  slot: undefined,
  guid: 0x0a000e0f_89abcdefn,
  generation: 0x0123456789abcdefn,
  memoryBytes: 0x0080_0000,
  udpPort: 4791,
  gids: [gidFromIp('10.0.0.1'), gidFromIp('fd00::2')],
};

const GOLDEN: readonly (readonly [MeetingMessage, number, string])[] = [
  [
    hello,
    2,
    '4441504c 01 01 0000 efcdab890f0e000a efcdab8967452301 0000800000000000 b712 02 0000000000' +
      '00000000000000000000ffff0a000001 fd000000000000000000000000000002',
  ],
  [
    { ...hello, slot: 254, gids: [gidFromIp('10.0.0.1')] },
    2,
    '4441504c 01 01 ff00 efcdab890f0e000a efcdab8967452301 0000800000000000 b712 01 0000000000' +
      '00000000000000000000ffff0a000001',
  ],
  [{ kind: 'CROSSED' }, 0, '4441504c 01 02 0000'],
  [{ kind: 'READY' }, 0, '4441504c 01 06 0000'],
  [
    { kind: 'SEGMENT', segment: 3, bytes: 2 ** 40 },
    1,
    '4441504c 01 03 0000 03000000 00000000 0000000000010000',
  ],
  [{ kind: 'SEGMENT_READY', segment: 0xfffffffe }, 0, '4441504c 01 04 0000 feffffff 00000000'],
  [{ kind: 'SEGMENT_GONE', segment: 1 }, 0, '4441504c 01 05 0000 01000000 00000000'],
];

const bytesOf = (hex: string): Uint8Array =>
  Uint8Array.from(Buffer.from(hex.replaceAll(' ', ''), 'hex'));

describe('softroce: messages of devices that meet', () => {
  for (const [message, descriptors, hex] of GOLDEN) {
    it(`${message.kind} is these bytes, and reads back`, () => {
      const bytes = bytesOf(hex);
      assert.deepEqual(emitMessage(message), bytes);
      assert.deepEqual(parseMessage(bytes, descriptors), message);
    });

    for (const [kind, bytesAs] of Object.entries(BYTES_AS)) {
      it(`${message.kind} is the same with its bytes as ${kind}`, () => {
        const bytes = emitMessage(withBytesAs(message, bytesAs));
        assert.deepEqual(bytes, bytesOf(hex));
        const came = bytesAs(bytes);
        const parsed = parseMessage(came, descriptors);
        came.fill(0);
        assert.deepEqual(parsed, message);
      });
    }

    it(`${message.kind} has its length and descriptors, and nothing in what is reserved`, () => {
      const bytes = bytesOf(hex);
      assert.equal(parseMessage(bytes, descriptors + 1), undefined);
      for (let length = 0; length < bytes.length; length++) {
        assert.equal(parseMessage(bytes.subarray(0, length), descriptors), undefined, `${length}`);
      }
      const longer = new Uint8Array(bytes.length + 1);
      longer.set(bytes);
      assert.equal(parseMessage(longer, descriptors), undefined);
      for (const at of [0, 3, 4, 5]) {
        const changed = bytes.slice();
        changed[at]! ^= 0x80;
        assert.equal(parseMessage(changed, descriptors), undefined, `byte ${at}`);
      }
    });
  }

  const changes: readonly (readonly [string, number, number, readonly number[]])[] = [
    ['memory of no bytes', 0, 24, [0, 0, 0, 0, 0, 0, 0, 0]],
    ['memory beyond 2^53', 0, 24, [0, 0, 0, 0, 0, 0, 0x40, 0]],
    ['UDP port 0', 0, 32, [0, 0]],
    ['no address', 0, 34, [0]],
    ['more addresses than bytes', 0, 34, [3]],
    ['more than 64 addresses', 0, 34, [65]],
    ['a reserved byte', 0, 39, [1]],
    ['segment 0', 4, 8, [0, 0, 0, 0]],
    ['a segment of no bytes', 4, 16, [0, 0, 0, 0, 0, 0, 0, 0]],
    ['a reserved word', 4, 12, [1]],
    ['a slot where there is none', 5, 6, [1]],
    ['a slot beyond 254', 0, 6, [0, 1]],
  ];
  for (const [what, index, at, values] of changes) {
    it(`refuses ${what}`, () => {
      const [, descriptors, hex] = GOLDEN[index]!;
      const bytes = bytesOf(hex);
      bytes.set(values, at);
      assert.equal(parseMessage(bytes, descriptors), undefined);
    });
  }

  it('takes anything without an error, and reads back what it takes', () => {
    const random = new Uint8Array(pattern(200_000, 24).buffer);
    let taken = 0;
    for (let at = 0, i = 0; at + 64 < random.length; at += 7, i++) {
      const [, descriptors, hex] = GOLDEN[i % GOLDEN.length]!;
      const bytes = bytesOf(hex);
      for (let k = 0; k < 1 + (random[at]! % 3); k++) {
        bytes[random[at + 2 * k + 1]! % bytes.length] = random[at + 2 * k + 2]!;
      }
      const message = parseMessage(bytes, descriptors);
      if (message === undefined) continue;
      taken++;
      assert.deepEqual(parseMessage(emitMessage(message), descriptors), message);
    }
    assert.ok(taken > 1000, `${taken} were messages still`);
    for (let at = 0; at + 1100 < random.length; at += 97) {
      parseMessage(random.subarray(at, at + ((random[at]! * 5) % 1100)), random[at + 1]! % 4);
    }
  });
});
