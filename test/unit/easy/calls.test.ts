// `connect` and `listen` of `dapl/easy`: names, routes, time, and what callers may get wrong.

import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { openIa } from 'dapl';
import {
  connect,
  type ConnectOptions,
  datagrams,
  FlowError,
  listen,
  type ListenOptions,
} from 'dapl/easy';
import { Fabric, mock } from 'dapl/providers/mock';
import { softroce } from 'dapl/providers/softroce';
import { addressOf } from '../../../plugins/easy/names.js';
import { Deadline } from '../../../plugins/easy/deadline.js';
import { routeOn, routeToward } from '../../../plugins/easy/route.js';
import { loopback } from '../../support/loopback.js';

const ADDRESS = loopback(23, 1);

const refusal =
  (code: string, message: RegExp) =>
  (error: unknown): boolean => {
    assert.ok(FlowError.isFlowError(error), String(error));
    assert.equal(error.code, code);
    assert.match(error.message, message);
    return true;
  };
const wrong = (message: RegExp): ReturnType<typeof refusal> =>
  refusal('DAT_INVALID_PARAMETER', message);

describe('easy: calls', () => {
  it('take names of hosts, of the family that is asked for', async () => {
    assert.equal(await addressOf('connect', 'localhost', 4), '127.0.0.1');
    assert.equal(await addressOf('connect', 'localhost', undefined), '127.0.0.1');
    assert.equal(await addressOf('connect', '192.0.2.7', undefined), '192.0.2.7');
    assert.equal(await addressOf('connect', 'fd00::7', 6), 'fd00::7');
    await assert.rejects(
      addressOf('connect', '192.0.2.7', 6),
      refusal('DAT_INVALID_ADDRESS', /"192\.0\.2\.7" has no IPv6 address: it is an IPv4 addr/),
    );
    for (const address of ['999.1.1.1', '192.0.2', '192.0.2.1.5'])
      await assert.rejects(
        connect({ address, port: 7 }),
        refusal('DAT_INVALID_ADDRESS', /has no address: an IPv4 address has four num/),
      );
    await assert.rejects(
      connect({ address: 'host.invalid', port: 7 }),
      refusal('DAT_INVALID_ADDRESS', /^connect: "host\.invalid" has no address: .*host\.inv/),
    );
    await assert.rejects(
      listen({ address: 'host.invalid', port: 7 }),
      refusal('DAT_INVALID_ADDRESS', /^listen: "host\.invalid" has no address/),
    );
    await assert.rejects(
      connect({ address: ADDRESS, localAddress: 'host.invalid', port: 7 }),
      refusal('DAT_INVALID_ADDRESS', /^connect: "host\.invalid" has no address/),
    );
  });

  it('find a way to loopback that is not the peer itself, unless that is ours', async () => {
    const other = await routeToward(ADDRESS, async () => false);
    assert.ok(other.own.length > 1 && !other.own.includes(ADDRESS));
    assert.equal(new Set(other.own).size, other.own.length);
    const network = ADDRESS.split('.').slice(0, 2).join('.');
    for (const own of other.own) {
      assert.ok(own.startsWith(`${network}.`) && other.suits(own), own);
    }
    assert.equal(other.suits(ADDRESS), false);
    assert.deepEqual((await routeToward(ADDRESS, async (address) => address === ADDRESS)).own, [
      ADDRESS,
    ]);
    assert.equal(routeOn(ADDRESS).suits(loopback(23, 2)), false);
  });

  it('look for another loopback address where another program has the first', async () => {
    const [first = '', second = ''] = (await routeToward(ADDRESS, async () => false)).own;
    const taken = createSocket('udp4').bind(4791, first);
    await once(taken, 'listening');
    const ia = await openIa(softroce({ addresses: [ADDRESS] }));
    const asked: string[] = [];
    ia.createPsp({ connQual: 7 }).requests$.subscribe(({ cr }) => {
      asked.push(cr.remoteAddress);
      cr.reject();
    });
    await assert.rejects(connect({ address: ADDRESS, port: 7 }), { code: 'DAT_CONN_REJECTED' });
    assert.deepEqual(asked, [second]);
    taken.close();
    await ia.close();
  });

  it('end in time: at a limit, at a signal, before and in the middle', async () => {
    const reason = new Error('enough');
    const signal = AbortSignal.abort(reason);
    await assert.rejects(connect({ address: ADDRESS, port: 7, signal }), (error) => {
      return (
        refusal('DAT_INTERRUPTED_CALL', /^connect: /)(error) && (error as Error).cause === reason
      );
    });
    await assert.rejects(
      listen({ address: ADDRESS, port: 7, signal }),
      refusal('DAT_INTERRUPTED_CALL', /^listen: /),
    );
    const never = new Promise<never>(() => undefined);
    const late: number[] = [];
    const undo = (value: number): void => void late.push(value);
    await assert.rejects(
      new Deadline('connect', { timeoutMs: 1 }).during(never, undo),
      refusal('DAT_TIMEOUT_EXPIRED', /not done within 1 ms/),
    );
    const controller = new AbortController();
    let arrive = (_: number): void => undefined;
    const step = new Promise<number>((resolve) => (arrive = resolve));
    const limited = new Deadline('connect', { signal: controller.signal }).during(step, undo);
    controller.abort(reason);
    await assert.rejects(limited, refusal('DAT_INTERRUPTED_CALL', /AbortSignal/));
    arrive(5);
    await step;
    assert.deepEqual(late, [5], 'what comes too late is undone');
    assert.equal(await new Deadline('connect', {}).during(Promise.resolve(3), undo), 3);
    const { timeoutMs = 0 } = new Deadline('connect', { timeoutMs: 1000 }).left;
    assert.ok(timeoutMs > 0 && timeoutMs <= 1000);
  });

  it('take a free port for 0, and the own host for the unspecified address', async () => {
    const fabric = new Fabric({ seed: 5, autoRun: true });
    for (const [unspecified, own] of [
      ['0.0.0.0', '127.0.0.1'],
      ['::', '::1'],
    ] as const) {
      const provider = mock({ fabric, address: own });
      const server = await listen({ provider, port: 0 });
      assert.ok(server.port > 0);
      const to = { provider, address: unspecified, port: server.port };
      const [conn, served] = await Promise.all([connect(to), server.accept()]);
      await conn.send(Buffer.from('x'));
      assert.equal((await served.receive()).bytes.length, 1);
      await Promise.all([conn.close(), served.close(), server.close()]);
    }
  });

  it('name the time that was given, not what the steps before had left of it', async () => {
    const fabric = new Fabric({ seed: 5, autoRun: true });
    const provider = mock({ fabric, address: '192.0.2.1' });
    const silent = await openIa(mock({ fabric, address: '192.0.2.2' }));
    silent.createPsp({ connQual: 7, evd: silent.createEvd({ qlen: 8 }) });
    const place = { provider, address: '192.0.2.2', port: 7, timeoutMs: 50 };
    await assert.rejects(
      connect(place),
      refusal('DAT_TIMEOUT_EXPIRED', /^connect: not done within 50 ms \[DAT_TIMEOUT_EXPIRED\]$/),
    );
    const own = await datagrams({ provider });
    await assert.rejects(
      own.resolve({ address: '192.0.2.3', port: 7, timeoutMs: 50 }),
      refusal('DAT_TIMEOUT_EXPIRED', /^datagrams\.resolve: not done within 50 ms/),
    );
    await own.close();
    await silent.close('abrupt');
  });

  it('refuse what cannot be, before anything is opened', async () => {
    const fabric = new Fabric({ seed: 5, autoRun: true });
    const provider = mock({ fabric, address: '192.0.2.1' });
    const ia = await openIa(provider);
    const to = { address: ADDRESS, port: 7 };
    const connects: [unknown, RegExp][] = [
      [undefined, /options is undefined/],
      [{ port: 7 }, /address is undefined; it must be an IP address in text, or the name/],
      [{ ...to, address: '' }, /address is ""/],
      [{ ...to, family: 5 }, /family is 5; it must be (one of )?4/],
      [{ ...to, provider: 7 }, /provider is 7; it must be a provider, as mock/],
      [{ ...to, provider: '' }, /provider is ""/],
      [{ ...to, ia: {} }, /ia is an object; it must be an Ia/],
      [{ ...to, ia, provider }, /provider is .*; it must be left out where `ia` is given/],
      [{ ...to, ia, localAddress: ADDRESS }, /localAddress is .* left out where `ia` is given/],
      [{ ...to, timeoutMs: -1 }, /timeoutMs is -1/],
      [{ ...to, signal: 'now' }, /signal is "now"/],
      [{ ...to, timeOutMs: 5 }, /an option is "timeOutMs"; .*timeoutMs/],
    ];
    for (const [options, message] of connects) {
      await assert.rejects(connect(options as ConnectOptions), wrong(message));
    }
    const listens: [unknown, RegExp][] = [
      [{ port: 7 }, /address is undefined; it must be given, or `ia`, or `provider`/],
      [{ ...to, ia }, /address is .*; it must be left out where `ia` is given/],
      [{ port: 7, ia, provider }, /provider is .*; it must be left out where `ia` is given/],
      [{ ...to, localAddress: ADDRESS }, /an option is "localAddress"/],
      [{ ...to, address: 7 }, /address is 7/],
    ];
    for (const [options, message] of listens) {
      await assert.rejects(listen(options as ListenOptions), wrong(message));
    }
    await assert.rejects(connect({ ia, ...to, address: '192.0.2.2', port: 0 }), wrong(/port is 0/));
    await assert.rejects(listen({ ia, port: 70_000 }), wrong(/port is 70000/));
    await ia.close();
  });
});
