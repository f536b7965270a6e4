// `datagrams` of `dapl/easy`: names, routes, the adapter, and what callers may get wrong.

import assert from 'node:assert/strict';
import { openIa } from 'dapl';
import {
  connect,
  type DatagramOptions,
  datagrams,
  FlowError,
  listen,
  type ResolveOptions,
} from 'dapl/easy';
import { Fabric, mock } from 'dapl/providers/mock';
import { loopback } from '../../support/loopback.js';
import { patience } from '../../support/patience.js';

const NETWORK = 24;
const ADDRESS = loopback(NETWORK, 1);
const PORT = 7;
const provider = (fabric: Fabric, host: number): ReturnType<typeof mock> =>
  mock({ fabric, address: `192.0.2.${host}` });

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

describe('easy: datagrams', () => {
  it('find a service by host and port, and are answered', async () => {
    const server = await datagrams({ address: ADDRESS });
    server.serve({ port: PORT });
    const client = await datagrams({ peer: ADDRESS });
    assert.deepEqual(
      [server.address, client.address],
      [ADDRESS, ADDRESS],
      'one process, one device',
    );
    const timeoutMs = patience(10_000);
    const to = await client.resolve({ address: ADDRESS, port: PORT });
    await client.send(Buffer.from('question'), to);
    for await (const { bytes, source } of server) {
      assert.equal(Buffer.from(bytes).toString(), 'question');
      assert.deepEqual([source.address, source.qpn], [client.address, client.qpn]);
      await server.send(bytes.reverse(), source);
      break;
    }
    const { bytes } = await client.receive({ timeoutMs });
    assert.equal(Buffer.from(bytes).toString(), 'noitseuq');
    await client.close();
    assert.equal(server.ia.isFreed, false);
    await server.close();
    await server.closed;
    while (!server.ia.isFreed) await new Promise((resolve) => setImmediate(resolve));
  });

  it('share the adapter of connections, and take a provider or an adapter as given', async () => {
    const fabric = new Fabric({ seed: 6, autoRun: true });
    const listener = await listen({ provider: provider(fabric, 2), port: PORT });
    const far = await datagrams({ provider: provider(fabric, 2), receives: { buffers: 2 } });
    assert.equal(far.ia, listener.ia);
    far.serve({ port: PORT });
    const ia = await openIa(provider(fabric, 1));
    const near = await datagrams({ ia });
    const to = await near.resolve({ address: '192.0.2.2', port: PORT, timeoutMs: 1000 });
    assert.deepEqual([near.address, to.qpn], ['192.0.2.1', far.qpn]);
    await listener.close();
    await near.send(Buffer.from('still there'), to);
    assert.equal((await far.receive()).lengthBytes, 11);
    const conn = connect({ ia, address: '192.0.2.2', port: PORT });
    await assert.rejects(conn, { code: 'DAT_CONN_REFUSED' });
    await near.close();
    assert.equal(ia.isFreed, false, 'what was given stays open');
    await assert.rejects(near.receive(), { code: 'DAT_CONN_CLOSED' });
    await far.close();
    await ia.close();
  });

  it('end with their adapter', async () => {
    const fabric = new Fabric({ seed: 7, autoRun: true });
    const made = await datagrams({ provider: provider(fabric, 1) });
    const waiting = made.receive();
    await Promise.all([
      assert.rejects(waiting, { code: 'DAT_CONN_CLOSED' }),
      made.closed,
      made.ia.close(),
    ]);
    const again = await datagrams({ provider: provider(fabric, 1) });
    assert.notEqual(again.ia, made.ia);
    await again.close();
  });

  it('refuse what cannot be', async () => {
    const fabric = new Fabric({ seed: 8, autoRun: true });
    const ia = await openIa(provider(fabric, 1));
    const address = ADDRESS;
    const options: [unknown, RegExp][] = [
      [{}, /^datagrams: address is undefined; it must be given, or `ia`, or `provider`/],
      [{ address, peer: ADDRESS }, /peer is .*; it must be left out where `address` is given/],
      [{ address, ia }, /address is .*; it must be left out where `ia` is given/],
      [{ peer: ADDRESS, ia }, /peer is .*; it must be left out where `ia` is given/],
      [{ ia, provider: 'softroce' }, /provider is .* left out where `ia` is given/],
      [{ address: 7 }, /address is 7; it must be an IP address in text, or the name/],
      [{ address, port: 7 }, /an option is "port"/],
      [{ ia, receives: { buffers: 0 } }, /buffers is 0/],
    ];
    for (const [given, message] of options) {
      await assert.rejects(datagrams(given as DatagramOptions), wrong(message));
    }
    const signal = AbortSignal.abort();
    await assert.rejects(
      datagrams({ address, signal }),
      refusal('DAT_INTERRUPTED_CALL', /^datagrams: .*nothing was done/),
    );
    await assert.rejects(
      datagrams({ peer: 'host.invalid' }),
      refusal('DAT_INVALID_ADDRESS', /"host\.invalid" has no address/),
    );
    const made = await datagrams({ ia });
    const to = { address: '192.0.2.9', port: PORT };
    const resolves: [unknown, RegExp][] = [
      [{ port: PORT }, /address is undefined/],
      [{ ...to, family: 5 }, /family is 5/],
      [{ ...to, port: 0 }, /port is 0/],
      [{ ...to, timeoutMs: -1 }, /timeoutMs is -1/],
    ];
    for (const [given, message] of resolves) {
      await assert.rejects(made.resolve(given as ResolveOptions), wrong(message));
    }
    await assert.rejects(
      made.resolve({ ...to, address: 'host.invalid' }),
      refusal('DAT_INVALID_ADDRESS', /^datagrams\.resolve: "host\.invalid"/),
    );
    await assert.rejects(
      made.resolve({ ...to, timeoutMs: 5 }),
      refusal('DAT_TIMEOUT_EXPIRED', /^datagrams\.resolve: /),
    );
    await ia.close();
  });
});
