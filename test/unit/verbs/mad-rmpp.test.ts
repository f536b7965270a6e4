/** Transfers over umad devices: the kernel's RMPP, and our own where the kernel's cannot work. */
import assert from 'node:assert/strict';
import {
  type MadAgent,
  type MadAgentOptions,
  type MadSend,
  SpiError,
} from '../../../core/spi/index.js';
import type { RmppBy } from '../../../providers/verbs/mad/mad.js';
import { GET, UmadNode, fakeUmad, madOf, until } from '../../fake-umad/fake.js';

/** Vendor range 2. */
const CLASS = 0x30;
const HEADERS_BYTES = 40;
const LONG_BYTES = 100_000;
const RMPP: Partial<MadAgentOptions> = { managementClass: CLASS, oui: 0x02da91, rmpp: true };

const FAMILIES = [
  { name: 'the kernel, over IPv6', ips: ['fd00::1', 'fd00::2'], rmppBy: 'auto' },
  { name: 'our own, over IPv4', ips: ['10.0.0.1', '10.0.0.2'], rmppBy: 'auto' },
  { name: 'our own, over IPv6', ips: ['fd00::1', 'fd00::2'], rmppBy: 'module' },
] as const satisfies readonly { name: string; ips: [string, string]; rmppBy: RmppBy }[];

function transferOf(agent: MadAgent, dataBytes: number, method = GET): Uint8Array {
  const header = { managementClass: CLASS, method, transactionIdHi: agent.hiTid };
  const mad = madOf(header, HEADERS_BYTES + dataBytes).fill(0, 24);
  mad.set([0x02, 0xda, 0x91], 37);
  for (let i = HEADERS_BYTES; i < mad.length; i++) mad[i] = (i * 7) & 0xff;
  return mad;
}

function ask(
  agent: MadAgent,
  to: UmadNode,
  data: Uint8Array,
  more: Partial<MadSend> = {},
): MadSend {
  const timeoutUs = 2_000_000;
  return { destination: to.address(), data, timeoutUs, retries: 1, context: 'one', ...more };
}

const refused = (code: string, message: RegExp) => (error: unknown) =>
  error instanceof SpiError && error.code === code && message.test(error.message);

for (const { name, ips, rmppBy } of FAMILIES) {
  describe(`verbs MAD: transfers by ${name}`, () => {
    const pair = (): { a: UmadNode; b: UmadNode } => ({
      a: new UmadNode([ips[0]], { rmppBy }),
      b: new UmadNode([ips[1]], { rmppBy }),
    });

    afterEach(() => fakeUmad.reset());

    it('carries requests and responses of any length', async () => {
      const { a, b } = pair();
      for (const [asked, answered] of [
        [0, 0],
        [3, LONG_BYTES],
        [LONG_BYTES, 300],
        [217, 1],
      ] as const) {
        const answer = transferOf({ hiTid: 0 } as MadAgent, answered);
        const answering = b.answerer(RMPP, answer);
        const agent = a.agent(RMPP);
        const request = transferOf(agent, asked);
        agent.send(ask(agent, b, request));
        await until('reported', () => a.log.length === 2);
        assert.deepEqual(a.log.splice(0), ['response one', 'SUCCESS one']);
        const { data } = a.received.pop()!;
        assert.equal(data.length, answer.length);
        assert.deepEqual(data.subarray(HEADERS_BYTES), answer.subarray(HEADERS_BYTES));
        assert.deepEqual(data.subarray(8, 16), request.subarray(8, 16));
        await Promise.all([agent.unregister(), answering.unregister()]);
      }
    });

    it('hands a long request over whole', async () => {
      const { a, b } = pair();
      b.agent({ ...RMPP, methods: [GET] });
      const agent = a.agent(RMPP);
      const request = transferOf(agent, LONG_BYTES);
      agent.send(ask(agent, b, request, { timeoutUs: 0 }));
      await until('received', () => b.received.length === 1 && a.log.length === 1);
      assert.deepEqual(
        b.received[0]?.data.subarray(HEADERS_BYTES),
        request.subarray(HEADERS_BYTES),
      );
      assert.deepEqual(a.log, ['SUCCESS one']);
    });

    it('unregisters in the middle of it', async () => {
      const { a, b } = pair();
      b.agent({ ...RMPP, methods: [GET] });
      const agent = a.agent({ ...RMPP, methods: [2] });
      agent.send(ask(agent, b, transferOf(agent, LONG_BYTES)));
      await agent.unregister();
      assert.deepEqual(a.log, ['WR_FLUSH_ERR one']);
      await b.mad.close();
      assert.deepEqual([a.world.activeTimers, b.world.activeTimers], [0, 0]);
    });

    it('returns what was sent when the device is removed', async () => {
      const { a, b } = pair();
      b.agent({ ...RMPP, methods: [GET] });
      const agent = a.agent(RMPP);
      agent.send(ask(agent, b, transferOf(agent, 10)));
      await until('received', () => b.received.length === 1);
      fakeUmad.removePort(a.path);
      await until('returned', () => a.log.length === 1);
      assert.deepEqual(a.log, ['WR_FLUSH_ERR one']);
      assert.throws(
        () => agent.send(ask(agent, b, transferOf(agent, 1))),
        refused('ENODEV', /gone/),
      );
      await a.mad.close();
    });

    it('says why a peer is not reached', async () => {
      const { a } = pair();
      const agent = a.agent(RMPP);
      const destination = {
        ...a.address(),
        gid: a.gids[0]!.map((byte, i) => byte ^ Number(i > 13)),
      };
      agent.send(ask(agent, a, transferOf(agent, 10), { destination }));
      await until('reported', () => a.log.length === 1);
      assert.equal(a.results[0]?.error?.code, 'EHOSTUNREACH');
      await a.mad.close();
    });
  });
}

