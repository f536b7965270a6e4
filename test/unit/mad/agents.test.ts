/** Registration, routing, and the two addresses families of the GRH area. */
import assert from 'node:assert/strict';
import {
  grhAddresses,
  ipFromGid,
  type MadAgentOptions,
  type ReceivedMad,
  SpiError,
} from '../../../core/spi/index.js';
import { MadPair, VENDOR_CLASS, answerTo, headerOf, madOf } from '../../support/mad-pair.js';

const nothing = (): void => undefined;
const OPTIONS: MadAgentOptions = {
  managementClass: VENDOR_CLASS,
  classVersion: 1,
  methods: [1, 2],
  onReceive: nothing,
  onSend: nothing,
};

const refused = (code: string, message: RegExp) => (error: unknown) =>
  error instanceof SpiError && error.code === code && message.test(error.message);

describe('MAD: agents', () => {
  it('refuses a method that another agent has, and all of that registration', () => {
    const { mad } = new MadPair().a;
    mad.registerAgent(OPTIONS);
    const overlapping = { ...OPTIONS, methods: [3, 2] };
    assert.throws(() => mad.registerAgent(overlapping), refused('EINVAL', /method 0x2/));
    mad.registerAgent({ ...OPTIONS, methods: [3] });
    mad.registerAgent({ ...OPTIONS, classVersion: 2 });
    mad.registerAgent({ ...OPTIONS, managementClass: VENDOR_CLASS + 1 });
    mad.registerAgent({ ...OPTIONS, methods: [] });
  });

  it('gives a method free with its agent', async () => {
    const { mad } = new MadPair().a;
    const first = mad.registerAgent(OPTIONS);
    assert.throws(() => mad.registerAgent(OPTIONS), refused('EINVAL', /method 0x1/));
    await first.unregister();
    const second = mad.registerAgent(OPTIONS);
    assert.notEqual(second, first);
    assert.throws(() => mad.registerAgent(OPTIONS), refused('EINVAL', /method 0x1/));
  });

  it('names what is wrong with a class, version, method or OUI', () => {
    const { mad } = new MadPair().a;
    const wrong: [Partial<MadAgentOptions>, RegExp][] = [
      [{ managementClass: 0 }, /managementClass is 0;/],
      [{ managementClass: 0x01 }, /managementClass is 1;/],
      [{ managementClass: 0x81 }, /managementClass is 129;/],
      [{ managementClass: 256 }, /managementClass is 256;/],
      [{ classVersion: 0x83 }, /classVersion is 131;/],
      [{ methods: [128] }, /method is 128;/],
      [{ managementClass: 0x30 }, /oui is undefined; it must be an integer/],
      [{ oui: 5 }, /oui is 5; it must be left out/],
    ];
    for (const [override, message] of wrong) {
      assert.throws(
        () => mad.registerAgent({ ...OPTIONS, ...override }),
        refused('EINVAL', message),
      );
    }
    assert.throws(
      () => mad.registerAgent({ ...OPTIONS, rmpp: true }),
      refused('EINVAL', /rmpp is true; it must be false/),
    );
  });

  it('tells vendor classes of range 2 apart by OUI', async () => {
    const pair = new MadPair();
    const got: number[] = [];
    for (const oui of [0x0002c9, 0x00066a]) {
      pair.b.mad.registerAgent({
        ...OPTIONS,
        managementClass: 0x32,
        oui,
        methods: [3],
        onReceive: () => got.push(oui),
      });
    }
    const agent = pair.asker();
    const data = madOf({ managementClass: 0x32, method: 3 });
    data.set([0x00, 0x06, 0x6a], 37);
    agent.send({ destination: pair.b.address, data, timeoutUs: 0, retries: 0 });
    data.set([0xff, 0xff, 0xff], 37);
    agent.send({ destination: pair.b.address, data, timeoutUs: 0, retries: 0 });
    await pair.world.run();
    assert.deepEqual(got, [0x00066a]);
    assert.equal(pair.b.mad.counters.unmatchedRequests, 1);
  });

  it('has 24-bit hi_tids, none twice', () => {
    const { mad } = new MadPair().a;
    const hiTids = Array.from({ length: 300 }, () =>
      mad.registerAgent({ ...OPTIONS, methods: [] }),
    ).map(({ hiTid }) => hiTid);
    assert.equal(new Set(hiTids).size, 300);
    assert.ok(hiTids.every((hiTid) => hiTid > 0 && hiTid <= 0xffffff));
  });

  it('hands requests over with their bytes and where they came from', async () => {
    const pair = new MadPair();
    const received: { from: string; mad: ReceivedMad; data: Uint8Array }[] = [];
    pair.b.mad.registerAgent({
      ...OPTIONS,
      onReceive: (mad) =>
        received.push({ from: ipFromGid(mad.source.gid), mad, data: mad.data.slice() }),
    });
    const agent = pair.asker();
    const data = madOf({ method: 2 }).fill(7, 24);
    agent.send({ destination: pair.b.address, data, timeoutUs: 0, retries: 0, context: 'set' });
    data.fill(9, 24);
    await pair.world.run();
    assert.equal(received.length, 1);
    assert.equal(received[0]?.from, '10.0.0.1');
    assert.equal(received[0].mad.source.qpn, 1);
    assert.equal(received[0].mad.request, undefined);
    assert.deepEqual(received[0].data, madOf({ method: 2 }).fill(7, 24));
    assert.deepEqual(pair.log, ['SUCCESS set']);
  });
});

