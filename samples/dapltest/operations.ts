/** The operations of a test, as the command line spells them: `client RW 4096 2`. */

export type Role = 'client' | 'server';

/** SR: send and receive; RR: RDMA read; RW: RDMA write. */
export type Transfer = 'RR' | 'RW' | 'SR';

/** The shape of one transfer: a number of segments of one size. */
export interface Shape {
  readonly segmentBytes: number;
  readonly segments: number;
}

export interface Operation extends Shape {
  /** The side that sends, reads or writes. */
  readonly initiator: Role;
  readonly transfer: Transfer;
  /** `-f`: a client's send is completed together with the next such receive. */
  readonly reapSendOnReceive: boolean;
}

export const MAX_OPERATIONS = 100;
export const DEFAULT_SHAPE: Shape = { segmentBytes: 4096, segments: 1 };
export const MAX_TRANSFER_BYTES = 1 << 30;

/** Messages that `-V` appends: each side learns when the other touches nothing more. */
const BARRIERS: readonly Operation[] = (['server', 'client', 'server'] as const).map(
  (initiator) => ({ ...DEFAULT_SHAPE, initiator, transfer: 'SR', reapSendOnReceive: false }),
);

export const BARRIER_COUNT = BARRIERS.length;

export function lengthOf({ segmentBytes, segments }: Shape): number {
  return segmentBytes * segments;
}

/**
 * Parses the operations of a transaction test, and adds those for validation. @throws Error, in a
 * sentence
 */
export function parseOperations(words: readonly string[], validate: boolean): Operation[] {
  const operations = splitOperations(words).map(parseOperation);
  for (const initiator of ['client', 'server'] as const) {
    if (!operations.some((op) => op.initiator === initiator && op.transfer === 'SR')) {
      throw new Error(
        `at least one "client SR" and one "server SR" are needed: they keep the sides in step`,
      );
    }
  }
  checkReaps(operations);
  const all = validate ? [...operations, ...BARRIERS] : operations;
  if (all.length > MAX_OPERATIONS) {
    throw new Error(`${all.length} operations, at most ${MAX_OPERATIONS}`);
  }
  return all;
}

/** Splits the words into operations: each begins with its side. */
function splitOperations(words: readonly string[]): string[][] {
  const operations: string[][] = [];
  for (const word of words) {
    const current = operations.at(-1);
    if (isRole(word) || current === undefined) operations.push([word]);
    else current.push(word);
  }
  return operations;
}

function parseOperation(words: readonly string[]): Operation {
  const [initiator = '', transfer = '', ...rest] = words;
  const fail = (why: string): never => {
    throw new Error(`operation "${words.join(' ')}": ${why}`);
  };
  checkOptions(words);
  if (!isRole(initiator)) return fail('it begins with "client" or "server"');
  if (!isTransfer(transfer)) return fail('next comes SR, RR or RW');
  const reapSendOnReceive = rest.at(-1) === '-f';
  if (reapSendOnReceive && transfer !== 'SR') return fail('-f belongs to SR');
  const numbers = reapSendOnReceive ? rest.slice(0, -1) : rest;
  return { initiator, transfer, ...parseShape(numbers, fail), reapSendOnReceive };
}

/** Rejects options after the first operation, except the `-f` at the end of one. */
function checkOptions(words: readonly string[]): void {
  const option = words.find(
    (word, i) => /^-(?!\d)/.test(word) && !(word === '-f' && i > 1 && i === words.length - 1),
  );
  if (option === undefined) return;
  const hint = option === '-f' ? ' (it may end an SR)' : '';
  throw new Error(`options stand before the operations: ${option}${hint}`);
}

/** `[bytes of a segment] [segments]`. */
export function parseShape(words: readonly string[], fail: (why: string) => never): Shape {
  if (words.length > 2) fail('that is too much: bytes of a segment, segments');
  const [bytes, count] = words.map((word) => (/^\d+$/.test(word) ? Number(word) : fail(NUMBERS)));
  const shape = { segmentBytes: bytes ?? 4096, segments: count ?? 1 };
  checkShape(shape, fail);
  return shape;
}

const NUMBERS = 'bytes of a segment and segments are numbers';

/** Checks a shape, which may come from a peer. */
export function checkShape(shape: Shape, fail: (why: string) => never): void {
  if (shape.segments < 1) fail('there is at least one segment');
  if (shape.segments > 256) fail('there are at most 256 segments');
  if (lengthOf(shape) > MAX_TRANSFER_BYTES) fail(`at most ${MAX_TRANSFER_BYTES} bytes`);
}

/** Checks that each `server SR -f` has a `client SR -f` before it to complete. */
function checkReaps(operations: readonly Operation[]): void {
  let deferred = 0;
  for (const { initiator, reapSendOnReceive } of operations) {
    if (!reapSendOnReceive) continue;
    deferred += initiator === 'client' ? 1 : -1;
    if (deferred < 0) break;
  }
  if (deferred !== 0) throw new Error('-f comes in pairs: first a "client SR", then a "server SR"');
}

function isRole(word: string): word is Role {
  return word === 'client' || word === 'server';
}

export function isTransfer(word: string): word is Transfer {
  return word === 'RR' || word === 'RW' || word === 'SR';
}
