/**
 * The messages of dapltest (version 6) on its control connection. Each has 8192 bytes, of which
 * only the first are used: packed C structures with little-endian numbers on every machine. The
 * layouts are those of dapl 2.1.10.
 */
import {
  checkShape,
  MAX_OPERATIONS,
  type Operation,
  type Role,
  type Shape,
  type Transfer,
} from './operations.js';

export const CONTROL_BYTES = 8192;
export const VERSION = 6;
export const DEFAULT_PORT = 62_000;

/** Kinds of test that a client can request. */
export const TestType = { TRANSACTION: 1, PERFORMANCE: 2, QUIT: 4 } as const;
export type TestType = (typeof TestType)[keyof typeof TestType];

/** The first message: the client and the test that it requests. */
export interface ClientInfo {
  readonly version: number;
  /** The client's byte order, in which it expects memory addresses. */
  readonly littleEndian: boolean;
  readonly testType: number;
  /** Ports that a transaction test uses, by the number of its threads. */
  readonly totalThreads: number;
}

/** The answer: the port of the test's connections. */
export interface ServerInfo {
  readonly version: number;
  readonly littleEndian: boolean;
  readonly firstPort: number;
}

export interface TransactionCommand {
  readonly iterations: number;
  readonly threads: number;
  readonly endpointsPerThread: number;
  /** True if the server awaits each connection at a reserved service point. */
  readonly useRsp: boolean;
  readonly validate: boolean;
  /** True if both sides poll for completions instead of waiting. */
  readonly poll: boolean;
  readonly operations: readonly Operation[];
}

export interface PerformanceCommand extends Shape {
  readonly mode: 'blocking' | 'polling';
  readonly iterations: number;
  /** Requests in flight; as many as the device allows if it allows fewer. */
  readonly pipeline: number;
  readonly transfer: Exclude<Transfer, 'SR'>;
}

/** The client's names of server and device; nothing reads them, but C programs print them. */
export interface Names {
  readonly server: string;
  readonly device: string;
  readonly port: number;
}

const TRANSFERS: readonly Transfer[] = ['RR', 'RW', 'SR'];
const OPERATION_BYTES = 20;
const TRANSACTION = {
  serverName: 8,
  iterations: 264,
  threads: 268,
  endpointsPerThread: 272,
  useRsp: 280,
  validate: 288,
  poll: 292,
  port: 296,
  deviceName: 304,
  operationCount: 564,
  operations: 568,
} as const;
const PERFORMANCE = {
  serverName: 8,
  deviceName: 264,
  mode: 528,
  iterations: 532,
  pipeline: 536,
  transfer: 540,
  segmentBytes: 544,
  segments: 548,
  port: 556,
} as const;
const QUIT = { serverName: 0, deviceName: 256, port: 520 } as const;
const NAME_BYTES = 256;

export function writeClientInfo(message: Buffer, info: ClientInfo): void {
  message.fill(0);
  writeWords(message, [info.version, Number(info.littleEndian), info.testType, info.totalThreads]);
}

export function readClientInfo(message: Buffer): ClientInfo {
  const [version = 0, littleEndian, testType = 0, totalThreads = 0] = readWords(message, 4);
  return { version, littleEndian: littleEndian !== 0, testType, totalThreads };
}

export function writeServerInfo(message: Buffer, info: ServerInfo): void {
  message.fill(0);
  writeWords(message, [info.version, Number(info.littleEndian), info.firstPort]);
}

export function readServerInfo(message: Buffer): ServerInfo {
  const [version = 0, littleEndian, firstPort = 0] = readWords(message, 3);
  return { version, littleEndian: littleEndian !== 0, firstPort };
}

export function writeTransaction(message: Buffer, command: TransactionCommand, to: Names): void {
  message.fill(0);
  writeWords(message, [VERSION, 1]);
  writeNames(message, TRANSACTION, to);
  message.writeUInt32LE(command.iterations, TRANSACTION.iterations);
  message.writeUInt32LE(command.threads, TRANSACTION.threads);
  message.writeUInt32LE(command.endpointsPerThread, TRANSACTION.endpointsPerThread);
  message.writeUInt32LE(Number(command.useRsp), TRANSACTION.useRsp);
  message.writeUInt32LE(Number(command.validate), TRANSACTION.validate);
  message.writeUInt32LE(Number(command.poll), TRANSACTION.poll);
  message.writeUInt32LE(command.operations.length, TRANSACTION.operationCount);
  for (const [index, op] of command.operations.entries()) {
    writeWords(message.subarray(TRANSACTION.operations + index * OPERATION_BYTES), [
      Number(op.initiator === 'server'),
      TRANSFERS.indexOf(op.transfer),
      op.segments,
      op.segmentBytes,
      Number(op.reapSendOnReceive),
    ]);
  }
}

