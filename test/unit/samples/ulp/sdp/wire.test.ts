import assert from 'node:assert/strict';
import { SeededRandom } from '../../../../../providers/mock/index.js';
import {
  type Body,
  emitHead,
  emitHello,
  emitHelloAck,
  headBytes,
  parseHello,
  parseHelloAck,
  parseMessage,
  SdpWireError,
} from '../../../../../samples/ulp/sdp/wire/index.js';

const SEQUENCE = { flags: 0, bufs: 0x3f, mseq: 0x01020304, mseqAck: 0xfffffffe };
const TAIL = '003f'; // bufs
const NUMBERS = '01020304fffffffe';
const ADVERT = { lengthBytes: 0x10000, rkey: 0xdeadbeef, address: 0x1122334455667788n };
const ADVERT_BYTES = '00010000deadbeef1122334455667788';

/** Kind, flags, bufs, length, numbers, extension. */
const GOLDEN: readonly (readonly [Body, string])[] = [
  [{ mid: 'DIS_CONN' }, `0200${TAIL}00000010${NUMBERS}`],
  [{ mid: 'ABORT_CONN' }, `0300${TAIL}00000010${NUMBERS}`],
  [{ mid: 'SEND_SM' }, `0400${TAIL}00000010${NUMBERS}`],
  [{ mid: 'RDMA_WR_COMPL', bytes: 65_535 }, `0500${TAIL}00000014${NUMBERS}0000ffff`],
  [{ mid: 'RDMA_RD_COMPL', bytes: 1 }, `0600${TAIL}00000014${NUMBERS}00000001`],
  [
    { mid: 'MODE_CHANGE', mode: 'PIPELINED', half: 'RECV' },
    `0700${TAIL}00000014${NUMBERS}20000000`,
  ],
  [{ mid: 'MODE_CHANGE', mode: 'COMBINED', half: 'SEND' }, `0700${TAIL}00000014${NUMBERS}90000000`],
  [{ mid: 'MODE_CHANGE', mode: 'BUFFERED', half: 'RECV' }, `0700${TAIL}00000014${NUMBERS}00000000`],
  [{ mid: 'SRC_AVAIL_CANCEL' }, `0800${TAIL}00000010${NUMBERS}`],
  [{ mid: 'SINK_AVAIL_CANCEL' }, `0900${TAIL}00000010${NUMBERS}`],
  [{ mid: 'SINK_CANCEL_ACK' }, `0a00${TAIL}00000010${NUMBERS}`],
  [{ mid: 'CH_RCV_BUF', bytes: 0x8000 }, `0b00${TAIL}00000014${NUMBERS}00008000`],
  [{ mid: 'CH_RCV_BUF_ACK', bytes: 0x4000 }, `0c00${TAIL}00000014${NUMBERS}00004000`],
  [{ mid: 'SUSP_COMM', serviceId: 0x11d2fn }, `0d00${TAIL}00000018${NUMBERS}0000000000011d2f`],
  [{ mid: 'SUSP_COMM_ACK' }, `0e00${TAIL}00000010${NUMBERS}`],
  [
    { mid: 'SINK_AVAIL', ...ADVERT, nonDiscard: 7 },
    `fd00${TAIL}00000024${NUMBERS}${ADVERT_BYTES}00000007`,
  ],
  [{ mid: 'SRC_AVAIL', ...ADVERT }, `fe00${TAIL}00000020${NUMBERS}${ADVERT_BYTES}`],
  [{ mid: 'DATA' }, `ff00${TAIL}00000010${NUMBERS}`],
];

const V4 = Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 192, 0, 2, 1);
const HELLO = {
  ...{ bufs: 64, version: 0x22, isIpv6: false, maxAdverts: 4 },
  ...{ desiredRemoteBytes: 32_768, localBytes: 16_384, localPort: 0xc000 },
  ...{ source: V4, destination: V4 },
};
const HELLO_HEX =
  '000000400000005c0000000000000000' +
  '224000040000800000004000c0000000' +
  '000000000000000000000000c0000201'.repeat(2) +
  '00'.repeat(28);
const ACK = { bufs: 64, version: 0x22, isIpv6: true, maxAdverts: 3, actualBytes: 32_768 };
const ACK_HEX = `01000040000000c40000000000000000${'2260000300008000'}${'00'.repeat(172)}`;

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const bytesOf = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text, 'hex'));

