import assert from 'node:assert/strict';
import {
  AsyncEventType,
  QpState,
  type QueuePair,
  WcStatus,
  WrFlags,
  WrOpcode,
} from '../../../core/spi/index.js';
import type { SoftCompletionQueue } from '../../../providers/hca/completions/completion-queue.js';
import {
  connect,
  connectedPair,
  drain,
  HcaPair,
  postReceive,
  postSend,
  type SendRequest,
} from '../../support/hca-pair.js';
import { packet, reth } from '../../support/request-packets.js';

const MTU = 1024;
const A_PSN = 0xfffffa;

const read = (pair: HcaPair, cookie: number, length = 8): SendRequest => ({
  opcode: WrOpcode.RDMA_READ,
  cookie,
  segments: [{ offset: 4096, length }],
  remoteAddress: pair.b.base,
  rkey: pair.b.region.rkey,
});

const ACK = 0x11;
const READ_REQUEST = 0x0c;
const FETCH_ADD = 0x14;
const WRITE_FIRST = 0x06;
const WRITE_LAST_WITH_IMMEDIATE = 0x09;
/** Syndrome of a NAK. */
const REMOTE_ACCESS_ERROR = 0x62;
const syndrome = (value: number): number[] => [value, 0, 0, 1];

function statuses(pair: HcaPair): [number, number][] {
  return drain(pair.a.sendCq).map((c) => [c.cookie, c.status]);
}

describe('RC requester edges', () => {
  it('keeps to a smaller READ depth after a reset', () => {
    const pair = new HcaPair(5);
    const qpA = pair.a.createQp();
    const qpB = pair.b.createQp();
    connect(pair, qpA, qpB, { maxRdAtomic: 4, maxDestRdAtomic: 4 });
    for (let i = 0; i < 3; i++) postSend(pair.a, qpA, read(pair, i));
    pair.run(1000);
    drain(pair.a.sendCq);
    for (const qp of [qpA, qpB]) qp.modify({ state: QpState.RESET });
    connect(pair, qpA, qpB, { maxRdAtomic: 2, maxDestRdAtomic: 2 });
    let requests = 0;
    pair.a.port.filter = (sent) => {
      if (sent[0] === READ_REQUEST) requests += 1;
      return [sent];
    };
    pair.b.port.filter = () => [];
    postReceive(pair.b, qpB, [{ offset: 0, length: 8 }]);
    postSend(pair.a, qpA, { opcode: WrOpcode.SEND, segments: [] });
    for (let i = 1; i < 5; i++) postSend(pair.a, qpA, read(pair, i));
    pair.settle();
    pair.a.port.inject(packet(ACK, qpA.qpn, A_PSN, syndrome(0x1f)));
    pair.settle();
    assert.deepEqual(statuses(pair), [[0, WcStatus.SUCCESS]]);
    assert.equal(requests, 2);
  });

  it('leaves the RNR wait when an acknowledgement shows that the receiver was ready', () => {
    const pair = new HcaPair(5);
    const qpA = pair.a.createQp();
    const qpB = pair.b.createQp();
    // RNR timer code 0 is 655 ms; eight ACK timeouts of 1 ms do not last that long.
    connect(pair, qpA, qpB, { timeout: 8, minRnrTimer: 0 });
    pair.b.port.filter = () => [];
    for (let i = 0; i < 2; i++) {
      const segments = [{ offset: 0, length: 8 }];
      postSend(pair.a, qpA, { opcode: WrOpcode.SEND, segments, cookie: i });
      postReceive(pair.b, qpB, [{ offset: 0, length: 8 }], i);
    }
    pair.settle();
    pair.a.port.inject(packet(ACK, qpA.qpn, A_PSN, syndrome(0x20)));
    pair.settle();
    pair.a.port.inject(packet(ACK, qpA.qpn, A_PSN, syndrome(0x1f)));
    pair.b.port.filter = undefined;
    pair.run(100_000);
    assert.equal(qpA.state, QpState.RTS);
    assert.deepEqual(statuses(pair), [
      [0, WcStatus.SUCCESS],
      [1, WcStatus.SUCCESS],
    ]);
  });

  it('reports a drained send queue once, whatever is modified afterwards', () => {
    const { pair, qpA } = connectedPair(5);
    qpA.modify({ state: QpState.SQD, enableSqdAsyncNotify: true });
    qpA.modify({ state: QpState.SQD, retryCount: 3 });
    pair.settle();
    assert.deepEqual(pair.a.events, [AsyncEventType.SQ_DRAINED]);
  });

  it('does nothing for a queue pair that is destroyed', () => {
    const { pair, qpA } = connectedPair(5);
    qpA.destroy();
    assert.throws(() => qpA.modify({ state: QpState.ERR }), { code: 'EINVAL' });
    postSend(pair.a, qpA, { opcode: WrOpcode.SEND, segments: [] });
    postReceive(pair.a, qpA, []);
    pair.run(1000);
    assert.deepEqual([...drain(pair.a.sendCq), ...drain(pair.a.receiveCq)], []);

    const { pair: other, qpA: broken } = connectedPair(5);
    broken.modify({ state: QpState.ERR });
    broken.destroy();
    postSend(other.a, broken, { opcode: WrOpcode.SEND, segments: [] });
    postReceive(other.a, broken, []);
    assert.deepEqual([...drain(other.a.sendCq), ...drain(other.a.receiveCq)], []);
  });
});

