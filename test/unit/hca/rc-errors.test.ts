import assert from 'node:assert/strict';
import {
  Access,
  AsyncEventType,
  QpState,
  type QueuePair,
  WcStatus,
  WrOpcode,
} from '../../../core/spi/index.js';
import {
  connect,
  drain,
  HcaPair,
  postReceive,
  postSend,
  type SendRequest,
} from '../../support/hca-pair.js';
import { assertSameBytes } from '../../support/same-bytes.js';

const MTU = 1024;
const FULL = 1 << 20;

function connected(overrides = {}): { pair: HcaPair; qpA: QueuePair; qpB: QueuePair } {
  const pair = new HcaPair(9);
  const qpA = pair.a.createQp();
  const qpB = pair.b.createQp();
  connect(pair, qpA, qpB, overrides, MTU);
  pair.a.bytes.fill(0xaa);
  return { pair, qpA, qpB };
}

/** Posts one bad request and one good one behind it; both ends must be in ERR, memory untouched. */
function breaks(
  request: (pair: HcaPair) => SendRequest,
  status: number,
  event: number,
  overrides = {},
): void {
  const { pair, qpA, qpB } = connected(overrides);
  const before = pair.b.bytes.slice();
  postSend(pair.a, qpA, { cookie: 1, ...request(pair) });
  postSend(pair.a, qpA, { cookie: 2, ...request(pair) });
  pair.run(100_000);
  assert.deepEqual(
    drain(pair.a.sendCq).map((c) => [c.cookie, c.status]),
    [
      [1, status],
      [2, WcStatus.WR_FLUSH_ERR],
    ],
  );
  assert.deepEqual([qpA.state, qpB.state], [QpState.ERR, QpState.ERR]);
  assert.deepEqual(pair.b.events, [event]);
  assertSameBytes(pair.b.bytes, before);
}

const whole = [{ offset: 0, length: 3 * MTU }];
const { REM_ACCESS_ERR, REM_INV_REQ_ERR } = WcStatus;
const { QP_ACCESS_ERR, QP_REQ_ERR } = AsyncEventType;

