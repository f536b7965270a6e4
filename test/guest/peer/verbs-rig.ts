// Two queue pairs of one process over a real device, and what checks of them need.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { CompletionQueue, QueuePair } from '../../../core/spi/device/device.js';
import { Access, nameOf, type QpType, WcOpcode, WcStatus } from '../../../core/spi/wire/ib.js';
import { silentLogger } from '../../../core/spi/plugin/logger.js';
import { VerbsDevice } from '../../../providers/verbs/device.js';
import { loadVerbsAddon } from '../../../providers/verbs/addon/native-addon.js';
import { connect } from '../../fake-verbs/connect.js';
import { type Completion, drain, type Segment } from '../../fake-verbs/work.js';

const name = process.argv[2] ?? 'rxe0';
const BYTES = 1 << 20;
const addon = loadVerbsAddon();
const missing = addon.load('verbs');
if (missing !== undefined) throw new Error(missing);
export const device = new VerbsDevice({
  addon,
  name,
  logger: { ...silentLogger, error: (message, fields) => console.log(message, fields) },
});
device.setEventHandler((event) => console.log(`device event ${event}`));
export const pd = device.createProtectionDomain();
export const memory = new Uint8Array(device.allocate(BYTES));
const EVERYTHING =
  Access.LOCAL_WRITE |
  Access.REMOTE_WRITE |
  Access.REMOTE_READ |
  Access.REMOTE_ATOMIC |
  Access.MW_BIND;
export const region = pd.registerMemory(memory, EVERYTHING, 0x7000_0000_0000n);
export const notified: string[] = [];
export const events: [string, number][] = [];

function queue(role: string): CompletionQueue {
  return device.createCompletionQueue({
    minEntries: 64,
    onNotify: () => notified.push(role),
    onEvent: (event) => events.push([role, event]),
  });
}
export const cqs = { a: queue('a'), b: queue('b') };

export function pair(type: QpType, side: 'a' | 'b', options: object = {}): QueuePair {
  return device.createQueuePair({
    type,
    pd,
    sendCq: cqs[side],
    receiveCq: cqs[side],
    maxSendWr: 16,
    maxReceiveWr: 16,
    maxSendSge: 4,
    maxReceiveSge: 4,
    maxInlineBytes: 64,
    context: side === 'a' ? 1 : 2,
    onEvent: (event) => events.push([side, event]),
    ...options,
  });
}

export const at = (offset: number, length: number): Segment => ({
  address: region.iova + BigInt(offset),
  length,
  lkey: region.lkey,
});
export const remote = (offset: number): { address: bigint; rkey: number } => ({
  address: region.iova + BigInt(offset),
  rkey: region.rkey,
});
export const put = (offset: number, text: string): void => memory.set(Buffer.from(text), offset);
export const text = (offset: number, length: number): string =>
  Buffer.from(memory.subarray(offset, offset + length)).toString();

/** Completions of one queue, until there are `count`. */
export async function take(cq: CompletionQueue, count: number): Promise<Completion[]> {
  const got: Completion[] = [];
  for (let i = 0; i < 2000 && got.length < count; i++) {
    got.push(...drain(cq));
    if (got.length < count) await sleep(5);
  }
  assert.equal(got.length, count, `completions: ${JSON.stringify(got.map(brief))}`);
  return got;
}
export const brief = (c: Completion): string =>
  `${c.index}:${nameOf(WcOpcode, c.opcode)}:${nameOf(WcStatus, c.status)}:${c.vendorError}`;
export const ok = (completions: readonly Completion[]): void => {
  for (const c of completions) assert.equal(c.status, WcStatus.SUCCESS, brief(c));
};

/** How many checks have failed. */
export const failures: string[] = [];
export async function check(what: string, body: () => Promise<void>): Promise<void> {
  try {
    await body();
    console.log(`ok   ${what}`);
  } catch (error) {
    failures.push(what);
    console.log(`FAIL ${what}: ${error instanceof Error ? error.stack : String(error)}`);
  }
}

export async function connected(
  type: QpType,
  body: (a: QueuePair, b: QueuePair) => Promise<void>,
): Promise<void> {
  const a = pair(type, 'a');
  const b = pair(type, 'b');
  try {
    connect(device, a, b);
    connect(device, b, a);
    await body(a, b);
  } finally {
    a.destroy();
    b.destroy();
    drain(cqs.a);
    drain(cqs.b);
  }
}
