/** Two UC queue pairs, connected. */
import {
  Access,
  QpType,
  type QueuePair,
  type QueuePairInit,
  WrOpcode,
} from '../../core/spi/index.js';
import { connectUc, HcaPair, type SendRequest } from './hca-pair.js';

export const MTU = 1024;

export const ALL = Access.LOCAL_WRITE | Access.REMOTE_WRITE;

interface Connected {
  readonly pair: HcaPair;
  readonly qpA: QueuePair;
  readonly qpB: QueuePair;
}

export function connected(init: Partial<QueuePairInit> = {}, accessFlags: number = ALL): Connected {
  const pair = new HcaPair(4);
  const qpA = pair.a.createQp({ type: QpType.UC });
  const qpB = pair.b.createQp({ type: QpType.UC, ...init });
  connectUc(pair, qpA, qpB, { accessFlags });
  for (let i = 0; i < 8192; i++) pair.a.bytes[i] = (i % 251) | 1;
  return { pair, qpA, qpB };
}

export const send = (length: number, cookie = 0): SendRequest => ({
  opcode: WrOpcode.SEND,
  segments: [{ offset: 0, length }],
  cookie,
});
export const write = (pair: HcaPair, length: number, offset = 0x4000): SendRequest => ({
  opcode: WrOpcode.RDMA_WRITE,
  segments: [{ offset: 0, length }],
  remoteAddress: pair.b.base + BigInt(offset),
  rkey: pair.b.region.rkey,
});
export const area = (offset: number, length = 4096): { offset: number; length: number }[] => [
  { offset, length },
];
export const copied = (pair: HcaPair, at: number, length: number): boolean =>
  Buffer.compare(pair.b.bytes.subarray(at, at + length), pair.a.bytes.subarray(0, length)) === 0;

/** Loses those of a's packets whose numbers, counted from 0, are listed. */
export function lose(pair: HcaPair, ...numbers: readonly number[]): void {
  let count = 0;
  pair.a.port.filter = (packet) => (numbers.includes(count++) ? [] : [packet]);
}
