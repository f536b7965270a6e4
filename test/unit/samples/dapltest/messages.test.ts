import assert from 'node:assert/strict';

import { readMemoryInfo, writeMemoryInfo } from '../../../../samples/dapltest/memory-info.js';
import {
  CONTROL_BYTES,
  type PerformanceCommand,
  readClientInfo,
  readPerformance,
  readServerInfo,
  readTransaction,
  type TransactionCommand,
  writeClientInfo,
  writePerformance,
  writeServerInfo,
  writeTransaction,
} from '../../../../samples/dapltest/messages.js';
import { parseOperations } from '../../../../samples/dapltest/operations.js';

/** What is not zero in messages that dapltest 2.1.10 has sent, captured. */
const CLIENT_INFO: Parts = { 0: '06000000010000000200000001000000' };
const TRANSACTION: Parts = {
  0: '060000000100000031302e37372e302e31000000',
  264: '0400000001000000010000000000000001000000000000000100000001000000',
  296: '30f20000000000006f66612d76322d7278650000',
  564: '0b000000000000000200000001000000000100000000000001000000020000000100000001040000',
  612: '0100000001000000112700000000000001000000010000000100000070110100',
  656: '01000000011000000000000001000000000000000100000000080000',
  692: '02000000010000000100000000000000010000000200000001000000204e00000000000001000000',
  732: '020000000100000000100000',
  752: '0200000001000000001000000000000001000000020000000100000000100000',
};
const PERFORMANCE: Parts = {
  0: '060000000100000031302e37372e302e31000000',
  264: '6f66612d76322d7278650000',
  532: '32000000100000000100000000200000010000000000000030f20000',
};

type Parts = Readonly<Record<number, string>>;

function messageOf(parts: Parts): Buffer {
  const message = Buffer.alloc(CONTROL_BYTES);
  for (const [at, hex] of Object.entries(parts)) message.write(hex, Number(at), 'hex');
  return message;
}

const NAMES = { server: '10.77.0.1', device: 'ofa-v2-rxe', port: 62_000 };
const MIX =
  'client SR 256 server SR 1025 client RW 10001 server RW 70000 ' +
  'client RR 4097 server RR 2048 client SR 1 server SR 20000';
const transaction: TransactionCommand = {
  iterations: 4,
  threads: 1,
  endpointsPerThread: 1,
  useRsp: true,
  validate: true,
  poll: true,
  operations: parseOperations(MIX.split(' '), true),
};
const performanceTest: PerformanceCommand = {
  mode: 'blocking',
  iterations: 50,
  pipeline: 16,
  transfer: 'RW',
  segmentBytes: 8192,
  segments: 1,
};

describe('dapltest messages', () => {
  const message = Buffer.alloc(CONTROL_BYTES);
  beforeEach(() => message.fill(0xee));

  it('writes to the byte what the C program writes', () => {
    writeTransaction(message, transaction, NAMES);
    assert.deepEqual(message, messageOf(TRANSACTION));
    writePerformance(message, performanceTest, NAMES);
    assert.deepEqual(message, messageOf(PERFORMANCE));
    const info = { version: 6, littleEndian: true, testType: 2, totalThreads: 1 };
    writeClientInfo(message, info);
    assert.deepEqual(message, messageOf(CLIENT_INFO));
  });

  it('reads what the C program writes', () => {
    assert.deepEqual(readTransaction(messageOf(TRANSACTION)), transaction);
    assert.deepEqual(readPerformance(messageOf(PERFORMANCE)), performanceTest);
    const client = readClientInfo(messageOf(CLIENT_INFO));
    assert.deepEqual(client, { version: 6, littleEndian: true, testType: 2, totalThreads: 1 });
    const server = { version: 6, littleEndian: false, firstPort: 62_001 };
    writeServerInfo(message, server);
    assert.deepEqual(readServerInfo(message), server);
  });

  it('refuses what no dapltest writes', () => {
    const changed = (at: number, value: number, parts = TRANSACTION): Buffer => {
      const bytes = messageOf(parts);
      bytes.writeUInt32LE(value, at);
      return bytes;
    };
    assert.throws(() => readTransaction(changed(564, 101)), /a test of 101 operations/);
    assert.throws(() => readTransaction(changed(564, 0)), /a test of 0 operations/);
    assert.throws(() => readTransaction(changed(572, 3)), /unknown type 3/);
    assert.throws(() => readTransaction(changed(576, 0)), /operation 1: .* at least one segment/);
    assert.throws(
      () => readTransaction(changed(580, 0xffffffff)),
      /operation 1: at most \d+ bytes/,
    );
    assert.throws(() => readPerformance(changed(540, 2, PERFORMANCE)), /performance test of sends/);
    assert.throws(() => readPerformance(changed(548, 0xffff, PERFORMANCE)), /at most 256 segments/);
  });

  it('tells of memory in the order that the reader wants', () => {
    const place = { rmrContext: 0x01020304, address: 0x1112131415161718n };
    for (const [littleEndian, hex] of [
      [true, '040302011817161514131211'],
      [false, '010203041112131415161718'],
    ] as const) {
      const bytes = Buffer.alloc(12);
      writeMemoryInfo(bytes, place, littleEndian);
      assert.equal(bytes.toString('hex'), hex);
      assert.deepEqual(readMemoryInfo(bytes, littleEndian), place);
    }
  });
});
