/** The MAD and CM modules on the software HCA: QP1, COMM_EST and queue pairs are real here. */
import assert from 'node:assert/strict';
import { QpState, WcStatus, WrOpcode } from '../../../core/spi/index.js';
import { drain, postSend } from '../../support/hca-pair.js';
import { CmHcaPair, endUnderFaults } from '../../support/cm-hca-pair.js';

describe('CM over the software HCA', () => {
  it('connects two queue pairs that then carry data, and disconnects them', async () => {
    const pair = new CmHcaPair();
    const { client, server } = pair;
    pair.listen();
    client.connect(server);
    pair.run(10_000);
    assert.deepEqual([client.types, server.types], [['established'], ['established']]);
    assert.ok(client.qp && server.qp);
    assert.deepEqual([client.qp.state, server.qp.state], [QpState.RTS, QpState.RTS]);

    pair.a.bytes.fill(42, 0, 64);
    postSend(pair.a, client.qp, {
      opcode: WrOpcode.SEND,
      cookie: 5,
      segments: [{ offset: 0, length: 64 }],
    });
    pair.run(10_000);
    assert.deepEqual(
      drain(pair.b.receiveCq).map(({ status, cookie, byteLength }) => [status, cookie, byteLength]),
      [[WcStatus.SUCCESS, 1, 64]],
    );
    assert.deepEqual(pair.b.bytes.subarray(0, 64), pair.a.bytes.subarray(0, 64));

    client.connection?.disconnect();
    pair.run(5_000_000);
    const whole = ['established', 'disconnected', 'timewait-exit'];
    assert.deepEqual([client.types, server.types], [whole, whole]);
    assert.deepEqual([client.qp.state, server.qp.state], [QpState.ERR, QpState.ERR]);
    for (const node of [client, server]) {
      assert.ok(node.cm.isIdle);
      assert.equal(node.cm.counters.unexpected, 0);
      await node.close();
      assert.equal(node.side.driver.nextDeadlineUs(), Infinity);
    }
  });

  const firsts = { SEND: WrOpcode.SEND, WRITE: WrOpcode.RDMA_WRITE, READ: WrOpcode.RDMA_READ };
  for (const [what, opcode] of Object.entries(firsts)) {
    it(`is established by a first ${what} when RTU is lost (COMM_EST), once`, () => {
      const pair = new CmHcaPair();
      const { client, server } = pair;
      pair.tamper('RTU', 1, 0);
      pair.listen();
      client.connect(server);
      pair.run(1_000);
      assert.deepEqual([client.types, server.types], [['established'], []]);
      assert.ok(client.qp && server.qp);
      assert.equal(server.qp.state, QpState.RTR);
      const segments = [{ offset: 0, length: 8 }];
      const remote = { remoteAddress: pair.b.base, rkey: pair.b.region.rkey };
      postSend(pair.a, client.qp, { opcode, segments, ...remote });
      pair.run(1_000);
      assert.deepEqual(server.types, ['established']);
      assert.equal(server.qp.state, QpState.RTS);
      assert.equal(drain(pair.b.receiveCq).length, opcode === WrOpcode.SEND ? 1 : 0);
      pair.run(10_000_000);
      assert.deepEqual(server.types, ['established']);
    });
  }

  it('rejects what nobody listens for, and what the consumer refuses', () => {
    const pair = new CmHcaPair();
    const { client, server } = pair;
    client.connect(server);
    pair.run(10_000);
    pair.listen((request) => request.reject({ reason: 28, privateData: Uint8Array.of(1, 2, 3) }));
    client.connect(server);
    pair.run(10_000);
    const [unknown, refused] = client.events;
    assert.ok(unknown?.type === 'rejected' && unknown.reason === 8);
    assert.ok(refused?.type === 'rejected' && refused.consumer);
    assert.deepEqual(refused.privateData.slice(0, 4), Uint8Array.of(1, 2, 3, 0));
  });

  it('fails a connect by the network’s hint, and by the limit of its consumer', () => {
    const pair = new CmHcaPair();
    const { client, server } = pair;
    pair.filterMads(() => 0);
    client.connect(server);
    const [gid] = pair.b.port.gids;
    assert.ok(gid);
    for (let i = 0; i < 20; i++) {
      pair.run(100_000);
      pair.a.driver.device.onReport({ type: 'port-unreachable', gid });
    }
    client.connect(server, { timeoutUs: 300_000 });
    pair.run(300_000);
    assert.deepEqual(client.types, ['unreachable', 'timed-out']);
    assert.ok(client.cm.isIdle);
  });

  for (const message of ['REQ', 'REP', 'RTU', 'DREQ', 'DREP']) {
    for (const [fault, copies] of [
      ['lost', 0],
      ['duplicated', 2],
    ] as const) {
      it(`bears ${message} ${fault} once`, () => {
        const pair = new CmHcaPair();
        const { client, server } = pair;
        pair.tamper(message, 1, copies);
        pair.listen();
        client.connect(server);
        pair.run(2_000_000);
        server.connection?.disconnect();
        pair.run(10_000_000);
        const whole = ['established', 'disconnected', 'timewait-exit'];
        assert.deepEqual([client.types, server.types], [whole, whole]);
        assert.ok(client.cm.isIdle && server.cm.isIdle);
      });
    }
  }

  it('ends connections under seeded loss and duplication in a defined way', async () => {
    for (let seed = 1; seed <= 10; seed++) await endUnderFaults(seed);
  });
});