describe('MAD: what nobody takes', () => {
  const incoming = async (pair: MadPair, data: Uint8Array): Promise<void> => {
    pair.b.device.receive(data, pair.a.address.gid, pair.b.address.gid);
    await pair.world.run();
  };

  it('answers Get and Set with status 0x000c, and nothing else', async () => {
    const pair = new MadPair();
    for (const method of [1, 2, 3, 5, 6]) await incoming(pair, madOf({ method, classVersion: 9 }));
    const answers = pair.network.carried.map(({ data }) => headerOf(data));
    assert.deepEqual(
      answers.map(({ method, status }) => [method, status]),
      [
        [0x81, 0x000c],
        [0x81, 0x000c],
      ],
    );
    assert.equal(pair.b.mad.counters.unmatchedRequests, 5);
    // A node that gets such an answer does not answer it in turn.
    assert.equal(pair.a.mad.counters.unmatchedResponses, 2);
  });

  it('matches a response by transaction id, class and sender', async () => {
    const pair = new MadPair();
    const agent = pair.asker();
    const request = pair.ask(agent, 'one');
    agent.send(request);
    const answer = answerTo(request.data);
    const { transactionIdHi, transactionIdLo } = headerOf(answer);
    const ids = { transactionIdHi, transactionIdLo, method: 0x81 };
    const stranger = pair.a.address.gid;
    const { a, b } = pair;
    a.device.receive(answer, stranger, a.address.gid);
    a.device.receive(madOf({ ...ids, managementClass: 0x0b }), b.address.gid, a.address.gid);
    a.device.receive(
      madOf({ ...ids, transactionIdLo: transactionIdLo + 1 }),
      b.address.gid,
      a.address.gid,
    );
    a.device.receive(
      madOf({ ...ids, transactionIdHi: transactionIdHi + 1 }),
      b.address.gid,
      a.address.gid,
    );
    await pair.world.runFor(10);
    assert.equal(a.mad.counters.unmatchedResponses, 4);
    assert.deepEqual(pair.log, []);
    a.device.receive(answer, b.address.gid, a.address.gid);
    a.device.receive(answer, b.address.gid, a.address.gid);
    await pair.world.run();
    assert.deepEqual(pair.log, ['response one', 'SUCCESS one']);
    // The second copy, and b's "unsupported", came too late.
    assert.equal(a.mad.counters.unmatchedResponses, 6);
  });

  it('drops and counts what is malformed or of QP0', async () => {
    const pair = new MadPair();
    const { b } = pair;
    await incoming(pair, madOf({ managementClass: 0x01 }));
    await incoming(pair, madOf({ managementClass: 0x81 }));
    await incoming(pair, madOf({ managementClass: 0x07, classVersion: 2, method: 1 }));
    await incoming(pair, madOf({ baseVersion: 2 }));
    assert.equal(b.mad.counters.refused, 4);
    await incoming(pair, new Uint8Array(255));
    await incoming(pair, new Uint8Array(0));
    assert.equal(b.mad.portCounters.malformed, 2);
    assert.deepEqual(pair.network.carried, []);
  });
});

describe('MAD: GRH area', () => {
  it('is IPv6 unless an IPv4 header is there', () => {
    const ipv6 = new Uint8Array(40).fill(0xab);
    ipv6[0] = 0x60;
    assert.deepEqual(grhAddresses(ipv6)?.source, ipv6.slice(8, 24));
    // An IPv6 address may look like the beginning of an IPv4 header: the checksum decides.
    ipv6[20] = 0x45;
    assert.deepEqual(grhAddresses(ipv6)?.destination, ipv6.slice(24, 40));
  });

  it('takes IPv4 by its checksum where the undefined bytes look like IPv6', () => {
    const area = new Uint8Array(40);
    area[0] = 0x6f;
    const header = [0x45, 0, 0, 60, 0, 1, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    const sum = header.reduce((total, byte, i) => total + (i % 2 === 0 ? byte << 8 : byte), 0);
    const checksum = 0xffff - ((sum & 0xffff) + (sum >>> 16));
    area.set(header, 20);
    area.set([checksum >>> 8, checksum & 0xff], 30);
    const addresses = grhAddresses(area);
    assert.ok(addresses);
    assert.equal(ipFromGid(addresses.source), '10.0.0.1');
    assert.equal(ipFromGid(addresses.destination), '10.0.0.2');
  });

  it('is nothing when neither is there', () => {
    assert.equal(grhAddresses(new Uint8Array(40)), undefined);
  });
});