describe('RC responder edges', () => {
  it('a WRITE whose region goes between its packets completes no receive', () => {
    const { pair, qpB } = connectedPair(5);
    const sent: Uint8Array[] = [];
    pair.b.port.filter = (packetOfB) => {
      sent.push(packetOfB);
      return [];
    };
    const { base, region } = pair.b;
    postReceive(pair.b, qpB, [{ offset: 0, length: 8 }], 7);
    const first = [...reth(base, region.rkey, MTU + 4), ...new Array<number>(MTU).fill(1)];
    pair.b.port.inject(packet(WRITE_FIRST, qpB.qpn, A_PSN, first));
    pair.settle();
    region.destroy();
    const last = [0, 0, 0, 9, ...new Array<number>(4).fill(1)];
    pair.b.port.inject(packet(WRITE_LAST_WITH_IMMEDIATE, qpB.qpn, A_PSN + 1, last, true));
    pair.settle();
    assert.equal(qpB.state, QpState.ERR);
    const [received] = drain(pair.b.receiveCq);
    assert.deepEqual([received?.cookie, received?.status], [7, WcStatus.WR_FLUSH_ERR]);
    assert.deepEqual(
      sent.map((answer) => [answer[0], answer[12]]),
      [[ACK, REMOTE_ACCESS_ERROR]],
    );
  });

  it('answers a repeated atomic with its own result after the PSNs have gone round', () => {
    const { pair, qpB } = connectedPair(5);
    const results: number[] = [];
    pair.b.port.filter = (sent) => {
      if (sent[0] === 0x12) results.push(sent[23]!);
      return [];
    };
    const { base, region } = pair.b;
    const add = (psn: number): void => {
      const atomicEth = [
        ...reth(base, region.rkey, 0),
        0,
        0,
        0,
        1,
        ...new Array<number>(8).fill(0),
      ];
      pair.b.port.inject(packet(FETCH_ADD, qpB.qpn, psn, atomicEth));
      pair.settle();
    };
    const skipTo = (psn: number): void => {
      // As 2^24 requests in between would do.
      (qpB as unknown as { responder: { ePsn: number } }).responder.ePsn = psn;
    };
    add(A_PSN);
    skipTo(A_PSN + 1);
    add(A_PSN + 1);
    skipTo(A_PSN);
    add(A_PSN);
    add(A_PSN);
    assert.deepEqual(results, [0, 1, 2, 2], 'the last one again');
  });

  it('ignores a late duplicate of a READ whose memory is gone since', () => {
    const { pair, qpA, qpB } = connectedPair(5);
    const requests: Uint8Array[] = [];
    pair.a.port.filter = (sent) => {
      if (sent[0] === READ_REQUEST) requests.push(sent.slice());
      return [sent];
    };
    postSend(pair.a, qpA, read(pair, 1, 3 * MTU));
    pair.run(1000);
    assert.deepEqual(statuses(pair), [[1, WcStatus.SUCCESS]]);
    pair.b.region.destroy();
    for (let i = 1; i <= 2; i++) {
      pair.b.port.inject(requests[0]!);
      pair.run(1000);
      assert.equal(pair.b.driver.device.counters.drops.replayUnknown, i);
    }
    assert.deepEqual([qpA.state, qpB.state], [QpState.RTS, QpState.RTS]);
    assert.deepEqual(pair.b.events, []);
  });

  it('serves a peer that rounds the depth up to a power of two, as rxe does', () => {
    const pair = new HcaPair(5);
    const qpA = pair.a.createQp();
    const qpB = pair.b.createQp();
    connect(pair, qpA, qpB, { maxRdAtomic: 4, maxDestRdAtomic: 3 });
    for (let i = 0; i < 9; i++) postSend(pair.a, qpA, read(pair, i, 2 * MTU));
    pair.run(10_000);
    assert.equal(statuses(pair).filter(([, status]) => status === WcStatus.SUCCESS).length, 9);
  });

  it('lets others have their turn while it answers a very long READ', () => {
    const { pair, qpB } = connectedPair(5, { memoryBytes: 64 << 20 });
    let sent = 0;
    pair.b.port.filter = () => {
      sent += 1;
      return [];
    };
    const request = reth(pair.b.base, pair.b.region.rkey, 64 << 20);
    pair.b.port.inject(packet(READ_REQUEST, qpB.qpn, A_PSN, request));
    assert.equal(pair.b.driver.pump(), true, 'there is more to do');
    assert.ok(sent < 8192, `${sent} packets in one pump`);
    while (pair.b.driver.pump());
    assert.equal(sent, 65536);
  });
});

