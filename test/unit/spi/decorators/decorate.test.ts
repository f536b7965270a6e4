import assert from 'node:assert/strict';
import { openIa } from 'dapl';
import { cm } from 'dapl/plugins/cm';
import { Fabric, mock } from 'dapl/providers/mock';
import { DEVICE, type PacketPort, Timer, WcStatus, WrOpcode } from 'dapl/spi';
import { decorate, decorateModule, observe, type ObservedCompletion } from 'dapl/spi/decorators';
import { connected } from '../../../../plugins/testing/suite/peer.js';
import { PROVIDER_PAIRS, withAdapters } from '../../../support/every-provider.js';

describe('A decorated provider', () => {
  for (const [name, pairOf] of Object.entries(PROVIDER_PAIRS)) {
    it(`may answer requests later, by the timers of its device: ${name}`, async () => {
      const pair = pairOf();
      const waits: number[] = [];
      const passive = decorate(pair.passive, {
        cm: (inner, { clock, timers }) => ({
          listen: ({ onRequest, ...options }) =>
            inner.listen({
              ...options,
              onRequest: (request) => {
                const begin = clock.now();
                const later = new Timer(() => {
                  waits.push(clock.now() - begin);
                  onRequest?.(request);
                });
                timers.start(later, begin + 20_000);
              },
            }),
        }),
      });
      await withAdapters({ ...pair, passive }, async (opened) => {
        await connected(opened);
      });
      assert.ok(waits.length === 1 && waits[0]! >= 20_000, String(waits));
    });

    it(`has its CM and its device wrapped, one over the other: ${name}`, async () => {
      const calls: string[] = [];
      const pair = pairOf();
      const once = decorate(pair.active, {
        cm: (inner) => ({
          connect: (options) => {
            calls.push('lower connect');
            return inner.connect(options);
          },
        }),
        device: (inner) => ({
          createProtectionDomain: () => {
            calls.push('domain');
            return inner.createProtectionDomain();
          },
        }),
      });
      const active = decorate(once, {
        cm: (inner, { clock }) => ({
          connect: (options) => {
            calls.push(`upper connect ${typeof clock.now()}`);
            return inner.connect(options);
          },
        }),
      });
      await withAdapters({ ...pair, active }, async (opened) => {
        await connected(opened);
      });
      const connects = calls.filter((call) => call !== 'domain');
      assert.deepEqual(connects, ['upper connect number', 'lower connect']);
      assert.ok(calls.includes('domain'));
    });
  }

  it('has the port beneath its device wrapped', async () => {
    const fabric = new Fabric({ autoRun: true });
    let sent = 0;
    const port = (inner: PacketPort): Partial<PacketPort> => ({
      send: (from, to) => {
        sent += to - from;
        return inner.send(from, to);
      },
    });
    const active = decorate(mock({ fabric, address: '192.0.2.1' }), { port });
    const passive = mock({ fabric, address: '192.0.2.2' });
    await withAdapters({ active, passive, passiveAddress: '192.0.2.2' }, async (opened) => {
      await connected(opened);
    });
    assert.ok(sent >= 2, `${sent} packets`);
  });

  it('wraps a module that stands in place of the own one', async () => {
    const fabric = new Fabric({ autoRun: true });
    let connects = 0;
    const module = decorateModule(cm({}), (inner) => ({
      connect: (options) => {
        connects++;
        return inner.connect(options);
      },
    }));
    const active = await openIa(mock({ fabric, address: '192.0.2.1' }), {
      modules: { cm: module },
    });
    const passive = await openIa(mock({ fabric, address: '192.0.2.2' }));
    const close = async (): Promise<void> => {
      await Promise.all([active.close(), passive.close()]);
    };
    await connected({ active, passive, passiveAddress: '192.0.2.2', close });
    await close();
    assert.equal(connects, 1);
  });

  it('refuses parts that there are not, and what is no function', () => {
    const provider = mock({ fabric: new Fabric(), address: '192.0.2.1' });
    const wrong = (decorators: object): void => void decorate(provider, decorators);
    assert.throws(() => wrong({ cmm: () => ({}) }), /decorate: .*"cmm".*cm/);
    assert.throws(() => wrong({ cm: 5 }), /decorate: .*cm.*5/);
    assert.ok(DEVICE);
  });
});

describe('An observed provider', () => {
  for (const [name, pairOf] of Object.entries(PROVIDER_PAIRS)) {
    it(`shows what is posted and what completes: ${name}`, async () => {
      const seen: string[] = [];
      const pair = pairOf();
      const active = observe(pair.active, {
        posted: ({ kind, qpn, opcode, lengthBytes }) => {
          if (qpn === 1 || kind === 'receive') return;
          seen.push(`posted ${opcode} of ${lengthBytes} bytes`);
        },
        completed: ({ kind, qpn, status, lengthBytes, tookUs = NaN }) => {
          if (qpn === 1 || kind === 'receive') return;
          assert.ok(tookUs >= 0);
          seen.push(`completed ${status} with ${lengthBytes} bytes`);
        },
      });
      await withAdapters({ ...pair, active }, async (opened) => {
        const peers = await connected(opened);
        peers.passive.ep.postRecv(peers.passive.lmr.segment(0, 100), 1);
        peers.active.ep.postSend(peers.active.lmr.segment(0, 40), 2);
        await peers.passive.expect('dto 1 SUCCESS');
        await peers.active.expect('dto 2 SUCCESS');
      });
      const own = [`posted ${WrOpcode.SEND} of 40 bytes`, 'completed 0 with 40 bytes'];
      assert.deepEqual(seen.slice(0, 2), own);
    });

    it(`has one request fail, and its connection with it: ${name}`, async () => {
      const completions: ObservedCompletion[] = [];
      const pair = pairOf();
      let sends = 0;
      const active = observe(pair.active, {
        fail: ({ qpn }) => (qpn !== 1 && ++sends === 2 ? WcStatus.REM_OP_ERR : undefined),
        completed: (completion) => {
          if (completion.qpn !== 1 && completion.kind === 'send') completions.push(completion);
        },
      });
      await withAdapters({ ...pair, active }, async (opened) => {
        const peers = await connected(opened);
        const { active: a, passive: b } = peers;
        for (const cookie of [1, 2, 3]) b.ep.postRecv(b.lmr.segment(0, 100), cookie);
        a.ep.postSend(a.lmr.segment(0, 40), 4);
        await a.expect('dto 4 SUCCESS');
        a.ep.postSend(a.lmr.segment(0, 40), 5);
        a.ep.postSend(a.lmr.segment(0, 40), 6);
        await a.until('BROKEN');
      });
      const statuses = completions.map(({ status }) => status);
      const { SUCCESS, REM_OP_ERR, WR_FLUSH_ERR } = WcStatus;
      assert.deepEqual(statuses, [SUCCESS, REM_OP_ERR, WR_FLUSH_ERR]);
    });
  }
});
