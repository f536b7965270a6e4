import assert from 'node:assert/strict';
import { connect, datagrams, type GrantJson, listen } from '../../../core/flow/index.js';
import { type Ia, openIa } from '../../../core/index.js';
import { softroce } from '../../../providers/softroce/index.js';
import { bytesOf, failureOf, leftOf, NOTHING_LEFT, textOf } from '../../support/flow-scene.js';
import { loopback } from '../../support/loopback.js';

describe('flow: over sockets', () => {
  const [near, far] = [loopback(93, 1), loopback(93, 2)];
  let client: Ia;
  let server: Ia;
  beforeEach(async () => {
    client = await openIa(softroce({ addresses: [near] }));
    server = await openIa(softroce({ addresses: [far] }));
  });
  afterEach(() => Promise.all([client.close(), server.close()]));

  it('carries messages, memory and datagrams, and leaves nothing behind', async () => {
    const listener = await listen(server, {});
    const served = (async () => {
      for await (const conn of listener) {
        for await (const message of conn) {
          const remote = JSON.parse(textOf(message.bytes)) as GrantJson;
          await conn.write(new Uint8Array(remote.length).fill(3), remote, { immediate: 1 });
        }
      }
    })();
    const conn = await connect(client, { address: far, port: listener.port, timeoutMs: 10_000 });
    const grant = conn.expose(1 << 20, 'write');
    await conn.send(bytesOf(JSON.stringify(grant)));
    const { immediate, writtenBytes } = await conn.receive();
    assert.deepEqual([immediate, writtenBytes], [1, 1 << 20]);
    assert.ok(grant.bytes.every((byte) => byte === 3));
    assert.equal((await failureOf(conn.receive({ timeoutMs: 5 }))).code, 'DAT_TIMEOUT_EXPIRED');

    const [one, other] = await Promise.all([datagrams(client), datagrams(server)]);
    await one.send(bytesOf('datagram'), { address: far, qpn: other.qpn });
    assert.equal(textOf((await other.receive()).bytes), 'datagram');
    await Promise.all([one.close(), other.close(), conn.close()]);
    await listener.close();
    await served;
    assert.deepEqual([leftOf(client), leftOf(server)], [NOTHING_LEFT, NOTHING_LEFT]);
  });
});