/** @throws Error for a message that dapltest never sends */
export function readTransaction(message: Buffer): TransactionCommand {
  const count = message.readUInt32LE(TRANSACTION.operationCount);
  if (count < 1 || count > MAX_OPERATIONS) throw new Error(`a test of ${count} operations`);
  return {
    iterations: message.readUInt32LE(TRANSACTION.iterations),
    threads: message.readUInt32LE(TRANSACTION.threads),
    endpointsPerThread: message.readUInt32LE(TRANSACTION.endpointsPerThread),
    useRsp: message.readUInt32LE(TRANSACTION.useRsp) !== 0,
    validate: message.readUInt32LE(TRANSACTION.validate) !== 0,
    poll: message.readUInt32LE(TRANSACTION.poll) !== 0,
    operations: Array.from({ length: count }, (_, index) => readOperation(message, index)),
  };
}

function readOperation(message: Buffer, index: number): Operation {
  const words = readWords(message.subarray(TRANSACTION.operations + index * OPERATION_BYTES), 5);
  const [byServer, type = -1, segments = 0, segmentBytes = 0, reap] = words;
  const initiator: Role = byServer === 0 ? 'client' : 'server';
  const shape = checkedShape({ segments, segmentBytes }, `operation ${index + 1}`);
  return { initiator, transfer: transferOf(type), ...shape, reapSendOnReceive: reap !== 0 };
}

export function writePerformance(message: Buffer, command: PerformanceCommand, to: Names): void {
  message.fill(0);
  writeWords(message, [VERSION, 1]);
  writeNames(message, PERFORMANCE, to);
  message.writeUInt32LE(Number(command.mode === 'polling'), PERFORMANCE.mode);
  message.writeUInt32LE(command.iterations, PERFORMANCE.iterations);
  message.writeUInt32LE(command.pipeline, PERFORMANCE.pipeline);
  message.writeUInt32LE(TRANSFERS.indexOf(command.transfer), PERFORMANCE.transfer);
  message.writeUInt32LE(command.segmentBytes, PERFORMANCE.segmentBytes);
  message.writeUInt32LE(command.segments, PERFORMANCE.segments);
}

/** @throws Error for a message that dapltest never sends */
export function readPerformance(message: Buffer): PerformanceCommand {
  const transfer = transferOf(message.readUInt32LE(PERFORMANCE.transfer));
  if (transfer === 'SR') throw new Error('a performance test of sends');
  const segmentBytes = message.readUInt32LE(PERFORMANCE.segmentBytes);
  const segments = message.readUInt32LE(PERFORMANCE.segments);
  return {
    mode: message.readUInt32LE(PERFORMANCE.mode) === 0 ? 'blocking' : 'polling',
    iterations: message.readUInt32LE(PERFORMANCE.iterations),
    pipeline: message.readUInt32LE(PERFORMANCE.pipeline),
    transfer,
    ...checkedShape({ segmentBytes, segments }, 'the operation'),
  };
}

export function writeQuit(message: Buffer, to: Names): void {
  message.fill(0);
  writeNames(message, QUIT, to);
}

function writeNames(message: Buffer, at: NamePlaces, { server, device, port }: Names): void {
  // One byte is left, so that the text ends with a zero.
  message.write(server, at.serverName, NAME_BYTES - 1);
  message.write(device, at.deviceName, NAME_BYTES - 1);
  message.writeBigUInt64LE(BigInt(port), at.port);
}

interface NamePlaces {
  readonly serverName: number;
  readonly deviceName: number;
  readonly port: number;
}

function checkedShape(shape: Shape, what: string): Shape {
  checkShape(shape, (why) => {
    throw new Error(`${what}: ${why}`);
  });
  return shape;
}

function transferOf(type: number): Transfer {
  const transfer = TRANSFERS[type];
  if (transfer === undefined) throw new Error(`a transfer of the unknown type ${type}`);
  return transfer;
}

function writeWords(bytes: Buffer, words: readonly number[]): void {
  for (const [index, word] of words.entries()) bytes.writeUInt32LE(word, 4 * index);
}

function readWords(bytes: Buffer, count: number): number[] {
  return Array.from({ length: count }, (_, index) => bytes.readUInt32LE(4 * index));
}
