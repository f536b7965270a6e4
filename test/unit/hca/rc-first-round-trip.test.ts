import assert from 'node:assert/strict';
import { type QueuePair, WrOpcode } from '../../../core/spi/index.js';
import { HcaPair, connect, drain, postSend } from '../../support/hca-pair.js';

const MTU = 1024;
const PACKETS = 20;

interface Sent {
  readonly afterUs: number;
  readonly psn: number;
  readonly asks: boolean;
}

/** A requester; what the peer answers is kept until it is let through. */
class Scene {
  readonly pair = new HcaPair(5);
  readonly qp: QueuePair;
  readonly sent: Sent[] = [];
  private readonly answers: Uint8Array[] = [];
  private sinceUs = 0;

  constructor() {
    const { a, b } = this.pair;
    this.qp = a.createQp();
    // ACK timeout code 20 is 4.3 s: nothing here waits for it.
    connect(this.pair, this.qp, b.createQp(), { timeout: 20 }, MTU);
    a.port.filter = (packet) => {
      const psn = (packet[9]! << 16) | (packet[10]! << 8) | packet[11]!;
      const afterUs = this.pair.clock.timeUs - this.sinceUs;
      this.sent.push({ afterUs, psn, asks: (packet[8]! & 0x80) !== 0 });
      return [packet];
    };
    b.port.filter = (packet) => {
      this.answers.push(packet.slice());
      return [];
    };
  }

  post(opcode: WrOpcode, length: number): void {
    const { a, b } = this.pair;
    this.sent.length = 0;
    this.answers.length = 0;
    this.sinceUs = this.pair.clock.timeUs;
    postSend(a, this.qp, {
      opcode,
      segments: [{ offset: 0, length }],
      remoteAddress: b.base,
      rkey: b.region.rkey,
    });
    this.pair.settle();
  }

  /** The newest answer arrives, after so much time since the request. */
  answerAfter(us: number): void {
    const { pair } = this;
    pair.run(this.sinceUs + us - pair.clock.timeUs);
    pair.a.port.inject(this.answers.at(-1)!);
    pair.settle();
    assert.equal(drain(pair.a.sendCq).length, 1);
  }

  /** When the first packet of the request has been sent, in us since the request. */
  firstPacketTimes(withinUs: number): number[] {
    this.pair.run(this.sinceUs + withinUs - this.pair.clock.timeUs);
    const first = this.sent[0]!.psn;
    return this.sent.filter(({ psn }) => psn === first).map(({ afterUs }) => afterUs);
  }
}

describe('The first round trip of a connection', () => {
  it('is measured by the first packet, which asks for an acknowledgement', () => {
    const scene = new Scene();
    scene.post(WrOpcode.RDMA_WRITE, PACKETS * MTU);
    const asking = scene.sent.flatMap(({ asks }, i) => (asks ? [i] : []));
    // Then every 16th packet of a window of 64, and the last.
    assert.deepEqual(asking, [0, 16, 19]);
  });

  it('is asked for at doubling intervals', () => {
    const scene = new Scene();
    scene.post(WrOpcode.RDMA_WRITE, PACKETS * MTU);
    assert.deepEqual(scene.firstPacketTimes(39_000), [0, 5000, 15_000, 35_000]);
  });

  it('is measured though it is longer than thought: the last interval is waited on', () => {
    const scene = new Scene();
    scene.post(WrOpcode.RDMA_WRITE, PACKETS * MTU);
    scene.answerAfter(38_000);
    scene.post(WrOpcode.RDMA_WRITE, MTU);
    assert.deepEqual(scene.firstPacketTimes(37_900), [0], 'eight times the first guess is waited');
    scene.answerAfter(38_000);
    // The smoothed time and four times its deviation: three times the first sample (RFC 6298).
    scene.post(WrOpcode.RDMA_WRITE, MTU);
    assert.deepEqual(scene.firstPacketTimes(120_000), [0, 114_000]);
    assert.equal(scene.pair.a.driver.device.counters.retries, 0);
  });

  it('is measured by a READ too', () => {
    const scene = new Scene();
    scene.post(WrOpcode.RDMA_READ, 8);
    scene.answerAfter(3000);
    scene.post(WrOpcode.RDMA_READ, 8);
    assert.deepEqual(scene.firstPacketTimes(10_000), [0, 9000]);
  });

  it('is asked for soon again once it has been measured', () => {
    const scene = new Scene();
    scene.post(WrOpcode.RDMA_WRITE, 8);
    scene.answerAfter(300);
    scene.post(WrOpcode.RDMA_WRITE, 8);
    // At least 1 ms: a packet that goes alone does not tell that the path loses packets.
    assert.deepEqual(scene.firstPacketTimes(8000), [0, 1000, 3000, 7000]);
  });
});
