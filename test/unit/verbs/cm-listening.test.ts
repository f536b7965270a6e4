// The CM module over librdmacm: listeners and requests, over a librdmacm without a kernel.

import assert from 'node:assert/strict';
import {
  type CmEvent,
  type CmRequest,
  gidFromIp,
  ipFromGid,
  PortSpace,
  QpState,
  serviceIdOf,
} from '../../../core/spi/index.js';
import {
  AccountQp,
  CmHost,
  CmSwitch,
  has,
  PORT,
  type Side,
  turns,
  typesOf,
  until,
} from '../../fake-verbs/cm-host.js';
import { CmEventType } from '../../../providers/verbs/addon/rdmacm.js';

const spiError = (code: string, message: RegExp) => ({ name: 'SpiError', code, message });

describe('verbs: listening through librdmacm', () => {
  let host: CmHost;
  let requests: CmRequest[];
  const keep = (request: CmRequest): void => void requests.push(request);
  beforeEach(() => {
    host = new CmHost();
    requests = [];
  });
  afterEach(async () => {
    await host.close();
    assert.equal(host.fake.live(), 0, 'identifiers, channels or events are left');
  });

  it('listens on each address of the device', async () => {
    host.listen(keep);
    for (const address of ['10.77.0.1', '10.77.0.2', 'fd77::1', 'fe80::1']) {
      host.connect({ remoteGid: gidFromIp(address) });
      await until(() => requests.length > 0);
      assert.equal(ipFromGid(requests.splice(0)[0]!.localGid), address);
    }
  });

  it('does not listen for other devices of the host', async () => {
    await host.close();
    host = new CmHost({}, 'other0');
    host.fake.addAddress('10.77.0.5', 'other0');
    assert.throws(
      () => host.listen(keep),
      spiError('EADDRNOTAVAIL', /other0 has no address .*10\.77\.0\.1:7174 is bound to fake0/),
    );
  });

  it('where GIDs are no addresses (InfiniBand), the kernel knows whose they are', async () => {
    await host.close();
    host = new CmHost({}, 'fake0', true, ['fe80::2:c903:11:2233']);
    host.fake.set(CmSwitch.LID, 7);
    let passive: Side | undefined;
    host.listen((request) => (passive = host.accept(request)));
    const active = host.connect();
    await until(() => has(active) && passive !== undefined && has(passive));
    assert.equal(ipFromGid(passive!.connection.remoteGid), '10.77.0.2');
    const path = active.qp.to(QpState.RTR)?.addressVector as { destinationLid?: number };
    assert.equal(path.destinationLid, 7);
  });

  it('names a port that has a listener already: ours, another one, a wildcard', async () => {
    host.listen(keep);
    assert.throws(
      () => host.listen(keep),
      spiError('EADDRINUSE', /^port 7174 \(service id 0x1061c06\) has a listener/),
    );
    for (const options of [{}, { port: PORT + 1, errno: 98 }, { port: PORT + 2, errno: 99 }]) {
      const other = new CmHost({}, 'fake0', false);
      const { port = PORT, errno } = options;
      if (errno) other.fake.inject('rdma_bind_addr', 1, errno);
      assert.throws(
        () => other.listen(keep, { serviceId: serviceIdOf(PortSpace.TCP, port) }),
        spiError('EADDRINUSE', new RegExp(`port ${port} of fake0 is in use`)),
      );
      await other.cm.close();
    }
  });

  it('says what a privileged port needs', () => {
    host.fake.inject('rdma_bind_addr', 1, 13);
    assert.throws(() => host.listen(keep), {
      code: 'EACCES',
      message: 'port 7174 of fake0 is privileged',
      hint: 'ports below 1024 need root or CAP_NET_BIND_SERVICE: take one from 1024 on',
    });
  });

  it('can listen again after a close, with connections of the first listener left', async () => {
    const { active, passive } = await host.pair();
    host.listen(keep).close();
    host.listen(keep);
    const before = requests.length;
    host.connect();
    await until(() => requests.length > before);
    active.connection.disconnect();
    await until(() => has(passive, 'timewait-exit'));
    assert.equal(requests.length, before + 1);
  });

  it('leaves out GIDs that are no address of an interface', async () => {
    host.fake.inject('rdma_bind_addr', 1, 19);
    const listener = host.listen(keep);
    host.connect();
    await until(() => requests.length > 0);
    listener.close();
  });

  it('refuses service ids that rdma_cm does not know', () => {
    for (const [serviceId, code] of [
      [7n, 'EOPNOTSUPP'],
      [serviceIdOf(PortSpace.TCP, 0), 'EINVAL'],
      [1n << 48n, 'EOPNOTSUPP'],
    ] as const) {
      const privateData = new Uint8Array(code === 'EOPNOTSUPP' ? 92 : 0);
      assert.throws(() => host.listen(keep, { serviceId }), spiError(code, /port space/));
      const connect = (): unknown => host.connect({ serviceId, privateData });
      assert.throws(connect, spiError(code, /port space/));
    }
    assert.throws(() => host.listen(keep, { backlog: 0 }), spiError('EINVAL', /backlog is 0;/));
  });

  it('refuses when nobody takes requests', async () => {
    host.cm.listen({ serviceId: serviceIdOf(PortSpace.TCP, PORT), backlog: 4 });
    const { events } = host.connect();
    await until(() => events.length > 0);
    assert.equal((events[0] as CmEvent & { type: 'rejected' }).reason, 28);
  });

  it('hands out no more requests than the backlog, and the next when one is answered', async () => {
    host.listen(keep, { backlog: 2 });
    const sides = Array.from({ length: 7 }, () => host.connect());
    for (let answered = 0; answered < sides.length; answered++) {
      const expected = Math.min(2, sides.length - answered);
      await until(() => requests.length === expected);
      await turns();
      assert.equal(requests.length, expected);
      host.accept(requests.shift()!);
    }
    await until(() => sides.every((side) => has(side)));
  });

  it('a request that was handed out outlives its listener; later ones are refused', async () => {
    const listener = host.listen(keep);
    const early = host.connect();
    await until(() => requests.length === 1);
    listener.close();
    const late = host.connect();
    await until(() => late.events.length > 0);
    assert.deepEqual(typesOf(late), ['rejected']);
    const passive = host.accept(requests[0]!);
    await until(() => has(early) && has(passive));
  });

  it('a request is answered once', async () => {
    host.listen(keep);
    const { events } = host.connect();
    await until(() => requests.length > 0);
    const [request] = requests as [CmRequest];
    request.reject({ reason: 28, privateData: new Uint8Array(0) });
    const again = { reason: 28, privateData: new Uint8Array(0) };
    assert.throws(() => request.reject(again), spiError('ENOTCONN', /gone/));
    assert.throws(() => host.accept(request), spiError('ENOTCONN', /gone/));
    await until(() => events.length > 0);
    requests.length = 0;
    for (let i = 0; i < 9; i++) host.connect();
    await until(() => requests.length === 8);
    await turns();
    assert.equal(requests.length, 8, 'the backlog is what it was');
  });

  it('a request whose peer has given up is gone', async () => {
    host.listen(keep);
    const asking = host.connect();
    await until(() => requests.length > 0);
    asking.connection.abandon();
    const qp = new AccountQp(0x800);
    assert.throws(
      () => host.accept(requests[0]!, new Uint8Array(0), qp),
      spiError('ENOTCONN', /gone: rdma_init_qp_attr: EINVAL/),
    );
    assert.equal(qp.state, QpState.INIT, 'it can be used for another');
  });

  it('a queue pair that does not come up leaves the request waiting', async () => {
    host.listen(keep);
    const active = host.connect();
    await until(() => requests.length > 0);
    const ill = new AccountQp(0x801);
    ill.failAt = QpState.RTR;
    assert.throws(
      () => host.accept(requests[0]!, new Uint8Array(0), ill),
      spiError('EIO', /this queue pair is ill/),
    );
    const passive = host.accept(requests[0]!);
    await until(() => has(active) && has(passive));
  });

  it('checks what it is given before anything is sent', async () => {
    const long = new Uint8Array(57);
    assert.throws(
      () => host.connect({ privateData: long }),
      spiError('EINVAL', /data of REQ is 57;/),
    );
    assert.throws(() => host.connect({ timeoutUs: 0 }), spiError('EINVAL', /timeoutUs is 0;/));
    const ready = new AccountQp(0x802);
    ready.state = QpState.RTS;
    assert.throws(() => host.connect({}, ready), spiError('EINVAL', /RTS: must be INIT/));
    assert.throws(
      () => host.connect({}, new AccountQp(0x803, 9)),
      spiError('EOPNOTSUPP', /RC queue pairs only/),
    );
    assert.throws(
      () => host.connect({ localGidIndex: 9 }),
      spiError('ENETUNREACH', /no IPv4 address at GID index 9/),
    );
    host.listen(keep);
    host.connect();
    await until(() => requests.length > 0);
    assert.throws(
      () => host.accept(requests[0]!, new Uint8Array(197)),
      spiError('EINVAL', /data of REP is 197;/),
    );
    const reject = { reason: 0, privateData: new Uint8Array(0) };
    assert.throws(() => requests[0]!.reject(reject), spiError('EINVAL', /reason is 0;/));
  });

  describe('when the device goes', () => {
    it('connections and attempts end, and every identifier is given back', async () => {
      const { active, passive } = await host.pair();
      host.listen(keep);
      const attempt = host.connect();
      await until(() => requests.length > 0);
      host.fake.raise(CmEventType.DEVICE_REMOVAL, 0);
      await until(() => attempt.events.length > 0);
      assert.throws(() => host.accept(requests[0]!), spiError('ENOTCONN', /gone/));
      assert.ok(host.cm.isIdle);
      assert.deepEqual(active.events[1], { type: 'disconnected', byPeer: false });
      assert.deepEqual(passive.events[1], { type: 'disconnected', byPeer: false });
      assert.match((attempt.events[0] as { detail: string }).detail, /device is being removed/);
      assert.match(host.logged.join(), /listener has lost its device/);
    });

    it('a change of address is noted, and nothing else', async () => {
      const { active } = await host.pair();
      host.fake.raise(CmEventType.ADDR_CHANGE, 0);
      await turns();
      assert.deepEqual(typesOf(active), ['established']);
      assert.match(active.connection.flightRecord().join(), /ADDR_CHANGE/);
    });
  });

  describe('close', () => {
    it('ends everything, tells the peers, and nobody here afterwards', async () => {
      const peer = new CmHost({}, 'fake0', false);
      let passive: Side | undefined;
      peer.listen((request) => (passive = peer.accept(request)));
      const active = host.connect();
      const lost = host.connect({ serviceId: serviceIdOf(PortSpace.TCP, 9) });
      await until(() => has(active) && passive !== undefined && has(passive));
      const told = [active.events.length, lost.events.length];
      host.listen(keep, { serviceId: serviceIdOf(PortSpace.TCP, PORT + 9) });
      await host.cm.close();
      await host.cm.close();
      await until(() => has(passive!, 'disconnected'));
      assert.deepEqual([active.events.length, lost.events.length], told);
      assert.equal(active.qp.state, QpState.ERR);
      assert.throws(() => host.connect(), spiError('ENODEV', /closed/));
      assert.throws(() => host.listen(keep), spiError('ENODEV', /closed/));
      await peer.cm.close();
    });

    it('refuses requests that nobody has answered', async () => {
      const peer = new CmHost({}, 'fake0', false);
      host.listen(keep);
      const asking = peer.connect();
      await until(() => requests.length > 0);
      await host.cm.close();
      await until(() => asking.events.length > 0);
      assert.deepEqual(typesOf(asking), ['rejected']);
      await peer.cm.close();
    });
  });
});
