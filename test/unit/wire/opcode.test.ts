import assert from 'node:assert/strict';

import {
  OPCODES,
  OPCODE_BIT,
  PAYLOAD,
  RC,
  UC_BASE,
  UD,
  XRC_BASE,
} from '../../../core/spi/wire/opcode.js';
import * as layout from '../../../core/spi/wire/packet-layout.js';

// Code, extension headers, header bytes, payload rule, bits: request/response, Start, End,
// Immediate, inValidate, consumes a receive (R). Written out by hand from IBTA table 38.
// prettier-ignore
const RC_TABLE: readonly (readonly [number, string, number, string, string])[] = [
  [0x00, '',                   12, 'mtu',    'q S'],
  [0x01, '',                   12, 'mtu',    'q'],
  [0x02, '',                   12, '1..mtu', 'q E R'],
  [0x03, 'ImmDt',              16, '1..mtu', 'q E I R'],
  [0x04, '',                   12, '0..mtu', 'q S E R'],
  [0x05, 'ImmDt',              16, '0..mtu', 'q S E I R'],
  [0x06, 'RETH',               28, 'mtu',    'q S'],
  [0x07, '',                   12, 'mtu',    'q'],
  [0x08, '',                   12, '1..mtu', 'q E'],
  [0x09, 'ImmDt',              16, '1..mtu', 'q E I R'],
  [0x0a, 'RETH',               28, '0..mtu', 'q S E'],
  [0x0b, 'RETH ImmDt',         32, '0..mtu', 'q S E I R'],
  [0x0c, 'RETH',               28, 'none',   'q S E'],
  [0x0d, 'AETH',               16, 'mtu',    'p S'],
  [0x0e, '',                   12, 'mtu',    'p'],
  [0x0f, 'AETH',               16, '1..mtu', 'p E'],
  [0x10, 'AETH',               16, '0..mtu', 'p S E'],
  [0x11, 'AETH',               16, 'none',   'p S E'],
  [0x12, 'AETH AtomicAckETH',  24, 'none',   'p S E'],
  [0x13, 'AtomicETH',          40, 'none',   'q S E'],
  [0x14, 'AtomicETH',          40, 'none',   'q S E'],
  [0x16, 'IETH',               16, '1..mtu', 'q E V R'],
  [0x17, 'IETH',               16, '0..mtu', 'q S E V R'],
  [0x1c, 'FETH RETH',          32, 'none',   'q S E'],
  [0x1d, 'RETH',               28, '8',      'q S E'],
];

const RULES: Readonly<Record<string, number>> = {
  none: PAYLOAD.none,
  mtu: PAYLOAD.fullMtu,
  '0..mtu': PAYLOAD.upToMtu,
  '1..mtu': PAYLOAD.nonEmpty,
  '8': PAYLOAD.eightBytes,
};

function bitsText(bits: number): string {
  const letters = [
    [OPCODE_BIT.request, 'q'],
    [OPCODE_BIT.response, 'p'],
    [OPCODE_BIT.start, 'S'],
    [OPCODE_BIT.end, 'E'],
    [OPCODE_BIT.immediate, 'I'],
    [OPCODE_BIT.invalidate, 'V'],
    [OPCODE_BIT.receive, 'R'],
  ] as const;
  return letters
    .filter(([bit]) => (bits & bit) !== 0)
    .map(([, letter]) => letter)
    .join(' ');
}

