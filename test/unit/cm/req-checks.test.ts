/** What is wrong with a REQ is said by the reason of the REJ, and by its additional information. */
import assert from 'node:assert/strict';
import { PortSpace, SpiError, gidFromIp, serviceIdOf } from '../../../core/spi/index.js';
import type { CmReq } from '../../../plugins/cm/wire/req.js';
import { CmPair, PARAMETERS, SERVICE, text, textOf } from '../../support/cm-pair.js';

const DATAGRAMS = serviceIdOf(PortSpace.UDP, 4_000);

const withCode = (code: string, message: RegExp) => (error: unknown) =>
  error instanceof SpiError && error.code === code && message.test(error.message);

describe('CM: what is wrong with a REQ', () => {
  /** A good REQ, changed, as a peer at `a` would send it. */
  const reasonFor = async (
    change: (req: CmReq, pair: CmPair) => Partial<CmReq>,
  ): Promise<number> => {
    const pair = new CmPair();
    pair.listen(() => undefined);
    pair.b.cm.listen({ serviceId: DATAGRAMS, backlog: 1, onResolve: () => undefined });
    pair.network.fate = () => [];
    pair.connect();
    const [good] = pair.bodies('REQ');
    assert.ok(good);
    pair.inject(pair.b, { name: 'REQ', body: { ...good, ...change(good, pair) } });
    await pair.world.runFor(10);
    assert.equal(pair.requests.length === 0, pair.bodies('REJ').length === 1);
    return pair.bodies('REJ')[0]?.reason ?? 0;
  };
  const privateData = (at: number, value: number) => (req: CmReq) => {
    const changed = req.privateData.slice();
    changed[at] = value;
    return { privateData: changed };
  };

  const cases: [string, number, (req: CmReq, pair: CmPair) => Partial<CmReq>][] = [
    ['nothing', 0, () => ({})],
    ['an unknown service id', 8, () => ({ serviceId: SERVICE + 1n })],
    ['an unreliable transport', 28, () => ({ transportServiceType: 1 })],
    ['the extended transport', 28, () => ({ transportServiceType: 3 })],
    ['a path MTU above ours', 26, () => ({ pathMtu: 5 })],
    ['no path MTU', 26, () => ({ pathMtu: 0 })],
    ['a path MTU below ours', 0, () => ({ pathMtu: 2 })],
    ['a GID that is not ours', 12, () => ({ primaryRemoteGid: gidFromIp('10.0.0.9') })],
    ['a GID that is not the sender’s', 12, () => ({ primaryLocalGid: gidFromIp('10.0.0.9') })],
    ['a reserved queue pair', 5, () => ({ localQpn: 1 })],
    ['another partition', 5, () => ({ partitionKey: 0x8001 })],
    ['a service of datagrams', 28, () => ({ serviceId: DATAGRAMS })],
    ['an alternate path', 18, () => ({ alternateLocalLid: 0xffff })],
    ['another version of rdma_cm’s header', 28, privateData(0, 1)],
    ['an IP version that does not exist', 28, privateData(1, 0x50)],
    ['an IP version of the other family', 28, privateData(1, 0x60)],
    ['another destination address', 28, privateData(35, 77)],
  ];
  for (const [what, reason, change] of cases) {
    it(`${what}: ${reason === 0 ? 'handed out' : `reason ${reason}`}`, async () => {
      assert.equal(await reasonFor(change), reason);
    });
  }

  it('offers what it would take: the GID in ARI, the MTU in ARI', async () => {
    const pair = new CmPair();
    pair.network.fate = () => [];
    pair.connect();
    const [good] = pair.bodies('REQ');
    assert.ok(good);
    const elsewhere = { ...good, primaryRemoteGid: gidFromIp('10.0.0.9') };
    pair.inject(pair.b, { name: 'REQ', body: elsewhere });
    const another = { ...good, localCommId: 4711, pathMtu: 5 };
    pair.inject(pair.b, { name: 'REQ', body: another });
    await pair.world.runFor(10);
    const [gid, mtu] = pair.bodies('REJ');
    assert.deepEqual(
      gid?.additionalRejectInfo.slice(0, gid.rejectInfoLength),
      gidFromIp('10.0.0.2'),
    );
    assert.equal((mtu?.additionalRejectInfo[0] ?? 0) >>> 4, 3);
  });

  it('carries a consumer’s reason and additional information to the other consumer', async () => {
    const pair = new CmPair();
    const info = Uint8Array.of(9, 8, 7);
    pair.listen((request) => request.reject({ reason: 24, privateData: text('there'), info }));
    const { events } = pair.connect();
    await pair.world.run();
    const [event] = events;
    assert.ok(event?.type === 'rejected' && event.reason === 24 && !event.consumer);
    assert.deepEqual(event.info, info);
    assert.equal(textOf(event.privateData), 'there');
    const [rej] = pair.bodies('REJ');
    assert.equal(rej?.rejectInfoLength, 3);
  });

  it('has no room for more than 72 bytes of additional information', async () => {
    const pair = new CmPair();
    pair.listen(() => undefined);
    pair.connect();
    await pair.world.runFor(1_000);
    const reject = { reason: 28, privateData: new Uint8Array(0), info: new Uint8Array(73) };
    assert.throws(
      () => pair.requests[0]?.reject(reject),
      withCode('EINVAL', /additional reject information is 73; it must be an integer from 0 to 72/),
    );
  });

  it('is nothing that our REQ has: its fields are as Linux has them', () => {
    const pair = new CmPair();
    pair.connect({ ackTimeout: 14, pathMtuBytes: 512 });
    const [req] = pair.bodies('REQ');
    assert.ok(req);
    const { responderResources, initiatorDepth, retryCount, rnrRetryCount } = PARAMETERS;
    const expected: Partial<CmReq> = {
      responderResources,
      initiatorDepth,
      retryCount,
      rnrRetryCount,
      transportServiceType: 0,
      remoteCmResponseTimeout: 20,
      localCmResponseTimeout: 18,
      maxCmRetries: 15,
      partitionKey: 0xffff,
      pathMtu: 2,
      primaryLocalLid: 0xffff,
      primaryRemoteLid: 0xffff,
      primaryHopLimit: 64,
      primaryLocalAckTimeout: 14,
      alternateLocalLid: 0,
    };
    assert.deepEqual({ ...req, ...expected }, req);
  });
});
