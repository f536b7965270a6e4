import assert from 'node:assert/strict';
import { type QueuePair, WcStatus, WrFlags, WrOpcode } from '../../../core/spi/index.js';
import { NO_CREDITS, creditCode, creditsOf } from '../../../providers/hca/wire/aeth-syndrome.js';
import { SeededRandom } from '../../../providers/mock/index.js';
import {
  HcaPair,
  connect,
  type ConnectOverrides,
  drain,
  postReceive,
  postSend,
  postShared,
} from '../../support/hca-pair.js';

const SEGMENT = { offset: 0, length: 8 };
const OURS = { lateAcks: true, credits: true };
const { SEND, RDMA_WRITE, RDMA_WRITE_WITH_IMM, RDMA_READ } = WrOpcode;

interface Scene {
  readonly pair: HcaPair;
  readonly qpA: QueuePair;
  readonly qpB: QueuePair;
  readonly send: (count: number, opcode?: WrOpcode, length?: number) => void;
  readonly receive: (count: number) => void;
  /** What each side has counted. */
  readonly naks: () => number;
  readonly completed: () => number;
  readonly arrived: () => number;
}

function scene(overrides: ConnectOverrides = {}, qp: HcaPair = new HcaPair(7)): Scene {
  const pair = qp;
  const qpA = pair.a.createQp();
  const qpB = pair.b.createQp();
  connect(pair, qpA, qpB, { peer: OURS, ...overrides });
  return {
    pair,
    qpA,
    qpB,
    send: (count, opcode = SEND, length = 8) => {
      const memory = { remoteAddress: pair.b.base, rkey: pair.b.region.rkey };
      const segments = [{ offset: 0, length }];
      for (let i = 0; i < count; i++) postSend(pair.a, qpA, { opcode, segments, ...memory });
    },
    receive: (count) => {
      for (let i = 0; i < count; i++) postReceive(pair.b, qpB, [{ offset: 0, length: 4096 }]);
    },
    naks: () => pair.b.driver.device.hca.counters.rnrNaksSent,
    completed: () => drain(pair.a.sendCq).filter(({ status }) => status === 0).length,
    arrived: () => drain(pair.b.receiveCq).filter(({ status }) => status === 0).length,
  };
}

