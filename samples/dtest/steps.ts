/** The steps of dtest: the same on both sides, except for the one that begins. */
import { setImmediate } from 'node:timers/promises';

import { CompletionFlags, type LmrSegment } from 'dapl';

import { completed, received } from '../endpoint.js';
import { type Print, reportRounds, reportWrites } from './report.js';
import { LAST_WRITE_IMMEDIATE, MESSAGE_MARK, MESSAGE_ROUNDS, PATTERNS, READS } from './protocol.js';
import type { Session } from './session.js';

export async function runSteps(session: Session, print: Print): Promise<void> {
  switch (session.steps.mode) {
    case 'write-ping-pong':
      for (const length of session.steps.lengths) await writePingPong(session, length, print);
      return;
    case 'writes':
      return writesWithImmediate(session, print);
    case 'all':
      await writes(session, print);
      await reads(session, print);
      return messages(session, print);
  }
}

/** Many writes to the same memory; then each side says that it is done. */
async function writes(session: Session, print: Print): Promise<void> {
  const { role, steps, outbox, inbox } = session;
  const start = performance.now();
  writeText(outbox.bytes, `${role} RDMA write data...`);
  if (isWriter(session)) await writeBurst(session, false);
  await meet(session);
  if (isWriter(session)) reportWrites(print, steps, performance.now() - start);
  print(`${role.toUpperCase()}: RDMA write buffer contains: ${readText(inbox.bytes)}`);
}

/** The same, but the last write has an immediate, which tells the peer that it is done. */
async function writesWithImmediate(session: Session, print: Print): Promise<void> {
  const { role, steps, outbox, inbox } = session;
  const start = performance.now();
  writeText(outbox.bytes, `${role} RDMA write data...`);
  if (isWriter(session)) await writeBurst(session, true);
  if (role === 'server' || !steps.unidirectional) {
    const immediate = await session.takeImmediate();
    if (immediate !== LAST_WRITE_IMMEDIATE) {
      throw new Error(`the last write came with 0x${immediate?.toString(16)}`);
    }
  }
  await meet(session);
  if (isWriter(session)) reportWrites(print, steps, performance.now() - start);
  print(`${role.toUpperCase()}: last byte=${inbox.bytes[steps.lengthBytes - 1]}`);
}

async function writeBurst(session: Session, withImmediate: boolean): Promise<void> {
  const { endpoint, steps, outbox } = session;
  const { burst, signalRate, lengthBytes } = steps;
  const segment = outbox.segment(0, lengthBytes);
  const remote = session.theRemote();
  for (let index = 0; index < burst; index++) {
    const isSignalled = (index + 1) % signalRate === 0;
    const flags = isSignalled ? CompletionFlags.DEFAULT : CompletionFlags.SUPPRESS;
    if (withImmediate) outbox.bytes[lengthBytes - 1] = index;
    if (withImmediate && index === burst - 1) {
      const immediate = LAST_WRITE_IMMEDIATE;
      endpoint.ep.postRdmaWriteWithImmediate(segment, index, remote, immediate, flags);
    } else {
      endpoint.ep.postRdmaWrite(segment, index, remote, flags);
    }
    if (isSignalled) await completed(endpoint, index, lengthBytes, 'RDMA write');
  }
}

/** Four reads of the peer's memory, one after the other. */
async function reads(session: Session, print: Print): Promise<void> {
  const { endpoint, role, steps, outbox, inbox } = session;
  writeText(inbox.bytes, `${role} RDMA read data...`);
  const segment = outbox.segment(0, steps.lengthBytes);
  for (let index = 0; index < READS; index++) {
    endpoint.ep.postRdmaRead(segment, index, session.theRemote());
    await completed(endpoint, index, steps.lengthBytes, 'RDMA read');
  }
  session.tellDone();
  await session.awaitDone();
  print(`${role.toUpperCase()}: RDMA read buffer contains: ${readText(outbox.bytes)}`);
}