describe('opcode table', () => {
  it('has the RC opcodes of the specification', () => {
    for (const [code, headers, length, rule, bits] of RC_TABLE) {
      const info = OPCODES[code];
      assert.ok(info?.known);
      assert.equal(info.transport, 'RC');
      assert.equal(info.headers.join(' '), headers, info.name);
      assert.equal(info.headerLength, length, info.name);
      assert.equal(info.payload, RULES[rule], info.name);
      assert.equal(bitsText(info.bits), bits, info.name);
    }
  });

  it('has UC for 00 to 0B with the same headers, and nothing more', () => {
    for (let low5 = 0; low5 < 0x20; low5 += 1) {
      const info = OPCODES[UC_BASE + low5];
      assert.equal(info?.known, low5 <= 0x0b);
      if (info?.known) assert.deepEqual(info.headers, OPCODES[low5]?.headers);
    }
  });

  it('puts XRCETH right after the BTH of every XRC request and of no response', () => {
    for (const [code, , length] of RC_TABLE) {
      const info = OPCODES[XRC_BASE + code];
      assert.ok(info?.known);
      const isRequest = (info.bits & OPCODE_BIT.request) !== 0;
      assert.equal(layout.XRCETH_OFFSET_OF[XRC_BASE + code], isRequest ? 12 : 0, info.name);
      assert.equal(info.headerLength, length + (isRequest ? 4 : 0), info.name);
    }
  });

  it('knows exactly the codes of the specification among all 256', () => {
    const low5 = RC_TABLE.map(([code]) => code);
    const expected = [
      ...low5,
      ...Array.from({ length: 12 }, (_, code) => UC_BASE + code),
      ...Array.from({ length: 0x16 }, (_, code) => 0x40 + code),
      UD.sendOnly,
      UD.sendOnlyImm,
      0x81,
      ...low5.map((code) => XRC_BASE + code),
    ];
    assert.equal(OPCODES.length, 256);
    assert.deepEqual(
      OPCODES.filter((info) => info.known).map((info) => info.opcode),
      expected,
    );
    assert.deepEqual(
      OPCODES.map((info) => info.opcode),
      Array.from({ length: 256 }, (_, code) => code),
    );
    assert.equal(OPCODES[0x15]?.name, 'UNKNOWN_0x15');
  });

  it('has datagram headers in order', () => {
    assert.deepEqual(OPCODES[0x64]?.headers, ['DETH']);
    assert.deepEqual(OPCODES[0x65]?.headers, ['DETH', 'ImmDt']);
    assert.deepEqual(OPCODES[0x4a]?.headers, ['RDETH', 'DETH', 'RETH']);
    assert.deepEqual(OPCODES[0x51]?.headers, ['RDETH', 'AETH']);
  });

  it('names the RC codes used in code as the table does', () => {
    assert.equal(Object.keys(RC).length, RC_TABLE.length);
    assert.equal(OPCODES[RC.sendLastInvalidate]?.name, 'RC_SEND_LAST_WITH_INVALIDATE');
    assert.equal(OPCODES[RC.atomicAcknowledge]?.name, 'RC_ATOMIC_ACKNOWLEDGE');
    assert.equal(OPCODES[RC.readResponseMiddle]?.name, 'RC_READ_RESPONSE_MIDDLE');
  });
});

describe('packet layout', () => {
  it('gives header offsets by opcode', () => {
    assert.equal(layout.RETH_OFFSET_OF[0x0a], 12);
    assert.equal(layout.IMMDT_OFFSET_OF[0x0b], 28);
    assert.equal(layout.RETH_OFFSET_OF[0xab], 16);
    assert.equal(layout.IMMDT_OFFSET_OF[0xab], 32);
    assert.equal(layout.DETH_OFFSET_OF[0x64], 12);
    assert.equal(layout.IMMDT_OFFSET_OF[0x65], 20);
    assert.equal(layout.AETH_OFFSET_OF[0x12], 12);
    assert.equal(layout.ATOMIC_ACK_ETH_OFFSET_OF[0x12], 16);
    assert.equal(layout.ATOMIC_ETH_OFFSET_OF[0xb3], 16);
    assert.equal(layout.IETH_OFFSET_OF[0x17], 12);
    assert.equal(layout.AETH_OFFSET_OF[0x0e], 0);
  });

  it('applies the payload rules', () => {
    const allowed = (opcode: number): number[] =>
      [0, 1, 8, 16, 1023, 1024, 1025].filter((length) =>
        layout.payloadLengthAllowed(opcode, length, 1024),
      );
    assert.deepEqual(allowed(RC.sendFirst), [1024]);
    assert.deepEqual(allowed(RC.sendLast), [1, 8, 16, 1023, 1024]);
    assert.deepEqual(allowed(RC.sendOnly), [0, 1, 8, 16, 1023, 1024]);
    assert.deepEqual(allowed(RC.readRequest), [0]);
    assert.deepEqual(allowed(RC.atomicWrite), [8]);
    assert.deepEqual(allowed(0x81), [16]);
  });

  it('refuses what is short, unknown, of another version or misaligned', () => {
    const check = (hex: string): number => {
      const bytes = Uint8Array.from(Buffer.from(hex, 'hex'));
      return layout.checkPacket(new DataView(bytes.buffer), 0, bytes.length);
    };
    const { PACKET_CHECK } = layout;
    const rest = '00000000000000000000';
    assert.equal(check(`0400${rest}`), PACKET_CHECK.ok);
    assert.equal(check(`0400${rest}`.slice(2)), PACKET_CHECK.tooShort);
    assert.equal(check(''), PACKET_CHECK.tooShort);
    for (const dropped of ['2c', '66', 'c0']) {
      assert.equal(check(`${dropped}00${rest}`), PACKET_CHECK.unknownOpcode);
    }
    // A reserved opcode of RC reaches its responder, which refuses it.
    assert.equal(check('1840ffff008296c280f4de0a'), PACKET_CHECK.ok);
    assert.equal(layout.BITS_OF[0x18], OPCODE_BIT.request | OPCODE_BIT.start | OPCODE_BIT.end);
    assert.equal(check(`0401${rest}`), PACKET_CHECK.badTransportVersion);
    assert.equal(check(`1100${rest}`), PACKET_CHECK.truncated);
    assert.equal(check(`0410${rest}`), PACKET_CHECK.truncated);
    assert.equal(check(`0400${rest}00`), PACKET_CHECK.misaligned);
    assert.equal(check(`0430${rest}00000000`), PACKET_CHECK.ok);
  });
});
