import assert from 'node:assert/strict';
import { QpState, type QueuePair, WcStatus, WrOpcode } from '../../../core/spi/index.js';
import { type Completion, connect, drain, HcaPair, postSend } from '../../support/hca-pair.js';

const PSN = 0xfffffa;
const ACK = 0x11;
/** Syndromes of an ACK, and of RNR NAKs with timer codes 14 and 16. */
const GRANTED = 0x1f;
const NAK_1280_US = 0x2e;
const NAK_2560_US = 0x30;

interface Scene {
  readonly pair: HcaPair;
  readonly qp: QueuePair;
  /** PSNs that have left since the NAK that began the wait. */
  readonly sent: number[];
  readonly answer: (syndrome: number, psn?: number) => void;
  readonly statuses: () => number[];
}

/** A SEND that the peer, which says nothing itself, has just refused for want of a receive. */
function refused(rnrRetryCount: number, messages = 1): Scene {
  const pair = new HcaPair(5);
  const qp = pair.a.createQp();
  connect(pair, qp, pair.b.createQp(), { rnrRetryCount, timeout: 14 });
  pair.b.port.filter = () => [];
  for (let i = 0; i < messages; i++) postSend(pair.a, qp, { opcode: WrOpcode.SEND, cookie: i });
  pair.settle();
  const sent: number[] = [];
  pair.a.port.filter = (packet) => {
    sent.push(psnOf(packet));
    return [packet];
  };
  const scene: Scene = {
    pair,
    qp,
    sent,
    answer: (syndrome, psn = PSN) => {
      pair.a.port.inject(acknowledge(qp.qpn, psn, syndrome));
      pair.settle();
    },
    statuses: () => drain(pair.a.sendCq).map(({ status }: Completion) => status),
  };
  scene.answer(NAK_1280_US);
  return scene;
}

function psnOf(packet: Uint8Array): number {
  return (packet[9]! << 16) | (packet[10]! << 8) | packet[11]!;
}

function acknowledge(qpn: number, psn: number, syndrome: number): Uint8Array {
  const bytes = new Uint8Array(16);
  const view = new DataView(bytes.buffer);
  bytes[0] = ACK;
  view.setUint16(2, 0xffff);
  view.setUint32(4, qpn);
  view.setUint32(8, psn);
  bytes[12] = syndrome;
  return bytes;
}

describe('The wait for a receiver that is not ready (RNR)', () => {
  it('goes on for the delay of a NAK that comes in it', () => {
    const { pair, sent, answer } = refused(1);
    pair.run(1000);
    answer(NAK_1280_US);
    pair.run(1200);
    assert.deepEqual(sent, [], 'the first delay is over, the second is not');
    pair.run(100);
    assert.deepEqual(sent, [PSN]);
  });

  it('does not become shorter by a NAK with a shorter delay', () => {
    const { pair, sent, answer } = refused(1);
    answer(NAK_2560_US);
    pair.run(500);
    answer(NAK_1280_US);
    pair.run(2000);
    assert.deepEqual(sent, []);
    pair.run(100);
    assert.deepEqual(sent, [PSN]);
  });

  it('costs one retry, however many NAKs come in it', () => {
    const { pair, qp, sent, answer, statuses } = refused(1);
    for (let i = 0; i < 5; i++) {
      pair.run(100);
      answer(NAK_1280_US);
    }
    assert.equal(qp.state, QpState.RTS);
    pair.run(1400);
    assert.deepEqual(sent, [PSN]);
    answer(NAK_1280_US);
    assert.deepEqual(statuses(), [WcStatus.RNR_RETRY_EXC_ERR], 'that was the only retry');
  });

  it('begins anew for the next packet: the NAK acknowledges the one before', () => {
    const { pair, sent, answer, statuses } = refused(1, 2);
    const next = (PSN + 1) & 0xffffff;
    pair.run(1000);
    answer(NAK_2560_US, next);
    assert.deepEqual(statuses(), [WcStatus.SUCCESS]);
    pair.run(2500);
    assert.deepEqual(sent, []);
    pair.run(100);
    assert.deepEqual(sent, [next]);
    answer(GRANTED, next);
    assert.deepEqual(statuses(), [WcStatus.SUCCESS]);
  });
});