/** A hundred messages in each direction, each with its own buffer. */
async function messages(session: Session, print: Print): Promise<void> {
  const { endpoint, role, steps, inbox, outbox } = session;
  const { lengthBytes } = steps;
  const place = (lmr: typeof inbox, round: number): LmrSegment =>
    lmr.segment(round * lengthBytes, lengthBytes);
  for (let round = 0; round < MESSAGE_ROUNDS; round++) {
    endpoint.ep.postRecv(place(inbox, round), round);
  }
  const send = (round: number): void => {
    const segment = place(outbox, round);
    segment.bytes[0] = MESSAGE_MARK[role];
    endpoint.ep.postSend(segment, round, CompletionFlags.SUPPRESS);
  };
  const peer = role === 'client' ? 'server' : 'client';
  const start = performance.now();
  for (let round = 0; round < MESSAGE_ROUNDS; round++) {
    if (role === 'client') send(round);
    await received(endpoint, round, lengthBytes, `message ${round}`);
    const mark = place(inbox, round).bytes[0];
    if (mark !== MESSAGE_MARK[peer]) throw new Error(`message ${round} begins with ${mark}`);
    if (role === 'server') send(round);
  }
  reportRounds(print, 'Message', MESSAGE_ROUNDS, lengthBytes, performance.now() - start);
}

/** Ping-pong of writes: each side polls the last byte of its memory for the number of the round. */
async function writePingPong(session: Session, length: number, print: Print): Promise<void> {
  const { endpoint, role, steps, outbox } = session;
  const segment = outbox.segment(0, length);
  const remote = session.theRemote();
  const start = performance.now();
  for (let round = 0; round < steps.burst; round++) {
    if (role === 'server') await awaitRound(session, length, round);
    if (steps.checkData) fillRound(session, length, round);
    segment.bytes[length - 1] = round + 1;
    // The client may disconnect after the server's last write.
    const isLast = role === 'server' && round + 1 === steps.burst;
    const isSignalled = (round + 1) % steps.signalRate === 0 && !isLast;
    const flags = isSignalled ? CompletionFlags.DEFAULT : CompletionFlags.SUPPRESS;
    endpoint.ep.postRdmaWrite(segment, round, remote, flags);
    if (isSignalled) await completed(endpoint, round, length, 'RDMA write');
    if (role === 'client') await awaitRound(session, length, round);
  }
  reportRounds(print, 'RDMA write', steps.burst, length, performance.now() - start);
}

async function awaitRound(session: Session, length: number, round: number): Promise<void> {
  const { endpoint, role, steps, inbox, outbox } = session;
  while (inbox.bytes[length - 1] !== ((round + 1) & 0xff)) {
    if (endpoint.ep.state !== 'CONNECTED')
      throw new Error(`the peer disconnected in round ${round}`);
    await setImmediate();
  }
  if (!steps.checkData || length === 1) return;
  const [came, sent] = [inbox.bytes.subarray(0, length), outbox.bytes.subarray(0, length)];
  if (role === 'client') {
    if (Buffer.compare(came, sent) !== 0) throw new Error(`round ${round} came back changed`);
    return;
  }
  const expected = PATTERNS[round % PATTERNS.length];
  if (expected === undefined) return;
  const wrong = came.subarray(0, -1).findIndex((byte) => byte !== expected);
  if (wrong >= 0) throw new Error(`round ${round}: byte ${wrong} is ${came[wrong]}`);
}

/** Fills the buffer of a round: the client makes up the data, the server echoes it. */
function fillRound({ role, inbox, outbox }: Session, length: number, round: number): void {
  const bytes = outbox.bytes.subarray(0, length - 1);
  if (role === 'server') bytes.set(inbox.bytes.subarray(0, length - 1));
  else bytes.fill(PATTERNS[round % PATTERNS.length] ?? (length + round) & 0xff);
}

/** Each side says that it is done, the client first. */
async function meet(session: Session): Promise<void> {
  if (session.role === 'client') session.tellDone();
  await session.awaitDone();
  if (session.role === 'server') session.tellDone();
}

function isWriter({ role, steps }: Session): boolean {
  return role === 'client' || !steps.unidirectional;
}

/** Writes the text, as much as fits, and a zero byte. */
function writeText(bytes: Uint8Array, text: string): void {
  const { written } = new TextEncoder().encodeInto(text, bytes.subarray(0, -1));
  bytes[written] = 0;
}

function readText(bytes: Uint8Array): string {
  const end = bytes.indexOf(0);
  return Buffer.from(bytes.subarray(0, end < 0 ? bytes.length : Math.min(end, 80))).toString(
    'latin1',
  );
}
