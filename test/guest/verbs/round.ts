/**
 * Requests of one requester to one responder, planned together with what must come of them: the
 * completions of both, the bytes in every memory, the packets on the wire.
 */
import assert from 'node:assert/strict';

import { Access, nameOf, WcOpcode, WrFlags, WrOpcode } from '../../../core/spi/index.js';
import { type Kind, OPCODE, opcodesOf, readResponseOpcodes } from '../roce.js';
import type { Completion, Domain, Region, Request, Segment } from './end.js';
import { digestOf, fillPattern } from './pattern.js';
import type { Party } from './scene.js';

/** Everything is moved by so many bytes from where it would be aligned. */
const SOURCE_OFFSET = 1;
const MARGIN = 16;
const SEED = 5;
const ALL = Access.LOCAL_WRITE | Access.REMOTE_WRITE | Access.REMOTE_READ;

const WC_OF: Readonly<Record<number, number>> = {
  [WrOpcode.SEND]: WcOpcode.SEND,
  [WrOpcode.SEND_WITH_IMM]: WcOpcode.SEND,
  [WrOpcode.SEND_WITH_INV]: WcOpcode.SEND,
  [WrOpcode.RDMA_WRITE]: WcOpcode.RDMA_WRITE,
  [WrOpcode.RDMA_WRITE_WITH_IMM]: WcOpcode.RDMA_WRITE,
  [WrOpcode.RDMA_READ]: WcOpcode.RDMA_READ,
};

const KIND_OF: Readonly<Record<number, Kind>> = {
  [WrOpcode.SEND]: 'send',
  [WrOpcode.SEND_WITH_IMM]: 'send-immediate',
  [WrOpcode.SEND_WITH_INV]: 'send-invalidate',
  [WrOpcode.RDMA_WRITE]: 'write',
  [WrOpcode.RDMA_WRITE_WITH_IMM]: 'write-immediate',
};

export interface Planned {
  readonly opcode: WrOpcode;
  readonly flags?: number;
  /** Or the key to invalidate. */
  readonly immediate?: number;
  /** Into how many segments the bytes go on either side. */
  readonly pieces?: number;
}

/** Opcodes that each side must have sent, as often as they stand here. */
export interface ExpectedPackets {
  readonly requests: number[];
  readonly responses: number[];
  solicited: number;
}

export const noPackets = (): ExpectedPackets => ({ requests: [], responses: [], solicited: 0 });

export interface RoundOptions {
  readonly requester: Party;
  readonly responder: Party;
  readonly domains: { readonly requester: Domain; readonly responder: Domain };
  readonly mtuBytes: number;
  /** Bytes of each message. */
  readonly lengthBytes: number;
  readonly expected: ExpectedPackets;
}

/** Memory of one side and what it must hold in the end. */
interface Area {
  readonly region: Region;
  readonly model: Uint8Array;
}