describe('RC remote access', () => {
  for (const opcode of [WrOpcode.RDMA_WRITE, WrOpcode.RDMA_READ]) {
    const op = { opcode, segments: whole };
    const name = opcode === WrOpcode.RDMA_READ ? 'READ' : 'WRITE';
    const cases: [string, (pair: HcaPair) => SendRequest][] = [
      ['a wrong rkey', (p) => ({ ...op, remoteAddress: p.b.base, rkey: p.b.region.rkey ^ 1 })],
      ['rkey 0', (p) => ({ ...op, remoteAddress: p.b.base, rkey: 0 })],
      [
        'a range past the end',
        (p) => ({
          ...op,
          remoteAddress: p.b.base + BigInt(FULL - 3 * MTU + 1),
          rkey: p.b.region.rkey,
        }),
      ],
      [
        'a range before the start',
        (p) => ({ ...op, remoteAddress: p.b.base - 1n, rkey: p.b.region.rkey }),
      ],
      [
        'an address 2^32 off',
        (p) => ({ ...op, remoteAddress: p.b.base + (1n << 32n), rkey: p.b.region.rkey }),
      ],
      [
        'an address that wraps',
        (p) => ({ ...op, remoteAddress: (1n << 64n) - 8n, rkey: p.b.region.rkey }),
      ],
      [
        'a region of another domain',
        (p) => {
          const other = p.b.driver.device.createProtectionDomain();
          const region = other.registerMemory(p.b.bytes, 7, p.b.base);
          return { ...op, remoteAddress: p.b.base, rkey: region.rkey };
        },
      ],
      [
        'a region without the right',
        (p) => ({
          ...op,
          remoteAddress: p.b.base,
          rkey: p.b.pd.registerMemory(p.b.bytes, Access.LOCAL_WRITE, p.b.base).rkey,
        }),
      ],
      [
        'a region that is gone',
        (p) => {
          const region = p.b.pd.registerMemory(p.b.bytes, 7, p.b.base);
          region.destroy();
          return { ...op, remoteAddress: p.b.base, rkey: region.rkey };
        },
      ],
    ];
    for (const [what, request] of cases) {
      it(`${name} with ${what} is a remote access error`, () => {
        breaks(request, REM_ACCESS_ERR, QP_ACCESS_ERR);
      });
    }

    it(`${name} that the queue pair does not allow is an invalid request`, () => {
      breaks(
        (p) => ({ ...op, remoteAddress: p.b.base, rkey: p.b.region.rkey }),
        REM_INV_REQ_ERR,
        QP_REQ_ERR,
        { accessFlags: Access.LOCAL_WRITE },
      );
    });

    it(`${name} of no bytes needs no rkey`, () => {
      const { pair, qpA } = connected();
      postSend(pair.a, qpA, { opcode, segments: [], remoteAddress: 0n, rkey: 12345 });
      pair.run(10_000);
      assert.deepEqual(
        drain(pair.a.sendCq).map((c) => c.status),
        [WcStatus.SUCCESS],
      );
    });
  }

  it('reaches beyond 4 GiB of address space without losing a bit', () => {
    const { pair, qpA } = connected();
    const base = 0xffff_ffff_ffff_0000n;
    const region = pair.b.pd.registerMemory(pair.b.bytes.subarray(0, 0x10000), 7, base);
    const write = { opcode: WrOpcode.RDMA_WRITE, rkey: region.rkey };
    postSend(pair.a, qpA, {
      ...write,
      segments: [{ offset: 0, length: 8 }],
      remoteAddress: base + 0xfff8n,
    });
    pair.run(10_000);
    assert.deepEqual(
      drain(pair.a.sendCq).map((c) => c.status),
      [WcStatus.SUCCESS],
    );
    assert.equal(pair.b.bytes[0xffff], 0xaa);
    assert.equal(pair.b.bytes[0xfff7], 0);
    assert.throws(() => pair.b.pd.registerMemory(pair.b.bytes, 7, base), /64-bit/);
  });

  it('READ without responder resources is an invalid request', () => {
    breaks(
      (p) => ({
        opcode: WrOpcode.RDMA_READ,
        segments: whole,
        remoteAddress: p.b.base,
        rkey: p.b.region.rkey,
      }),
      REM_INV_REQ_ERR,
      QP_REQ_ERR,
      { maxDestRdAtomic: 0 },
    );
  });

  it('a misaligned atomic is an invalid request', () => {
    breaks(
      (p) => ({
        opcode: WrOpcode.ATOMIC_FETCH_AND_ADD,
        segments: [{ offset: 0, length: 8 }],
        remoteAddress: p.b.base + 4n,
        rkey: p.b.region.rkey,
      }),
      REM_INV_REQ_ERR,
      QP_REQ_ERR,
    );
  });

  it('a READ whose memory goes away is a remote access error', () => {
    const { pair, qpA, qpB } = connected();
    const region = pair.b.pd.registerMemory(pair.b.bytes, 7, pair.b.base);
    postSend(pair.a, qpA, {
      opcode: WrOpcode.RDMA_READ,
      segments: [{ offset: 0, length: 600_000 }],
      remoteAddress: pair.b.base,
      rkey: region.rkey,
    });
    pair.b.port.sendCredit = 20;
    pair.settle();
    region.destroy();
    pair.b.port.sendCredit = Infinity;
    pair.run(100_000);
    assert.deepEqual(
      drain(pair.a.sendCq).map((c) => c.status),
      [WcStatus.REM_ACCESS_ERR],
    );
    assert.deepEqual([qpA.state, qpB.state], [QpState.ERR, QpState.ERR]);
  });
});

