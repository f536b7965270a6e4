// Every call of librdmacm that can fail, at every place where a connection's life makes it: a typed
// error or an event says so, both sides come to an end, and nothing is left over.

import assert from 'node:assert/strict';
import { constants } from 'node:os';
import {
  type CmResolveResult,
  gidFromIp,
  PortSpace,
  serviceIdOf,
  SpiError,
} from '../../../core/spi/index.js';
import { CmEventType } from '../../../providers/verbs/addon/rdmacm.js';
import { CmHost, CmSwitch, has, type Side, turns, until } from '../../fake-verbs/cm-host.js';

const { EIO, ENOMEM, EINVAL, ENODEV } = constants.errno;
const CALLS = [
  'rdma_create_event_channel',
  'rdma_create_id',
  'rdma_migrate_id',
  'rdma_bind_addr',
  'rdma_resolve_addr',
  'rdma_resolve_route',
  'rdma_set_option',
  'rdma_connect',
  'rdma_establish',
  'rdma_listen',
  'rdma_accept',
  'rdma_reject',
  'rdma_notify',
  'rdma_disconnect',
  'rdma_init_qp_attr',
  'rdma_get_cm_event',
] as const;
const ERRORS = [EIO, ENOMEM, EINVAL, ENODEV];
/** A life makes fewer calls of each than this. */
const MOST_CALLS = 12;

/** What happened in a life into which one failure was put. */
interface Life {
  readonly thrown: unknown[];
  readonly sides: Side[];
}

/** Listen, connect, refuse one, exchange, disconnect, resolve a service. */
async function live(host: CmHost): Promise<Life> {
  const thrown: unknown[] = [];
  const sides: Side[] = [];
  const attempt = <T>(call: () => T): T | undefined => {
    try {
      return call();
    } catch (error) {
      thrown.push(error);
      return undefined;
    }
  };
  const isOver = (side: Side): boolean =>
    side.events.some(({ type }) => type !== 'established' && type !== 'timewait-exit');
  let refused = false;
  attempt(() =>
    host.listen((request) => {
      const passive = refused ? attempt(() => host.accept(request)) : undefined;
      if (passive) sides.push(passive);
      else attempt(() => request.reject({ reason: 28, privateData: new Uint8Array(0) }));
      refused = true;
    }),
  );
  for (const pathMtuBytes of [4096, 4096, 1024]) {
    if (pathMtuBytes === 1024) host.fake.set(CmSwitch.DROP_RTU, 1);
    const active = attempt(() => host.connect({ timeoutUs: 1e6, pathMtuBytes }));
    if (!active) continue;
    sides.push(active);
    await turns(30);
    if (!has(active) && !isOver(active)) host.advance(1e6 + 1);
    await turns(5);
    for (const side of sides) if (side !== active) side.connection.notifyEstablished();
    await turns(5);
    active.connection.disconnect();
    await turns(30);
  }
  await resolve(host, attempt);
  for (const { connection } of sides) connection.disconnect();
  await turns(30);
  host.advance(20e6);
  await turns(5);
  return { thrown, sides };
}

async function resolve(host: CmHost, attempt: (call: () => unknown) => unknown): Promise<void> {
  const serviceId = serviceIdOf(PortSpace.UDP, 4000);
  const privateData = new Uint8Array(0);
  const results: CmResolveResult[] = [];
  attempt(() =>
    host.cm.listen({
      serviceId,
      backlog: 1,
      onResolve: (question) =>
        void attempt(() => question.accept({ qpn: 0x70, qkey: 0x01234567, privateData })),
    }),
  );
  const asked = attempt(() =>
    host.cm.resolve({
      remoteGid: gidFromIp('10.77.0.1'),
      serviceId,
      privateData,
      timeoutUs: 1e6,
      onResult: (result) => void results.push(result),
    }),
  );
  await turns(30);
  host.advance(1e6 + 1);
  await turns(5);
  assert.equal(results.length, asked ? 1 : 0);
}

describe('verbs: failures of librdmacm', () => {
  for (const call of CALLS) {
    it(`${call}: each of its calls, with each of ${ERRORS.length} errors`, async () => {
      let reached = 0;
      for (let nth = 1; nth <= MOST_CALLS; nth++) {
        for (const errno of ERRORS) {
          const host = new CmHost();
          assert.equal(host.fake.inject(call, nth, errno), 0);
          const before = host.fake.calls(call);
          const { thrown, sides } = await live(host);
          if (host.fake.calls(call) - before >= nth) reached++;
          for (const error of thrown) {
            assert.ok(error instanceof SpiError, String(error));
            assert.ok(error.message.length > 10);
          }
          for (const { events, connection } of sides) {
            assert.ok(events.length > 0, `${call} ${nth}: ${connection.flightRecord().join('\n')}`);
            assert.ok(events.filter(({ type }) => type === 'established').length <= 1);
            assert.equal(connection.state, 'IDLE', connection.flightRecord().join('\n'));
          }
          assert.ok(host.cm.isIdle);
          await host.cm.close();
          assert.equal(host.fake.live(), 0, `${call} ${nth} ${errno}: something is left`);
          host.fake.reset();
        }
      }
      assert.ok(call === 'rdma_create_event_channel' || reached > 0, 'it was never called');
    });
  }

  it('rdma_destroy_id: said, and the rest goes on', async () => {
    const host = new CmHost();
    const { active, passive } = await host.pair();
    host.fake.inject('rdma_destroy_id', 1, EIO);
    active.connection.disconnect();
    await until(() => has(active, 'timewait-exit') && has(passive, 'timewait-exit'));
    assert.match(host.logged.join(), /rdma_destroy_id: EIO/);
    await host.cm.close();
    assert.equal(host.fake.live(), 0, 'the kernel ends it with its channel');
  });

  it('rdma_create_event_channel: the module cannot be made, and says what to look at', () => {
    const host = new CmHost();
    host.fake.inject('rdma_create_event_channel', 1, ENODEV);
    assert.throws(
      () => new CmHost({}, 'fake0', false),
      (error) => {
        assert.ok(error instanceof SpiError);
        // Where the file does not open, that is the reason, and the call is the cause.
        const { code, message } = (error.cause ?? error) as SpiError;
        assert.match(error.message, /rdma_cm/);
        assert.match(message, /rdma_create_event_channel: ENODEV .*rdma_ucm.*rdma_cm/);
        assert.equal(code, 'ENODEV');
        return true;
      },
    );
    void host.close();
  });

  it('a channel that cannot be read any more ends what depends on it', async () => {
    const host = new CmHost();
    const { active } = await host.pair();
    host.fake.set(CmSwitch.UNREADABLE, EIO);
    host.fake.raise(CmEventType.ADDR_CHANGE, 0);
    await until(() => has(active, 'disconnected'));
    assert.ok(host.cm.isIdle);
    await host.close();
  });
});
