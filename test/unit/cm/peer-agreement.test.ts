/**
 * Whether a peer is ours, and what follows: agreed at REQ and REP, without a trace for a peer of
 * another make, and at the expense of nobody but the peer that lies.
 */
import assert from 'node:assert/strict';
import {
  LOCAL_MTU_BYTES,
  type PeerTerms,
  QpType,
  type QueuePair,
  WrOpcode,
} from '../../../core/spi/index.js';
import { offersOf, PEER_AGREEMENT, softwareGuid } from '../../../core/spi/internal/index.js';
import { agreementOf } from '../../../plugins/cm/messages/peer-agreement.js';
import { parseCmMad } from '../../../plugins/cm/wire/message.js';
import { CmHcaPair } from '../../support/cm-hca-pair.js';
import {
  connect,
  connectUc,
  drain,
  HcaPair,
  postReceive,
  postSend,
  type SideOptions,
} from '../../support/hca-pair.js';
import { ROCE_PORT } from '../../support/memory-port.js';
import { CmPair } from '../../support/cm-pair.js';

const OTHER_PORT = 50_000;
const FOREIGN: SideOptions = { parameters: { agreements: false } };
const LOCAL: SideOptions = { localMtuBytes: LOCAL_MTU_BYTES };
/** Of the MADs of REQ and REP, BTH and DETH before them. */
const HEADERS = 20;
const ALL = 0x7f;

interface Kept extends PeerTerms {
  readonly mtu: number | undefined;
}

function keptBy(qp: QueuePair | undefined): Kept {
  const { addressVector, pathMtuBytes } = qp?.query() ?? {};
  const { lateAcks, sourcePort } = addressVector?.peer ?? {};
  return {
    ...(lateAcks !== undefined && { lateAcks }),
    ...(sourcePort !== undefined && { sourcePort }),
    mtu: pathMtuBytes,
  };
}

/** What both queue pairs of a connection keep to. */
function connected(a: SideOptions, b: SideOptions, pathMtuBytes?: number): [Kept, Kept] {
  const pair = new CmHcaPair(3, a, b);
  pair.listen();
  pair.client.connect(pair.server, { ...(pathMtuBytes && { pathMtuBytes }) });
  pair.run(10_000);
  assert.deepEqual([pair.client.types, pair.server.types], [['established'], ['established']]);
  return [keptBy(pair.client.qp), keptBy(pair.server.qp)];
}

describe('CM: a peer of ours', () => {
  const ours = { lateAcks: true, sourcePort: ROCE_PORT };

  it('is known on any network, and apart from the MTU', () => {
    const far = { ...ours, mtu: 4096 };
    assert.deepEqual(connected({}, {}), [far, far]);
    assert.deepEqual(connected({}, {}, 1024)[1], { ...ours, mtu: 1024 });
    const ipv6 = [{ address: 'fd00::1' }, { address: 'fd00::2' }] as const;
    assert.deepEqual(connected(...ipv6), [far, far]);
  });

  it('has longer packets only where both are on one host and ask for no less', () => {
    const near = { ...ours, mtu: LOCAL_MTU_BYTES };
    assert.deepEqual(connected(LOCAL, LOCAL), [near, near]);
    assert.equal(connected(LOCAL, LOCAL, 2048)[0].mtu, 2048);
    assert.equal(connected({}, LOCAL)[0].mtu, 4096);
  });

  it('is one only if both are: whichever side is not, nothing is kept', () => {
    const plain = { mtu: 4096 };
    assert.deepEqual(connected(FOREIGN, {}), [plain, plain]);
    assert.deepEqual(connected({ parameters: {} }, FOREIGN), [plain, plain]);
    assert.deepEqual(connected(LOCAL, { ...LOCAL, ...FOREIGN }), [plain, plain]);
  });

  it('shows nothing but its GUID: vendor id and ECE options are 0', () => {
    const pair = new CmPair();
    pair.listen((request) => void pair.accept(request));
    pair.connect();
    const [req] = pair.bodies('REQ');
    assert.equal(req?.vendorId, 0);
    const hca = new CmHcaPair();
    const seen: { name: string; vendorId: number; modifier: number }[] = [];
    for (const { port } of [hca.a, hca.b]) {
      port.filter = (packet) => {
        const mad = packet.length === HEADERS + 256 ? parseCmMad(packet.slice(HEADERS)) : undefined;
        const { name, body } = mad?.message ?? {};
        if (name === 'REQ' || name === 'REP') {
          const { vendorId } = body as { vendorId: number };
          seen.push({ name, vendorId, modifier: mad?.attributeModifier ?? -1 });
        }
        return [packet];
      };
    }
    hca.listen();
    hca.client.connect(hca.server);
    hca.run(10_000);
    assert.deepEqual(seen, [
      { name: 'REQ', vendorId: 0, modifier: 0 },
      { name: 'REP', vendorId: 0, modifier: 0 },
    ]);
  });
});