describe('sdp: the wire', () => {
  for (const [body, golden] of GOLDEN) {
    it(`${body.mid} as the tables of the annex have it, both ways`, () => {
      const bytes = new Uint8Array(headBytes(body.mid));
      assert.equal(emitHead(bytes, body, SEQUENCE, 0), bytes.length);
      assert.equal(hex(bytes), golden);
      const { header, body: parsed, payloadAt } = parseMessage(bytesOf(golden));
      assert.deepEqual(parsed, body);
      assert.equal(payloadAt, bytes.length);
      assert.deepEqual(
        [header.flags, header.bufs, header.mseq, header.mseqAck],
        [0, 0x3f, 0x01020304, 0xfffffffe],
      );
    });
  }

  it('Hello and HelloAck, both ways; those of FreeBSD count without the filling', () => {
    assert.equal(hex(emitHello(HELLO)), HELLO_HEX);
    assert.deepEqual(parseHello(bytesOf(HELLO_HEX)), HELLO);
    assert.equal(hex(emitHelloAck(ACK)), ACK_HEX);
    assert.deepEqual(parseHelloAck(bytesOf(ACK_HEX)), ACK);
    const shorter = bytesOf(HELLO_HEX);
    shorter[7] = 76;
    assert.deepEqual(parseHello(shorter.subarray(0, 76)), HELLO);
    const ack = bytesOf(ACK_HEX);
    ack[7] = 180;
    assert.deepEqual(parseHelloAck(ack.subarray(0, 180)), ACK);
  });

  it('extended maximum of advertisements is taken where the capability says so', () => {
    const bytes = bytesOf(HELLO_HEX);
    bytes.set([0x42], 17);
    bytes.set([0x01, 0x2c], 64);
    assert.equal(parseHello(bytes).maxAdverts, 300);
  });

  const BAD: readonly (readonly [string, RegExp])[] = [
    ['ff00', /bytes of a message is 2: it must be 16 or more/],
    [`4200${TAIL}00000010${NUMBERS}`, /bsdh.mid is 66/],
    [`0000${TAIL}00000010${NUMBERS}`, /bsdh.mid is 0: it must be no Hello/],
    [`ff08${TAIL}00000010${NUMBERS}`, /bsdh.flags is 8/],
    [`ff00${TAIL}00000011${NUMBERS}`, /bsdh.len is 17: it must be the 16 bytes/],
    [`0200${TAIL}00000011${NUMBERS}00`, /bsdh.len is 17: it must be 16 in DIS_CONN/],
    [`0500${TAIL}00000013${NUMBERS}000000`, /bsdh.len is 19: it must be 20 in RDMA_WR_COMPL/],
    [`fe00${TAIL}0000001f${NUMBERS}${ADVERT_BYTES.slice(2)}`, /it must be 32 or more in SRC_AVAIL/],
    [`fe00${TAIL}00000020${NUMBERS}00000000${ADVERT_BYTES.slice(8)}`, /length of an advert/],
    [`0700${TAIL}00000014${NUMBERS}30000000`, /modeChange.mode is 3: it must be 0 to 2/],
  ];
  for (const [text, message] of BAD) {
    it(`refuses ${text.slice(0, 4)}: ${message.source}`, () => {
      assert.throws(
        () => parseMessage(bytesOf(text)),
        (error) => error instanceof SdpWireError && message.test(error.message),
      );
    });
  }

  it('refuses to send what a field does not hold', () => {
    const bytes = new Uint8Array(64);
    const sequence = { ...SEQUENCE, bufs: 65_536 };
    assert.throws(() => emitHead(bytes, { mid: 'DATA' }, sequence, 0), /is 65536: it must be 0 to/);
    const body = { mid: 'SUSP_COMM', serviceId: 1n << 64n } as const;
    assert.throws(() => emitHead(bytes, body, SEQUENCE, 0), RangeError);
  });

  it('any bytes are a message, or an error that names a field: 20,000 of them', () => {
    const random = new SeededRandom(22);
    let parsed = 0;
    for (let i = 0; i < 20_000; i++) {
      const bytes = bytesOf(random.pick(GOLDEN)[1]);
      for (let n = random.below(3); n >= 0; n--)
        bytes[random.below(bytes.length)] = random.below(256);
      const cut = random.below(4) === 0 ? bytes.subarray(0, random.below(bytes.length)) : bytes;
      try {
        const { header, body, payloadAt } = parseMessage(cut);
        const again = new Uint8Array(payloadAt);
        emitHead(again, body, header, cut.length - payloadAt);
        const { body: twice } = parseMessage(Uint8Array.of(...again, ...cut.subarray(payloadAt)));
        assert.deepEqual(twice, body);
        parsed++;
      } catch (error) {
        assert.ok(error instanceof SdpWireError, String(error));
      }
    }
    assert.ok(parsed > 1000, `${parsed} were messages`);
  });
});
