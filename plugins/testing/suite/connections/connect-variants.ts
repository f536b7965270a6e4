/** Other ways to connect: as another endpoint, by one address, and again after a reset. */
import assert from 'node:assert/strict';
import type { CommonAddress } from 'dapl';
import { group } from '../behaviour.js';
import { CONN_QUAL, connected, meet, refuses } from '../peer.js';

export const connectVariants = group('Connecting, other ways', (claim) => {
  claim('dupConnect goes where a connected endpoint is connected to', async (pair) => {
    const { active, passive } = await connected(pair);
    const psp = passive.ia.createPsp({ connQual: CONN_QUAL, evd: passive.evd });
    const [here, there] = [active.endpoint(), passive.endpoint()];
    here.dupConnect(active.ep, { privateData: Uint8Array.of(5, 6), timeoutMs: 4000 });
    const cr = await passive.request();
    assert.deepEqual([...cr.privateData.subarray(0, 2)], [5, 6]);
    const { remotePort } = cr.query();
    assert.ok(remotePort > 0);
    cr.accept(there);
    const [established] = await active.expect('ESTABLISHED');
    assert.ok(established?.type === 'connection' && established.ep === here);
    assert.equal(here.query().remoteConnQual, CONN_QUAL);
    const ports = [here.query().localPortQual, there.query().localPortQual];
    assert.deepEqual(ports, [remotePort, CONN_QUAL]);
    assert.equal(active.endpoint().query().localPortQual, undefined, 'never connected');
    assert.equal(here.query().remoteAddress, pair.passiveAddress);
    psp.free();
  });

  claim('dupConnect refuses what is not connected, or has accepted', async (pair) => {
    const { active, passive } = await connected(pair);
    const [a, b] = [active.endpoint(), active.endpoint()];
    refuses(() => a.dupConnect(b), 'DAT_INVALID_STATE_EP_NOTREADY');
    refuses(() => a.dupConnect(passive.ep), 'DAT_INVALID_HANDLE_EP');
    const there = passive.endpoint();
    refuses(() => there.dupConnect(passive.ep), 'DAT_INVALID_ARG2');
    refuses(() => active.ep.dupConnect(active.ep), 'DAT_INVALID_STATE_EP_CONNECTED');
    const options = { timeoutMs: 0 };
    refuses(() => a.dupConnect(active.ep, options), 'DAT_INVALID_ARG3');
    assert.deepEqual([a.state, there.state], ['UNCONNECTED', 'UNCONNECTED']);
  });

  claim('dupConnect to a service point that is gone: NON_PEER_REJECTED', async (pair) => {
    const { active } = await connected(pair);
    active.endpoint().dupConnect(active.ep);
    await active.expect('NON_PEER_REJECTED');
    assert.equal(active.ep.state, 'CONNECTED');
  });

  for (const [name, addressOf] of [
    ['text', (ip: string) => (ip.includes(':') ? `[${ip}]` : ip) + `:${CONN_QUAL}`],
    ['an object', (ip: string) => ({ address: ip, port: CONN_QUAL })],
  ] as const) {
    claim(`commonConnect by ${name}`, async (pair) => {
      const { active, passive } = meet(pair);
      const psp = passive.ia.createPsp({ connQual: CONN_QUAL, evd: passive.evd });
      active.ep.commonConnect(addressOf(pair.passiveAddress), { privateData: Uint8Array.of(9) });
      const cr = await passive.request();
      assert.equal(cr.privateData[0], 9);
      cr.accept(passive.ep);
      await active.expect('ESTABLISHED');
      psp.free();
    });
  }

  claim('commonConnect refuses what is no address', async (pair) => {
    const { active } = meet(pair);
    const ip = pair.passiveAddress;
    for (const [address, code] of [
      [ip, 'DAT_INVALID_ADDRESS_MALFORMED'],
      [`${ip}:`, 'DAT_INVALID_ADDRESS_MALFORMED'],
      ['a name:7', 'DAT_INVALID_ADDRESS_MALFORMED'],
      ['[::1:7', 'DAT_INVALID_ADDRESS_MALFORMED'],
      [`${ip}:0`, 'DAT_INVALID_ARG2'],
      [`${ip}:65536`, 'DAT_INVALID_ARG2'],
      [{ address: ip }, 'DAT_INVALID_ARG2'],
      [{ address: 5, port: 7 }, 'DAT_INVALID_ARG2'],
      [undefined, 'DAT_INVALID_ARG2'],
    ] as const) {
      refuses(() => active.ep.commonConnect(address as CommonAddress), code);
    }
    assert.equal(active.ep.state, 'UNCONNECTED');
  });

  claim(
    'reset and reconnect, many times: fresh queue pair numbers, all data right',
    async (pair) => {
      const { active, passive } = await connected(pair);
      const psp = passive.ia.createPsp({ connQual: CONN_QUAL, evd: passive.evd });
      const numbers = new Set<number>([active.ep.qpn]);
      for (let round = 1; round <= 10; round++) {
        active.ep.disconnect(round % 2 === 0 ? 'graceful' : 'abrupt');
        await active.expect('DISCONNECTED');
        await passive.until('DISCONNECTED');
        active.ep.reset();
        passive.ep.reset();
        active.ep.commonConnect({ address: pair.passiveAddress, port: CONN_QUAL });
        (await passive.request()).accept(passive.ep);
        passive.ep.postRecv(passive.lmr.segment(0, 1), round);
        await active.expect('ESTABLISHED');
        active.lmr.bytes[0] = round;
        active.ep.postSend(active.lmr.segment(0, 1), round);
        await active.expect(`dto ${round} SUCCESS`);
        await passive.expect('ESTABLISHED', `dto ${round} SUCCESS`);
        assert.equal(passive.lmr.bytes[0], round);
        numbers.add(active.ep.qpn);
      }
      assert.equal(numbers.size, 11);
      psp.free();
    },
  );
});