describe('End-to-end credits of the AETH', () => {
  it('have the codes of the table in rdmavt (rc.c)', () => {
    const table = [
      0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536,
      2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768,
    ];
    assert.equal(table.length, NO_CREDITS);
    for (const [code, credits] of table.entries()) {
      assert.equal(creditsOf(code), credits);
      assert.equal(creditCode(credits), code);
      const next = table[code + 1] ?? 70_000;
      assert.equal(
        creditCode(next - 1),
        code,
        `${String(next - 1)} are at least ${String(credits)}`,
      );
    }
  });

  it('hold messages back until there are receives: no RNR NAK', () => {
    const { pair, send, receive, naks, completed } = scene();
    receive(4);
    send(100);
    pair.settle();
    for (let rounds = 0; rounds < 100; rounds++) {
      receive(drain(pair.b.receiveCq).length);
      pair.settle();
    }
    assert.deepEqual([naks(), completed()], [0, 100]);
    assert.equal(pair.clock.timeUs, 1000, 'nothing has waited for a timer');
  });

  it('are counted with a peer of another make by neither side', () => {
    const { pair, send, receive, naks, completed } = scene({ peer: {} });
    receive(4);
    send(6);
    pair.settle();
    assert.deepEqual([naks(), completed()], [1, 4]);
    receive(2);
    pair.settle();
    assert.equal(completed(), 0, 'the sender waits for its RNR timer');
    pair.run(1000);
    assert.equal(completed(), 2);
  });

  it('are none for receives that others may take', () => {
    const pair = new HcaPair(3);
    const srq = pair.b.createSrq();
    const qpA = pair.a.createQp();
    connect(pair, qpA, pair.b.createQp({ srq }), { peer: OURS });
    for (let slot = 0; slot < 6; slot++) postShared(pair.b, srq, slot, [SEGMENT]);
    for (let i = 0; i < 6; i++) postSend(pair.a, qpA, { opcode: SEND, segments: [SEGMENT] });
    pair.settle();
    assert.equal(drain(pair.a.sendCq).length, 6);
  });

  it('let one message go before the first ACK', () => {
    const { pair, send, naks, completed } = scene();
    send(5);
    pair.settle();
    assert.deepEqual([naks(), completed()], [1, 0]);
  });

  it('end an RNR wait as soon as a receive is posted', () => {
    const { pair, send, receive, naks, completed } = scene({ minRnrTimer: 31 });
    send(3);
    pair.settle();
    receive(3);
    pair.settle();
    assert.deepEqual([naks(), completed(), pair.clock.timeUs], [1, 3, 1000]);
  });

  it('that are lost are asked for by a message after 20 ms', () => {
    const { pair, send, receive, naks, completed } = scene();
    receive(2);
    send(3);
    pair.settle();
    assert.equal(completed(), 2);
    pair.b.port.filter = () => [];
    receive(2);
    pair.settle();
    pair.b.port.filter = undefined;
    pair.run(19_900);
    assert.equal(completed(), 0);
    pair.run(200);
    assert.deepEqual([naks(), completed()], [0, 1]);
  });

  it('keep the RNR retries of a peer that never has a receive', () => {
    const { pair, send, naks } = scene({ rnrRetryCount: 2 });
    send(2);
    pair.run(100_000);
    const statuses = drain(pair.a.sendCq).map(({ status }) => status);
    assert.deepEqual(statuses, [WcStatus.RNR_RETRY_EXC_ERR, WcStatus.WR_FLUSH_ERR]);
    assert.equal(naks(), 3);
  });

  it('are taken by SENDs and WRITEs with immediate data, not by others', () => {
    const { pair, send, receive, naks, completed } = scene();
    receive(3);
    send(1);
    pair.settle();
    assert.equal(completed(), 1);
    send(20, RDMA_WRITE);
    send(2, RDMA_READ);
    send(2, RDMA_WRITE_WITH_IMM);
    send(1);
    pair.settle();
    assert.deepEqual([naks(), completed()], [0, 24], 'two receives were left');
    receive(1);
    pair.settle();
    assert.equal(completed(), 1);
  });

  it('are asked for with the last one, though no completion is awaited', () => {
    const { pair, qpA, receive, naks, arrived } = scene();
    const request = { opcode: SEND, segments: [SEGMENT], flags: 0 };
    receive(4);
    for (let i = 0; i < 16; i++) postSend(pair.a, qpA, request);
    let all = 0;
    for (let rounds = 0; rounds < 10; rounds++) {
      pair.settle();
      const count = arrived();
      receive(count);
      all += count;
    }
    assert.deepEqual([all, naks(), pair.clock.timeUs], [16, 0, 1000]);
  });

  for (let seed = 1; seed <= 40; seed++) {
    it(`bring all messages over a bad network in order, seed ${String(seed)}`, () => {
      const random = new SeededRandom(seed);
      const { pair, qpA, qpB } = scene();
      const lose = (packet: Uint8Array): Uint8Array[] => {
        const chance = random.u32() % 100;
        return chance < 12 ? [] : chance < 18 ? [packet, packet.slice()] : [packet];
      };
      pair.a.port.filter = lose;
      pair.b.port.filter = lose;
      const got: number[] = [];
      let posted = 0;
      let sent = 0;
      const MESSAGES = 60;
      for (let step = 0; step < 4000 && got.length < MESSAGES; step++) {
        if (sent < MESSAGES && random.u32() % 2 === 0) {
          const length = random.u32() % 3 === 0 ? 3000 : 8;
          const segments = [{ offset: 0, length }];
          const flags = random.u32() % 3 === 0 ? 0 : WrFlags.SIGNALED;
          const opcode = random.u32() % 4 === 0 ? RDMA_WRITE_WITH_IMM : SEND;
          const memory = { remoteAddress: pair.b.base + 65536n, rkey: pair.b.region.rkey };
          pair.a.bytes[0] = sent;
          postSend(pair.a, qpA, {
            ...(opcode === SEND && length === 8
              ? { inline: Uint8Array.of(sent, 0, 0, 0, 0, 0, 0, 0) }
              : { segments }),
            opcode,
            flags,
            immediate: sent,
            ...memory,
          });
          sent += 1;
        }
        if (random.u32() % 3 === 0 && posted - got.length < 4) {
          postReceive(pair.b, qpB, [{ offset: 4096, length: 4096 }], posted++);
        }
        pair.run(random.u32() % 2000);
        drain(pair.a.sendCq);
        for (const { cookie, status } of drain(pair.b.receiveCq)) {
          assert.equal(status, WcStatus.SUCCESS);
          got.push(cookie);
        }
      }
      assert.deepEqual(
        got,
        Array.from({ length: MESSAGES }, (_, i) => i),
      );
    });
  }
});