describe('RC local errors', () => {
  const bad: [string, Partial<SendRequest>, number][] = [
    ['lkey', { segments: [{ offset: 0, length: 8, lkey: 99 }] }, WcStatus.LOC_PROT_ERR],
    ['bounds', { segments: [{ offset: FULL - 4, length: 8 }] }, WcStatus.LOC_PROT_ERR],
    ['opcode', { opcode: 77 }, WcStatus.LOC_QP_OP_ERR],
    ['bind of no window', { opcode: WrOpcode.BIND_MW }, WcStatus.LOC_QP_OP_ERR],
  ];
  for (const [what, request, status] of bad) {
    it(`a bad ${what} fails after what was before it, and flushes the rest`, () => {
      const { pair, qpA, qpB } = connected();
      const good = { opcode: WrOpcode.SEND, segments: [{ offset: 0, length: 8 }] };
      for (let i = 0; i < 3; i++) postReceive(pair.b, qpB, [{ offset: 64, length: 64 }]);
      postReceive(pair.a, qpA, [{ offset: 64, length: 64 }], 50);
      postSend(pair.a, qpA, { ...good, cookie: 1, flags: 0 });
      postSend(pair.a, qpA, { ...good, ...request, cookie: 2, flags: 0 });
      postSend(pair.a, qpA, { ...good, cookie: 3, flags: 0 });
      pair.run(10_000);
      postSend(pair.a, qpA, { ...good, cookie: 4, flags: 0 });
      postReceive(pair.a, qpA, [{ offset: 64, length: 64 }], 51);
      assert.deepEqual(
        drain(pair.a.sendCq).map((c) => [c.cookie, c.status]),
        [
          [2, status],
          [3, WcStatus.WR_FLUSH_ERR],
          [4, WcStatus.WR_FLUSH_ERR],
        ],
      );
      assert.deepEqual(
        drain(pair.a.receiveCq).map((c) => [c.cookie, c.status]),
        [
          [50, WcStatus.WR_FLUSH_ERR],
          [51, WcStatus.WR_FLUSH_ERR],
        ],
      );
      assert.equal(drain(pair.b.receiveCq).length, 1, 'the one before it arrived');
      assert.equal(qpA.state, QpState.ERR);
    });
  }

  it('a receive that is too small breaks both ends', () => {
    const { pair, qpA, qpB } = connected();
    postReceive(pair.b, qpB, [{ offset: 64, length: 2 * MTU }], 1);
    postReceive(pair.b, qpB, [{ offset: 64, length: 8 }], 2);
    postSend(pair.a, qpA, { opcode: WrOpcode.SEND, segments: whole });
    pair.run(10_000);
    assert.deepEqual(
      drain(pair.a.sendCq).map((c) => c.status),
      [WcStatus.REM_INV_REQ_ERR],
    );
    assert.deepEqual(
      drain(pair.b.receiveCq).map((c) => [c.cookie, c.status]),
      [
        [1, WcStatus.LOC_LEN_ERR],
        [2, WcStatus.WR_FLUSH_ERR],
      ],
    );
  });

  it('a receive with a bad lkey is a remote operational error', () => {
    const { pair, qpA, qpB } = connected();
    postReceive(pair.b, qpB, [{ offset: 64, length: MTU, lkey: 5 }], 1);
    postSend(pair.a, qpA, { opcode: WrOpcode.SEND, segments: [{ offset: 0, length: 9 }] });
    pair.run(10_000);
    assert.deepEqual(
      drain(pair.a.sendCq).map((c) => c.status),
      [WcStatus.REM_OP_ERR],
    );
    assert.deepEqual(
      drain(pair.b.receiveCq).map((c) => c.status),
      [WcStatus.LOC_PROT_ERR],
    );
    assert.equal(pair.b.driver.device.counters.localErrors, 1);
  });
});