describe('CM: the GUID of a peer', () => {
  it('carries what is offered, and tells devices apart', () => {
    for (let offers = 0; offers <= ALL; offers++) {
      assert.equal(offersOf(softwareGuid(offers, 0xdeadbeef)), offers);
    }
    assert.notEqual(softwareGuid(1, 1), softwareGuid(1, 2));
    assert.equal((softwareGuid(ALL, 0) >> 56n) & 2n, 2n, 'locally administered');
  });

  it('of another make offers nothing', () => {
    const others = [
      0n,
      0xb8599f0300a1b2c3n, // a universally administered one
      0x0a000efffe123456n, // EUI-64 of the MAC address 08:00:0e:12:34:56
      0x0a000e8000000001n,
      0xffff_ffff_ffff_ffffn,
    ];
    for (const guid of others) assert.equal(offersOf(guid), 0, guid.toString(16));
  });

  it('agrees on what both offer, and for XRC on no longer packets', () => {
    const pair = new CmPair();
    pair.listen((request) => void pair.accept(request));
    pair.connect();
    const [rc] = pair.bodies('REQ');
    assert.ok(rc);
    const source = { gid: rc.primaryLocalGid, localGidIndex: 0, qpn: 1, qkey: 0, udpPort: 4791 };
    const req = { ...rc, pathMtu: 5 };
    const xrc = { ...req, transportServiceType: 3, extendedTransportType: 1 };
    const { LATE_ACK, ONE_PORT, LOCAL_MTU } = PEER_AGREEMENT;
    const all = softwareGuid(ALL, 1);
    const agreed = (exchange: Parameters<typeof agreementOf>[0], offers: number) =>
      agreementOf(exchange, all, softwareGuid(offers, 2));
    const plain = { pathMtuBytes: 4096 };
    assert.deepEqual(agreed({ req, source }, 0), plain);
    assert.deepEqual(agreed({ req, source }, LATE_ACK), { ...plain, lateAcks: true });
    assert.deepEqual(agreed({ req, source }, ONE_PORT), { ...plain, sourcePort: 4791 });
    assert.deepEqual(agreed({ req, source }, LOCAL_MTU), { pathMtuBytes: LOCAL_MTU_BYTES });
    assert.deepEqual(agreed({ req: { ...req, pathMtu: 3 }, source }, LOCAL_MTU), {
      pathMtuBytes: 1024,
    });
    assert.deepEqual(agreed({ req: xrc, source }, ALL), {
      ...plain,
      lateAcks: true,
      sourcePort: 4791,
    });
    const unknown = { gid: source.gid, localGidIndex: 0, qpn: 1, qkey: 0 };
    assert.deepEqual(agreed({ req, source: unknown }, ONE_PORT), plain);
  });

  it('that claims what its packets do not keep gets them dropped, and harms no other', () => {
    const pair = new CmHcaPair();
    const { client, server } = pair;
    pair.listen();
    client.connect(server);
    pair.run(10_000);
    const { drops } = pair.b.driver.device.hca.counters;
    const seen: Uint8Array[] = [];
    pair.a.port.filter = (packet) => {
      seen.push(packet.slice());
      return [];
    };
    client.connection?.disconnect();
    pair.run(1_000);
    const dreq = seen.find((packet) => packet.length === HEADERS + 256);
    assert.ok(dreq);
    assert.equal(parseCmMad(dreq.slice(HEADERS))?.message.name, 'DREQ');
    pair.b.port.inject(dreq, OTHER_PORT);
    pair.run(1_000);
    assert.deepEqual([server.cm.counters.wrongPort, server.types], [1, ['established']]);
    pair.b.port.inject(dreq);
    pair.run(1_000);
    assert.deepEqual([server.cm.counters.wrongPort, server.types.length], [1, 2]);
    assert.equal(drops.wrongPort, 0);
  });

  it('of another make may send each message and packet from another port', () => {
    const pair = new CmHcaPair(1, FOREIGN);
    const { client, server } = pair;
    pair.listen();
    client.connect(server);
    pair.run(10_000);
    pair.a.port.filter = (packet) => {
      pair.b.port.inject(packet, OTHER_PORT);
      return [];
    };
    client.connection?.disconnect();
    pair.run(1_000);
    assert.deepEqual([server.cm.counters.wrongPort, server.types.length], [0, 2]);
  });
});

describe('a queue pair whose peer is ours', () => {
  it('drops packets of its address from another port, by reason', () => {
    for (const type of [QpType.RC, QpType.UC]) {
      const pair = new HcaPair(1);
      const [qpA, qpB] = [pair.a.createQp({ type }), pair.b.createQp({ type })];
      const peer = { sourcePort: ROCE_PORT };
      if (type === QpType.RC) connect(pair, qpA, qpB, { peer });
      else connectUc(pair, qpA, qpB, { peer });
      const segments = [{ offset: 0, length: 8 }];
      for (let i = 0; i < 4; i++) postReceive(pair.b, qpB, segments);
      pair.a.port.filter = (packet) => {
        pair.b.port.inject(packet, OTHER_PORT);
        return [packet];
      };
      postSend(pair.a, qpA, { opcode: WrOpcode.SEND, segments });
      pair.settle();
      const { drops } = pair.b.driver.device.hca.counters;
      assert.deepEqual([drain(pair.b.receiveCq).length, drops.wrongPort], [1, 1]);
    }
  });
});