/** Plays the requests in one burst, all of the same length, and checks all that can be seen. */
export async function playRound(options: RoundOptions, plan: readonly Planned[]): Promise<void> {
  const { requester, responder, domains, lengthBytes } = options;
  const slotBytes = lengthBytes + 2 * MARGIN;
  const areaBytes = slotBytes * plan.length;
  const sourceBytes = lengthBytes + 2 * MARGIN;
  const [own, theirs] = [requester.end, responder.end];
  const source = await area(own, domains.requester, sourceBytes);
  const remoteSource = await area(theirs, domains.responder, sourceBytes);
  const sink = await area(own, domains.requester, areaBytes);
  const target = await area(theirs, domains.responder, areaBytes);
  for (const [end, filled] of [
    [own, source],
    [theirs, remoteSource],
  ] as const) {
    await end.fill({ region: filled.region, offset: 0, length: sourceBytes }, SEED);
    fillPattern(filled.model, SEED);
  }

  const payload = source.model.subarray(SOURCE_OFFSET, SOURCE_OFFSET + lengthBytes);
  const local: Segment = { region: source.region, offset: SOURCE_OFFSET, length: lengthBytes };
  const sends: Completion[] = [];
  const receives: Completion[] = [];
  for (const [wr, planned] of plan.entries()) {
    const { opcode, immediate, pieces = 1, flags = WrFlags.SIGNALED } = planned;
    const isRead = opcode === WrOpcode.RDMA_READ;
    const place = slotOf(isRead ? sink : target, wr, slotBytes, lengthBytes);
    if (opcode !== WrOpcode.RDMA_WRITE && !isRead) {
      const isWrite = opcode === WrOpcode.RDMA_WRITE_WITH_IMM;
      // The receive of a write with immediate stays as it is, and a longer one is not filled.
      const segments = isWrite ? [] : split(place, pieces === 1 ? 1 : 2);
      await theirs.receive(responder.pair, 100 + wr, segments);
      receives.push(received(100 + wr, isWrite, lengthBytes, immediate));
    }
    (isRead ? sink : target).model.set(payload, place.offset);
    const remote = isRead
      ? { region: remoteSource.region, offset: SOURCE_OFFSET }
      : { region: target.region, offset: place.offset };
    await own.send(requester.pair, {
      ...{ opcode, wr, flags, segments: split(isRead ? place : local, pieces) },
      ...(immediate !== undefined && { immediate }),
      remoteAddress: remote.region.address + BigInt(remote.offset),
      rkey: remote.region.rkey,
    } satisfies Request);
    sends.push(sent(wr, opcode, lengthBytes));
    expectPackets(options, planned);
  }
  await own.post(requester.pair);
  const [done, arrived] = await Promise.all([
    own.poll(requester.pair, sends.length, 0),
    theirs.poll(responder.pair, 0, receives.length),
  ]);
  assert.deepEqual(done.sends, sends, `${lengthBytes} bytes: the requester's completions`);
  assert.deepEqual(arrived.receives, receives, `${lengthBytes} bytes: the responder's receives`);
  for (const [end, place, what] of [
    [own, sink, "the requester's memory"],
    [own, source, "the requester's source"],
    [theirs, target, "the responder's memory"],
    [theirs, remoteSource, "the responder's source"],
  ] as const) {
    const whole = { region: place.region, offset: 0, length: place.model.length };
    assert.equal(await end.digest(whole), digestOf(place.model), `${lengthBytes} bytes: ${what}`);
    await end.deregister(place.region);
  }
}

async function area(end: Party['end'], domain: Domain, lengthBytes: number): Promise<Area> {
  const region = await end.region(domain, lengthBytes, ALL);
  return { region, model: new Uint8Array(lengthBytes) };
}

/** Each request has a place of its own, at another distance from where it would be aligned. */
function slotOf({ region }: Area, index: number, slotBytes: number, length: number): Segment {
  return { region, offset: index * slotBytes + (index % 8) + 1, length };
}

/** Into parts of different, odd lengths; the first are the shorter ones. */
export function split({ region, offset, length }: Segment, pieces: number): Segment[] {
  if (pieces === 1) return length === 0 ? [] : [{ region, offset, length }];
  const parts: Segment[] = [];
  let at = 0;
  for (let piece = 0; piece < pieces; piece++) {
    const end = piece === pieces - 1 ? length : Math.floor((length * (piece + 1)) / (pieces + 2));
    parts.push({ region, offset: offset + at, length: end - at });
    at = end;
  }
  return parts;
}

function sent(wr: number, opcode: number, bytes: number): Completion {
  const name = nameOf(WcOpcode, WC_OF[opcode] ?? -1);
  return { ...succeeded(wr, name, bytes), immediate: undefined };
}

function received(
  wr: number,
  isWrite: boolean,
  bytes: number,
  immediate: number | undefined,
): Completion {
  return { ...succeeded(wr, isWrite ? 'RECV_RDMA_WITH_IMM' : 'RECV', bytes), immediate };
}

function succeeded(wr: number, opcode: string, bytes: number): Completion {
  return { wr, status: 'SUCCESS', opcode, bytes, immediate: undefined, sourceQpn: undefined };
}

function expectPackets(options: RoundOptions, { opcode, flags = 0 }: Planned): void {
  const { expected, lengthBytes, mtuBytes } = options;
  if ((flags & WrFlags.SOLICITED) !== 0) expected.solicited += 1;
  const kind = KIND_OF[opcode];
  if (kind !== undefined) {
    expected.requests.push(...opcodesOf(kind, lengthBytes, mtuBytes));
    return;
  }
  expected.requests.push(OPCODE.READ_REQUEST);
  expected.responses.push(...readResponseOpcodes(lengthBytes, mtuBytes));
}
