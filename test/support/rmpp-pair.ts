/** Two MAD modules whose agents of a vendor class use RMPP, and payloads to pass between them. */
import assert from 'node:assert/strict';
import {
  type MadAgent,
  type MadSendResult,
  nameOf,
  type ReceivedMad,
  WcStatus,
} from '../../core/spi/index.js';
import type { MadOptions } from '../../plugins/mad/index.js';
import { emitMadHeader, headerOfAnyLength } from '../../core/spi/modules/mad-header.js';
import {
  emitRmppHeader,
  parseRmppHeader,
  RMPP_TYPE,
  type RmppHeader,
} from '../../plugins/mad/wire/rmpp-header.js';
import { SeededRandom } from '../../providers/mock/index.js';
import type { Parcel } from './fake-network.js';
import { type MadNode, madOf, MadPair } from './mad-pair.js';

export const RMPP_CLASS = 0x30;
export const RMPP_OUI = 0x0d0a0b;
/** MAD header, RMPP header, OUI. */
export const RMPP_HEADERS = 40;
/** Bytes of data in a segment of this class. */
export const RMPP_DATA = 216;

export interface RmppSide {
  readonly node: MadNode;
  readonly agent: MadAgent;
  readonly received: Uint8Array[];
  readonly results: string[];
}

/** A MAD of the class: headers, then `lengthBytes` of data that `seed` decides. */
export function transferOf(
  agent: MadAgent,
  lengthBytes: number,
  { method = 1, transaction = 1, seed = 1 } = {},
): Uint8Array {
  const mad = new Uint8Array(RMPP_HEADERS + lengthBytes);
  const ids = { transactionIdHi: agent.hiTid, transactionIdLo: transaction };
  mad.set(madOf({ managementClass: RMPP_CLASS, method, ...ids }).subarray(0, RMPP_HEADERS));
  mad.set([RMPP_OUI >>> 16, (RMPP_OUI >>> 8) & 0xff, RMPP_OUI & 0xff], 37);
  const random = new SeededRandom(seed);
  for (let i = RMPP_HEADERS; i < mad.length; i++) mad[i] = random.u32();
  return mad;
}

/** The same transaction the other way: a response of another length. */
export function replyTo(request: Uint8Array, lengthBytes: number, seed = 2): Uint8Array {
  const mad = new Uint8Array(RMPP_HEADERS + lengthBytes);
  mad.set(request.subarray(0, RMPP_HEADERS));
  const header = headerOfAnyLength(request);
  assert.ok(header);
  emitMadHeader({ ...header, method: header.method | 0x80 }, mad);
  const random = new SeededRandom(seed);
  for (let i = RMPP_HEADERS; i < mad.length; i++) mad[i] = random.u32();
  return mad;
}

export function rmppOf(data: Uint8Array): RmppHeader {
  const rmpp = parseRmppHeader(data);
  assert.ok(rmpp);
  return rmpp;
}

/** `DATA 3`, `ACK 1 65`, `ABORT 118` and so on. */
export function describeRmpp({ data }: Pick<Parcel, 'data'>): string {
  const { type, status, segmentNumber, payloadLengthOrNewWindowLast } = rmppOf(data);
  const name = nameOf(RMPP_TYPE, type);
  if (name === 'ACK') return `ACK ${segmentNumber} ${payloadLengthOrNewWindowLast}`;
  return name === 'DATA' ? `DATA ${segmentNumber}` : `${name} ${status}`;
}

export class RmppPair {
  readonly pair: MadPair;
  readonly asker: RmppSide;
  readonly answerer: RmppSide;
  /** What the answerer does with a request. */
  onRequest: (mad: ReceivedMad) => void = () => undefined;

  constructor(options: { a?: MadOptions; b?: MadOptions } = {}) {
    this.pair = new MadPair(options);
    this.asker = this.side(this.pair.a, [], () => undefined);
    this.answerer = this.side(this.pair.b, [1, 2, 3], (mad) => {
      if (!mad.request) this.onRequest(mad);
    });
  }

  get carried(): string[] {
    return this.pair.network.carried.map(describeRmpp);
  }

  /** Sends from the asker. */
  ask(mad: Uint8Array, options: { timeoutUs?: number; retries?: number } = {}): void {
    const { timeoutUs = 0, retries = 5 } = options;
    const destination = this.pair.b.address;
    this.asker.agent.send({ destination, data: mad, timeoutUs, retries, context: 'ask' });
  }

  answer(request: ReceivedMad, lengthBytes: number): Uint8Array {
    const data = replyTo(request.data, lengthBytes);
    const destination = request.source;
    this.answerer.agent.send({ destination, data, timeoutUs: 0, retries: 5, context: 'answer' });
    return data;
  }

  /** Hands a MAD to the answerer's node, or to the asker's, as if the other had sent it. */
  inject(data: Uint8Array, to: 'asker' | 'answerer' = 'answerer'): void {
    const { a, b } = this.pair;
    if (to === 'answerer') b.device.receive(data, a.address.gid, b.address.gid);
    else a.device.receive(data, b.address.gid, a.address.gid);
  }

  /** Nothing is held any more on either side, once what is remembered has been forgotten. */
  async assertNothingHeld(): Promise<void> {
    await this.pair.world.run();
    for (const { mad } of [this.pair.a, this.pair.b]) {
      assert.equal(mad.rmppAllowance.bytesHeld, 0);
      assert.equal(mad.rmppAllowance.transfersHeld, 0);
    }
    assert.equal(this.pair.world.activeTimers, 0);
    await Promise.all([this.pair.a.mad.close(), this.pair.b.mad.close(), this.pair.world.run()]);
    for (const { device } of [this.pair.a, this.pair.b]) {
      assert.equal(device.liveObjects, 0);
      assert.equal(device.addressHandles.size, 0);
    }
  }

  private side(
    node: MadNode,
    methods: readonly number[],
    onReceive: (mad: ReceivedMad) => void,
  ): RmppSide {
    const received: Uint8Array[] = [];
    const results: string[] = [];
    const agent = node.mad.registerAgent({
      managementClass: RMPP_CLASS,
      classVersion: 1,
      oui: RMPP_OUI,
      methods,
      rmpp: true,
      onReceive: (mad) => {
        received.push(mad.data.slice());
        onReceive(mad);
      },
      onSend: (result) => {
        // What is thrown here would be logged, and nothing else.
        const where = this.pair.world.isExpiring ? 'in a timer: ' : '';
        results.push(where + resultText(result));
      },
    });
    return { node, agent, received, results };
  }
}

function resultText({ handle, status, rmppStatus }: MadSendResult): string {
  const why = rmppStatus === undefined ? '' : ` ${rmppStatus}`;
  return `${nameOf(WcStatus, status)}${why} ${String(handle.context)}`;
}

/** A segment, or ACK, STOP, ABORT, as any peer could send it. */
export function controlOf(mad: Uint8Array, rmpp: Partial<RmppHeader>): Uint8Array {
  const data = new Uint8Array(256);
  data.set(mad.subarray(0, 256));
  emitRmppHeader(
    {
      version: 1,
      type: RMPP_TYPE.DATA,
      responseTime: 0x1f,
      flags: 1,
      status: 0,
      segmentNumber: 0,
      payloadLengthOrNewWindowLast: 0,
      ...rmpp,
    },
    data,
  );
  return data;
}