describe('verbs MAD: whose RMPP', () => {
  afterEach(() => fakeUmad.reset());

  it('the kernel tells of a transfer without response only that it has not arrived', async () => {
    const [a, b] = [new UmadNode(['fd00::1']), new UmadNode(['fd00::2'])];
    b.agent({ ...RMPP, methods: [GET] });
    const agent = a.agent(RMPP);
    fakeUmad.lose(2);
    agent.send(ask(agent, b, transferOf(agent, 10), { timeoutUs: 0 }));
    await until('reported', () => a.log.length === 1);
    assert.deepEqual(a.log, ['SUCCESS one']);
    fakeUmad.advance(2000);
    fakeUmad.advance(2000);
    await until('late', () => a.mad.counters.lateTimeouts === 1);
  });

  it('our own tells both', async () => {
    const [a, b] = [new UmadNode(['10.0.0.1']), new UmadNode(['10.0.0.2'])];
    b.agent({ ...RMPP, methods: [GET] });
    const agent = a.agent(RMPP);
    fakeUmad.lose(1_000_000);
    agent.send(ask(agent, b, transferOf(agent, 10), { timeoutUs: 0, retries: 0 }));
    await until('written', () => a.world.activeTimers > 0);
    for (let i = 0; i < 40 && a.log.length === 0; i++) {
      await a.world.runFor(100_000);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    assert.deepEqual(a.log, ['RESP_TIMEOUT_ERR one']);
  });

  it('the kernel is not asked for what it cannot do over IPv4', () => {
    const a = new UmadNode(['10.0.0.1'], { rmppBy: 'kernel' });
    const agent = a.agent(RMPP);
    assert.throws(
      () => agent.send(ask(agent, a, transferOf(agent, 10))),
      refused('EOPNOTSUPP', /IPv4 Linux drops/),
    );
  });

  it('an agent with RMPP asks without it the way of the kernel', async () => {
    const [a, b] = [new UmadNode(['fd00::1', '10.0.0.1']), new UmadNode(['fd00::2', '10.0.0.2'])];
    b.answerer({ ...RMPP, rmpp: false });
    const agent = a.agent(RMPP);
    const plain = transferOf(agent, 216);
    assert.equal(plain.length, 256);
    const handle = agent.send(ask(agent, b, plain));
    assert.throws(() => agent.modify(handle, 5), refused('EOPNOTSUPP', /no way/));
    await until('answered', () => a.log.length === 2);
    assert.deepEqual(a.log, ['response one', 'SUCCESS one']);
    const destination = b.address(1);
    assert.throws(
      () => agent.send(ask(agent, b, transferOf(agent, 216), { destination })),
      refused('EOPNOTSUPP', /10\.0\.0\.2/),
    );
    agent.cancel(agent.send(ask(agent, b, transferOf(agent, 216))));
    await a.mad.close();
    assert.equal(a.log.at(-1), 'WR_FLUSH_ERR one');
  });

  it('an agent with the kernel’s RMPP sends no class that has none', () => {
    const a = new UmadNode(['fd00::1']);
    const agent = a.agent(RMPP);
    const data = madOf({ transactionIdHi: agent.hiTid });
    assert.throws(() => agent.send(ask(agent, a, data)), refused('EINVAL', /nothing else/));
  });
});
