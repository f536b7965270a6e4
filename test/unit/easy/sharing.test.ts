// Adapters of `dapl/easy`: one for each device, for as long as something uses it.

import assert from 'node:assert/strict';
import { type Ia, openIa } from 'dapl';
import { type Connection, connect, listen, type Listener } from 'dapl/easy';
import { Fabric, mock } from 'dapl/providers/mock';
import { softroce } from 'dapl/providers/softroce';
import { loopback } from '../../support/loopback.js';

const NETWORK = 22;
const ADDRESS = loopback(NETWORK, 1);
const TEXT = 'hello';

async function greet(from: Connection, to: Connection): Promise<void> {
  await from.send(Buffer.from(TEXT));
  assert.equal(Buffer.from((await to.receive()).bytes).toString(), TEXT);
}

async function pairOf(server: Listener): Promise<[Connection, Connection]> {
  return Promise.all([connect({ address: server.address, port: server.port }), server.accept()]);
}

/** Adapters are closed behind the last of what used them. */
async function closed(ia: Ia): Promise<void> {
  while (!ia.isFreed) await new Promise((resolve) => setImmediate(resolve));
}

describe('easy: adapters', () => {
  it('one for all that is on a device, closed with the last of it', async () => {
    const server = await listen({ address: ADDRESS });
    const other = await listen({ address: ADDRESS });
    assert.equal(server.ia, other.ia);
    assert.notEqual(server.port, other.port);
    const [a, b] = await pairOf(server);
    assert.deepEqual([a.ia, b.ia], [server.ia, server.ia]);
    await server.close();
    await other.close();
    assert.equal(a.ia.isFreed, false);
    await greet(a, b);
    await a.close();
    await b.close();
    await closed(a.ia);
    const again = await listen({ address: ADDRESS });
    assert.notEqual(again.ia, server.ia);
    await again.close();
    assert.equal(again.ia.isFreed, true);
  });

  it('a connection that was taken outlives its listener, and one that breaks ends', async () => {
    const fabric = new Fabric({ seed: 4, autoRun: true });
    const provider = (host: number): ReturnType<typeof mock> =>
      mock({ fabric, address: `192.0.2.${host}` });
    const server = await listen({ provider: provider(2), port: 7 });
    const [a, b] = await Promise.all([
      connect({ provider: provider(1), address: '192.0.2.2', port: 7 }),
      server.accept(),
    ]);
    await server.close();
    await server.close();
    await greet(b, a);
    assert.equal(b.ia.isFreed, false);
    await a.ia.close();
    await assert.rejects(async () => {
      for (;;) await b.send(Buffer.from(TEXT));
    });
    await closed(b.ia);
  });

  it('an accept that waits when the listener is closed ends, and so does the adapter', async () => {
    const server = await listen({ address: ADDRESS });
    const waiting = assert.rejects(server.accept(), { code: 'DAT_CONN_CLOSED' });
    const seen: unknown[] = [];
    const iterated = (async () => {
      for await (const conn of server) seen.push(conn);
    })();
    await server.close();
    await Promise.all([waiting, iterated]);
    assert.deepEqual(seen, []);
    await closed(server.ia);
  });

  it('one that its consumer has closed is not used again', async () => {
    const server = await listen({ address: ADDRESS });
    await server.ia.close();
    const again = await listen({ address: ADDRESS });
    assert.equal(again.ia.isFreed, false);
    const [a, b] = await pairOf(again);
    await greet(a, b);
    await server.close();
    await Promise.all([a.close(), b.close(), again.close()]);
    await closed(again.ia);
  });

  it("the caller's own stays open", async () => {
    const ia = await openIa(softroce({ addresses: [ADDRESS] }));
    const server = await listen({ ia, port: 7 });
    const conn = await connect({ ia, address: ADDRESS, port: 7 });
    await (await server.accept()).close();
    await conn.close();
    await server.close();
    assert.equal(ia.isFreed, false);
    await ia.close();
  });

  it('a signal closes the listener, and its adapter with it', async () => {
    const controller = new AbortController();
    const server = await listen({ address: ADDRESS, signal: controller.signal });
    controller.abort();
    assert.equal(server.isClosed, true);
    await closed(server.ia);
  });

  it('is disposed of where its scope ends', async () => {
    const server = await listen({ address: ADDRESS });
    await server[Symbol.asyncDispose]();
    assert.ok(server.isClosed && server.ia.isFreed);
  });

  it('is not left open by a connection that comes to nothing', async () => {
    const server = await listen({ address: ADDRESS });
    const { ia } = server;
    await assert.rejects(connect({ address: ADDRESS, port: server.port === 9 ? 10 : 9 }), {
      code: 'DAT_CONN_REFUSED',
    });
    assert.equal(ia.isFreed, false);
    await server.close();
    assert.equal(ia.isFreed, true);
  });
});
