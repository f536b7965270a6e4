/** READs whose answers are out, and not yet taken in, when something happens to their memory. */
import assert from 'node:assert/strict';
import {
  Access,
  LOCAL_MTU_BYTES,
  type MemoryRegion,
  type QueuePair,
  TX,
  WrOpcode,
} from '../../core/spi/index.js';
import type { Hca } from '../../providers/hca/hca.js';
import type { HcaParameters } from '../../providers/hca/index.js';
import { HcaPair, connect, drain, postSend } from './hca-pair.js';

export const MTU = LOCAL_MTU_BYTES;
const SPACE = 4 << 20;
export const { LOCAL_WRITE, MW_BIND, REMOTE_READ } = Access;

export class LateReads {
  readonly pair: HcaPair;
  readonly qpA: QueuePair;
  readonly qpB: QueuePair;
  /** What b lends, of its own; no byte of it is above 127. */
  readonly lent: Uint8Array<ArrayBuffer>;
  readonly region: MemoryRegion;
  /** Payload segments of each packet that b has sent. */
  readonly segments: number[] = [];

  /** @param depth READs in flight */
  constructor(lengthBytes: number, depth = 4, parameters: Partial<HcaParameters> = {}) {
    const options = { localMtuBytes: MTU, bufferBytes: 4 * SPACE, memoryBytes: SPACE };
    this.pair = new HcaPair(3, { ...options, parameters });
    const { a, b } = this.pair;
    this.qpA = a.createQp();
    this.qpB = b.createQp();
    const depths = { maxRdAtomic: depth, maxDestRdAtomic: depth };
    connect(this.pair, this.qpA, this.qpB, depths, MTU);
    this.lent = new Uint8Array(lengthBytes).map((_, i) => (i * 2654435761) >>> 25);
    this.region = b.pd.registerMemory(this.lent, LOCAL_WRITE | REMOTE_READ | MW_BIND);
    this.note(b.port);
  }

  get hca(): Hca {
    return this.pair.b.driver.device.hca;
  }

  /** Posts a READ, and lets b answer, which a does not take in. */
  answered(
    length: number,
    offset = 0,
    cookie = 0,
    rkey = this.region.rkey,
    base = this.region.iova,
  ): void {
    this.post(length, offset, cookie, rkey, base);
    this.pair.a.driver.pump();
    this.pair.b.driver.pump();
  }

  post(
    length: number,
    offset = 0,
    cookie = 0,
    rkey = this.region.rkey,
    base = this.region.iova,
  ): void {
    postSend(this.pair.a, this.qpA, {
      opcode: WrOpcode.RDMA_READ,
      cookie,
      segments: [{ offset, length }],
      remoteAddress: base + BigInt(offset),
      rkey,
    });
  }

  /** A WRITE to no memory of b's, which ends the connection; a does not hear of it yet. */
  refuse(cookie: number): void {
    postSend(this.pair.a, this.qpA, {
      opcode: WrOpcode.RDMA_WRITE,
      cookie,
      segments: [{ offset: 0, length: 8 }],
      rkey: 1,
    });
    this.pair.a.driver.pump();
    this.pair.b.driver.pump();
  }

  /** Cookies and statuses of what a has completed, in time. */
  completed(forUs = 1_000_000): [number, number][] {
    this.pair.run(forUs);
    return drain(this.pair.a.sendCq).map(({ cookie, status }) => [cookie, status]);
  }

  assertRead(expected: Uint8Array, offset = 0): void {
    const found = this.pair.a.bytes.subarray(offset, offset + expected.length);
    assert.equal(Buffer.compare(found, expected), 0);
  }

  private note(port: HcaPair['b']['port']): void {
    const send = port.send.bind(port);
    port.send = (from, to) => {
      const next = send(from, to);
      for (let i = from; i < next; i++) {
        this.segments.push(port.txPackets[i * TX.WORDS + TX.SEGMENT_COUNT]!);
      }
      return next;
    };
  }
}