describe('Memory that is transferred away', () => {
  const transfer = (bytes: Uint8Array): void => {
    structuredClone(bytes.buffer, { transfer: [bytes.buffer as ArrayBuffer] });
  };
  const remote = (pair: HcaPair): Partial<SendRequest> => ({
    segments: [{ offset: 0, length: 8 }],
    remoteAddress: pair.b.base,
    rkey: pair.b.region.rkey,
  });

  const { RDMA_WRITE, RDMA_READ, ATOMIC_FETCH_AND_ADD, SEND } = WrOpcode;
  for (const opcode of [RDMA_WRITE, RDMA_READ, ATOMIC_FETCH_AND_ADD]) {
    it(`is not there for request ${opcode} of the peer`, () => {
      const { pair, qpA, qpB } = connectedPair(5);
      transfer(pair.b.bytes);
      postSend(pair.a, qpA, { opcode, ...remote(pair) });
      pair.run(1000);
      assert.deepEqual(statuses(pair), [[0, WcStatus.REM_ACCESS_ERR]]);
      assert.equal(qpB.state, QpState.ERR);
    });
  }

  it('fails the receive that names it', () => {
    const { pair, qpA, qpB } = connectedPair(5);
    postReceive(pair.b, qpB, [{ offset: 0, length: 8 }]);
    transfer(pair.b.bytes);
    postSend(pair.a, qpA, { opcode: SEND, segments: [{ offset: 0, length: 8 }] });
    pair.run(1000);
    assert.deepEqual(statuses(pair), [[0, WcStatus.REM_OP_ERR]]);
    assert.equal(drain(pair.b.receiveCq)[0]?.status, WcStatus.LOC_PROT_ERR);
  });

  it('fails the request that names it, also while packets wait for the port', () => {
    const { pair, qpA, qpB } = connectedPair(5);
    const healthy = pair.a.createQp();
    const peer = pair.b.createQp();
    connect(pair, healthy, peer);
    const other = new Uint8Array(4096);
    const region = pair.a.pd.registerMemory(other, 1, pair.a.base);
    const { lkey } = region;
    for (const qp of [qpB, peer]) postReceive(pair.b, qp, [{ offset: 64, length: 4096 }]);
    pair.a.port.sendCredit = 0;
    const offset = 0;
    postSend(pair.a, qpA, { opcode: SEND, segments: [{ offset, length: 2048, lkey }] });
    postSend(pair.a, healthy, { opcode: SEND, cookie: 9, segments: [{ offset, length: 2048 }] });
    pair.a.driver.pump();
    transfer(other);
    pair.a.port.sendCredit = Infinity;
    pair.run(100_000);
    assert.deepEqual(statuses(pair).sort(), [
      [0, WcStatus.LOC_PROT_ERR],
      [9, WcStatus.SUCCESS],
    ]);
  });
});