describe('RC retries', () => {
  const send = { opcode: WrOpcode.SEND, segments: [{ offset: 0, length: 8 }] };

  it('waits for a receive and then delivers', () => {
    const { pair, qpA, qpB } = connected({ minRnrTimer: 14 });
    postSend(pair.a, qpA, send);
    postSend(pair.a, qpA, send);
    pair.run(20_000);
    assert.ok(pair.b.driver.device.counters.rnrNaksSent > 5);
    assert.deepEqual(drain(pair.a.sendCq), []);
    postReceive(pair.b, qpB, [{ offset: 64, length: 64 }]);
    postReceive(pair.b, qpB, [{ offset: 64, length: 64 }]);
    pair.run(5_000);
    assert.deepEqual(
      drain(pair.a.sendCq).map((c) => c.status),
      [0, 0],
    );
  });

  for (const retries of [0, 3]) {
    it(`gives up after ${retries} RNR retries`, () => {
      const { pair, qpA } = connected({ rnrRetryCount: retries });
      postSend(pair.a, qpA, send);
      pair.run(1_000_000);
      assert.deepEqual(
        drain(pair.a.sendCq).map((c) => c.status),
        [WcStatus.RNR_RETRY_EXC_ERR],
      );
      assert.equal(pair.b.driver.device.counters.rnrNaksSent, retries + 1);
    });
  }

  for (const retries of [0, 2, 7]) {
    it(`gives up on a silent peer after ${retries} retries, each 1 to 4 times the timeout`, () => {
      const { pair, qpA } = connected({ retryCount: retries, timeout: 12 });
      let packets = 0;
      pair.a.port.filter = () => {
        packets += 1;
        return [];
      };
      const start = pair.clock.timeUs;
      postSend(pair.a, qpA, send);
      const timeoutUs = 4.096 * 2 ** 12;
      pair.run(timeoutUs * (retries + 1) - 1);
      assert.deepEqual(drain(pair.a.sendCq), []);
      pair.run(start + 4 * timeoutUs * (retries + 1) - pair.clock.timeUs);
      assert.deepEqual(
        drain(pair.a.sendCq).map((c) => c.status),
        [WcStatus.RETRY_EXC_ERR],
      );
      const { counters } = pair.a.driver.device;
      assert.equal(counters.retries, retries);
      assert.equal(packets, retries + 1 + counters.earlyRepeats);
      // They come at doubling intervals: not many before the ACK timer has had its time.
      assert.ok(counters.earlyRepeats <= 2 + 2 * retries, `${counters.earlyRepeats} repeats`);
      assert.match(qpA.flightRecord().join('\n'), /RETRY_EXC_ERR/);
    });
  }

  it('waits for ever without a timeout', () => {
    const { pair, qpA } = connected({ timeout: 0 });
    pair.a.port.filter = () => [];
    postSend(pair.a, qpA, send);
    pair.run(1e9);
    assert.deepEqual(drain(pair.a.sendCq), []);
    assert.equal(pair.a.driver.nextDeadlineUs(), Infinity);
  });

  it('hints take no retry: what is silent breaks when its retries have run out', () => {
    const brokenAt = (hintEveryUs: number): { ms: number; retries: number; repeats: number } => {
      const { pair, qpA } = connected({ timeout: 15, retryCount: 3 });
      const handlers = pair.a.driver.portHandlers(() => undefined);
      const heard: string[] = [];
      pair.a.driver.device.setReportHandler(({ gid }) => heard.push(gid.join('.')));
      pair.a.port.filter = () => [];
      postSend(pair.a, qpA, send);
      let ms = 0;
      for (; qpA.state === QpState.RTS && ms < 60_000; ms += 5) {
        const isDue = hintEveryUs > 0 && (ms * 1000) % hintEveryUs === 0;
        if (isDue) handlers.onReport({ type: 'port-unreachable', gid: pair.b.port.gids[0]! });
        pair.run(5_000);
      }
      assert.deepEqual(
        drain(pair.a.sendCq).map((c) => c.status),
        [WcStatus.RETRY_EXC_ERR],
      );
      assert.equal(heard.length > 0, hintEveryUs > 0);
      const { retries, earlyRepeats } = pair.a.driver.device.counters;
      return { ms, retries, repeats: earlyRepeats };
    };
    const silent = brokenAt(0);
    for (const everyUs of [5_000, 130_000, 400_000]) {
      const hinted = brokenAt(everyUs);
      assert.deepEqual([hinted.ms, hinted.retries], [silent.ms, silent.retries], `${everyUs} us`);
      const most = silent.repeats + 1 + Math.ceil((silent.ms * 1000) / Math.max(120_000, everyUs));
      assert.ok(hinted.repeats > silent.repeats && hinted.repeats <= most, `${hinted.repeats}`);
    }
  });

  it('outlives any number of false hints while the peer answers', () => {
    const { pair, qpA, qpB } = connected({ timeout: 20, retryCount: 2 });
    const handlers = pair.a.driver.portHandlers(() => undefined);
    for (let i = 0; i < 100; i++) {
      postReceive(pair.b, qpB, [{ offset: 64, length: 64 }]);
      postSend(pair.a, qpA, send);
      pair.a.driver.pump();
      handlers.onReport({ type: 'port-unreachable', gid: pair.b.port.gids[0]! });
      pair.run(130_000);
      drain(pair.b.receiveCq);
    }
    assert.equal(drain(pair.a.sendCq).filter((c) => c.status === 0).length, 100);
  });
});
