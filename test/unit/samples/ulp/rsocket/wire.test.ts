// Golden bytes of librdmacm's rsockets, as captured between two Linux kernels, both ways.
import assert from 'node:assert/strict';
import {
  announcedSlots,
  argumentOf,
  type ConnectionData,
  Control,
  decodeConnectionData,
  encodeConnectionData,
  immediateOf,
  iomapAt,
  type IomapEntry,
  Operation,
  operationOf,
  readIomap,
  readTarget,
  type RemoteRegion,
  RsocketProtocolError,
  targetAt,
  writeIomap,
  writeTarget,
} from '../../../../../samples/ulp/rsocket/wire/index.js';

const bytesOf = (hex: string): Uint8Array => Buffer.from(hex.replaceAll(' ', ''), 'hex');
const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

/** riostream's request. */
const CAPTURED = bytesOf(
  '01 02 0180 000000 01  00005617c48fd000 063b199b 00000002  00007f80faa94000 063b1ab1 00080000',
);
const DATA: ConnectionData = {
  isBigEndian: false,
  credits: 384,
  iomapSlots: 1,
  targetList: { address: 0x5617c48fd000n, key: 0x063b199b, length: 2 },
  buffer: { address: 0x7f80faa94000n, key: 0x063b1ab1, length: 0x80000 },
};

function changed(at: number, ...values: number[]): Uint8Array {
  const bytes = Uint8Array.from(CAPTURED);
  bytes.set(values, at);
  return bytes;
}

describe('rsocket: connection data', () => {
  it('is what librdmacm sends', () => {
    assert.equal(hexOf(encodeConnectionData(DATA)), hexOf(CAPTURED));
    assert.deepEqual(decodeConnectionData(CAPTURED), DATA);
  });

  it('comes with zeros behind it', () => {
    const padded = new Uint8Array(196);
    padded.set(CAPTURED);
    assert.deepEqual(decodeConnectionData(padded), DATA);
  });

  it('says which order the sender keeps numbers in', () => {
    assert.equal(decodeConnectionData(changed(1, 0x03)).isBigEndian, true);
    assert.equal(encodeConnectionData({ ...DATA, isBigEndian: true })[1], 0x03);
  });

  it('has no slots where the sender takes no iomaps', () => {
    assert.equal(decodeConnectionData(changed(1, 0x00)).iomapSlots, 0);
  });

  it('has slots in one byte: to 128 as they are, more in units of 256', () => {
    for (const slots of [0, 1, 127, 256, 512, 32_512]) {
      const bytes = encodeConnectionData({ ...DATA, iomapSlots: slots });
      assert.equal(decodeConnectionData(bytes).iomapSlots, slots);
    }
    assert.deepEqual(
      [0, 1, 128, 129, 256, 257, 40_000].map(announcedSlots),
      [0, 1, 256, 256, 256, 512, 32_512],
    );
  });

  const REFUSED: readonly (readonly [Uint8Array, RegExp])[] = [
    [CAPTURED.subarray(0, 39), /private data is 39, must be at least 40 bytes/],
    [changed(0, 2), /version is 2, must be 1$/],
    [changed(0, 0), /version is 0, must be 1$/],
    [changed(2, 0, 0), /credits is 0, must be 1 to 65535/],
    [changed(20, 0, 0, 0, 3), /entries is 3, must be 2/],
    [changed(20, 0, 0, 0, 0), /entries is 0, must be 2/],
    [changed(36, 0, 0, 0, 0), /buffer length is 0/],
    [
      changed(24, ...Array<number>(8).fill(0xff)),
      /buffer length is 524288, must be at most 1 bytes/,
    ],
    [
      changed(8, ...Array<number>(8).fill(0xff)),
      /target list length is 56, must be at most 1 bytes/,
    ],
  ];
  for (const [bytes, message] of REFUSED) {
    it(`is refused: ${message.source}`, () => {
      assert.throws(
        () => decodeConnectionData(bytes),
        (error) => error instanceof RsocketProtocolError && message.test(error.message),
      );
    });
  }
});

describe('rsocket: messages', () => {
  it('are what librdmacm sends', () => {
    assert.equal(immediateOf(Operation.TARGET, 384), 0x80000180);
    assert.equal(immediateOf(Operation.CONTROL, Control.DISCONNECT), 0xe0000000);
    assert.equal(immediateOf(Operation.CONTROL, Control.SHUTDOWN), 0xe0000002);
    assert.equal(immediateOf(Operation.IOMAP, 5), 0xc0000005);
    assert.equal(immediateOf(Operation.DATA, 5), 5);
  });

  it('are read as they are written', () => {
    for (const operation of Object.values(Operation)) {
      for (const argument of [0, 1, 0x1fff_ffff]) {
        const immediate = immediateOf(operation, argument);
        assert.deepEqual([operationOf(immediate), argumentOf(immediate)], [operation, argument]);
      }
    }
  });
});

describe('rsocket: entries', () => {
  const region: RemoteRegion = { address: 0x5617c48ea810n, key: 0x063b1b07, length: 3000 };
  const iomap: IomapEntry = { offset: 0n, region };
  /** As captured: 3000 bytes at offset 0. */
  const ENTRY = bytesOf('0000000000000000 10a88ec417560000 071b3b06 b80b0000');
  const viewOf = (bytes: Uint8Array): DataView =>
    new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

  it('of an iomap are what librdmacm writes', () => {
    const bytes = new Uint8Array(24);
    writeIomap(viewOf(bytes), 0, iomap, true);
    assert.equal(hexOf(bytes), hexOf(ENTRY));
    assert.deepEqual(readIomap(viewOf(ENTRY), 0, true), iomap);
  });

  it('are in the order of the machine that reads them', () => {
    for (const isLittle of [true, false]) {
      const bytes = new Uint8Array(16);
      writeTarget(viewOf(bytes), 0, region, isLittle);
      assert.deepEqual(readTarget(viewOf(bytes), 0, isLittle), region);
      assert.equal(bytes[isLittle ? 0 : 7], 0x10);
    }
  });

  it('stand one behind the other: targets, then iomaps', () => {
    assert.deepEqual([0, 1].map(targetAt), [0, 16]);
    assert.deepEqual(
      [0, 1, 2].map((slot) => iomapAt(slot, 2)),
      [32, 56, 80],
    );
  });
});