/** Takes the free-running indices of a queue pair close to their wrap. */
function nearWrap(qp: QueuePair): void {
  qp.sendRing.producer = 0xfffffffd;
  qp.receiveRing!.producer = 0xfffffffd;
  qp.modify({ state: QpState.RESET });
}

describe('Ring indices and PSNs near their wrap', () => {
  it('carry all operations across', () => {
    const pair = new HcaPair(7);
    const qpA = pair.a.createQp();
    const qpB = pair.b.createQp();
    for (const qp of [qpA, qpB]) nearWrap(qp);
    for (const { sendCq, receiveCq } of [pair.a, pair.b]) {
      assert.deepEqual([sendCq.poll(), receiveCq.poll()], [0, 0]);
    }
    connect(pair, qpA, qpB);
    for (let i = 0; i < 3 * MTU; i++) pair.a.bytes[i] = i * 7;
    const expected: [number, number][] = [];
    for (let i = 0; i < 12; i++) {
      const remote = { remoteAddress: pair.b.base + 0x8000n, rkey: pair.b.region.rkey };
      const segments = [{ offset: 0, length: 3 * MTU }];
      postReceive(pair.b, qpB, [{ offset: 0x4000, length: 3 * MTU }], i);
      const flags = WrFlags.SIGNALED;
      if (i % 3 === 0) postSend(pair.a, qpA, { opcode: WrOpcode.SEND, segments, cookie: i });
      else if (i % 3 === 1) {
        postSend(pair.a, qpA, { opcode: WrOpcode.RDMA_WRITE, ...remote, segments, cookie: i });
      } else {
        const into = [{ offset: 0x2000, length: 3 * MTU }];
        const opcode = WrOpcode.RDMA_READ;
        postSend(pair.a, qpA, { opcode, ...remote, segments: into, cookie: i, flags });
      }
      expected.push([i, WcStatus.SUCCESS]);
    }
    pair.run(10_000);
    const done = drain(pair.a.sendCq);
    assert.deepEqual(
      done.map((c) => [c.cookie, c.status]),
      expected,
    );
    assert.deepEqual(
      done.map((c) => c.wqeIndex),
      expected.map(([i]) => (0xfffffffd + i) >>> 0),
    );
    assert.deepEqual(
      pair.a.bytes.subarray(0x2000, 0x2000 + 3 * MTU),
      pair.a.bytes.slice(0, 3 * MTU),
    );
    assert.deepEqual(
      drain(pair.b.receiveCq).map((c) => [c.cookie, c.wqeIndex]),
      [0, 1, 2, 3].map((i) => [i, (0xfffffffd + i) >>> 0]),
    );
  });
});

describe('Resizing a completion queue', () => {
  it('keeps completions that are written and not yet shown', () => {
    const { pair, qpA } = connectedPair(5);
    qpA.modify({ state: QpState.ERR });
    drain(pair.a.sendCq);
    const cq = pair.a.sendCq as SoftCompletionQueue;
    cq.push({ qpn: 1, context: 0 }, 0, 0, Uint32Array.of(42, 0), 0, 0);
    cq.resize(16);
    cq.publish();
    assert.deepEqual(
      drain(pair.a.sendCq).map((c) => c.cookie),
      [42],
    );
  });
});
