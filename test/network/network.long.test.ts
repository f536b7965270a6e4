/** The port on real networks: namespaces, a router, links that go down, ICMP that is forged. */
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { leaveOut } from '../support/left-out.js';
import { patience } from '../support/patience.js';
import { type Family, Namespaces, type NetworkProgram } from './namespaces.js';

const FORGED_MTU = 600;
const SMALL_MTU = 1000;
const OUTAGE_MS = 5000;
const REMEDY = 'open the device with mtuBytes: 512';
/** Fails in about a second. */
const HASTY = { ackTimeout: 11, retryCount: 2 };

interface Ends {
  readonly server: NetworkProgram;
  readonly client: NetworkProgram;
}

describe('softroce between network namespaces', function () {
  this.timeout(120_000);
  let net: Namespaces;

  before(function () {
    const problem = Namespaces.problem();
    if (problem !== undefined) {
      leaveOut(this, problem, 'as root, with iproute2: npx mocha dist/test/network/*.test.js');
    }
  });
  afterEach(() => net.end());

  /** From a to b. */
  async function connected(family: Family, options: object = {}, acceptMs = 0): Promise<Ends> {
    const [a, b] = [net.address('a', family), net.address('b', family)];
    // The identifications of what comes are seen, not solved for: a wrong one is a lost packet.
    const exact = JSON.stringify({ icrcCheck: 'exact', ...options });
    const server = net.start('b', 'end-main', 'serve', b, String(acceptMs), exact);
    await server.said(/^listening$/m);
    const client = net.start('a', 'end-main', 'drive', a, b, exact);
    return { server, client };
  }

  async function written({ client }: Ends): Promise<void> {
    client.tell('write');
    await client.said(/^written$/m);
  }

  /** What has become of the connection, as its consumer is told. */
  async function broken({ client }: Ends): Promise<string> {
    client.tell('write');
    const [said = ''] = await client.said(/^TRANSPORT\nBROKEN: [^]*\nover$/m);
    return said;
  }

  async function counters({ client }: Ends): Promise<Record<string, number>> {
    client.tell('counters');
    const [said = ''] = await client.said(/^{.*}$/m);
    return JSON.parse(said) as Record<string, number>;
  }

  function forge(family: Family, kind: string, count: number, mtuBytes = 0): NetworkProgram {
    const [a, b] = [net.address('a', family), net.address('b', family)];
    return net.start('r', 'forge-main', kind, a, b, String(count), String(mtuBytes));
  }

  for (const [family, linkMtuBytes, mtuBytes] of [
    ['ipv4', 1500, FORGED_MTU],
    // What IPv6 must carry: only longer packets can be made to fail.
    ['ipv6', 9000, 1280],
  ] as const) {
    it(`forged "packet too big" stops nothing: ${family}`, async () => {
      net = new Namespaces(linkMtuBytes);
      const ends = await connected(family, { transport: HASTY });
      await ends.client.said(/^ready$/m);
      assert.equal(await forge(family, 'too-big', 2, mtuBytes).ended(), 0);
      for (let i = 0; i < 3; i++) await written(ends);
      const { icmpTooBig = 0, tooLong, badIcrc } = await counters(ends);
      assert.ok(icmpTooBig >= 1, 'the forged ICMP did not arrive');
      assert.deepEqual([tooLong, badIcrc], [0, 0]);
      ends.client.tell('end');
      assert.equal(await ends.client.ended(), 0);
      await ends.server.said(/^DISCONNECTED$/m);
    });
  }

  it('a router that carries less is named, with the remedy, and that works', async () => {
    net = new Namespaces();
    const ends = await connected('ipv4', { transport: HASTY });
    await ends.client.said(/^ready$/m);
    await written(ends);
    net.ip('r', `link set to-b mtu ${SMALL_MTU}`);
    const said = await broken(ends);
    const [, event = '', record = ''] = /^BROKEN: (.*)\n([^]*)/m.exec(said) ?? [];
    for (const text of [event, record]) {
      assert.match(text, /ICMP fragmentation needed: a router carries 1000 bytes, ours have up to/);
      assert.ok(text.includes(REMEDY), text);
      assert.ok(text.includes(net.address('b', 'ipv4')), text);
    }
    assert.ok((await counters(ends)).icmpTooBig);
    for (const end of [ends.client, ends.server]) await end.kill();
    const again = await connected('ipv4', { transport: HASTY, mtuBytes: 512 });
    await again.client.said(/^ready$/m);
    await written(again);
  });

  it('one that says nothing of it is suspected by what was never answered', async () => {
    net = new Namespaces();
    const ends = await connected('ipv4', { transport: HASTY });
    await ends.client.said(/^ready$/m);
    net.ip('r', `link set to-b mtu ${SMALL_MTU}`);
    // What the router itself sends goes nowhere.
    net.ip('r', `rule add iif lo to ${net.address('a', 'ipv4')} prohibit`);
    const said = await broken(ends);
    assert.match(said, /^BROKEN: .*no packet of 1084 bytes was ever answered; .*mtuBytes: 512/m);
    assert.match(said, /^ {2}qp: .*no packet of 1084 bytes was ever answered/m);
  });

  it('the own link that carries less is named, with the size that was refused', async () => {
    net = new Namespaces();
    const ends = await connected('ipv4', { transport: HASTY });
    await ends.client.said(/^ready$/m);
    await written(ends);
    net.ip('a', `link set eth0 mtu ${SMALL_MTU}`);
    const said = await broken(ends);
    const size =
      /a packet of 10\d\d bytes refused by our system \(EMSGSIZE\): the link carries 1000/;
    const [, event = '', record = ''] = /^BROKEN: (.*)\n([^]*)/m.exec(said) ?? [];
    for (const text of [event, record]) {
      assert.match(text, size);
      assert.ok(text.includes(REMEDY), text);
    }
    assert.ok((await counters(ends)).tooLong);
  });

  it(`lives on with default attributes after ${OUTAGE_MS} ms with its own link down`, async () => {
    net = new Namespaces();
    const ends = await connected('ipv4');
    await ends.client.said(/^ready$/m);
    await written(ends);
    net.linkDown('a');
    ends.client.tell('write');
    await delay(OUTAGE_MS);
    const { retries = 0, sendErrors = 0 } = await counters(ends);
    assert.ok(sendErrors > 0, 'nothing was refused');
    assert.ok(retries < 7, `${retries} retries`);
    net.linkUp('a');
    await ends.client.said(/^written$/m);
    await written(ends);
  });

  it('forged "port unreachable" ends no connect that the server answers', async () => {
    net = new Namespaces();
    const forger = forge('ipv4', 'port-unreachable', 200);
    const ends = await connected('ipv4', {}, 2500);
    await ends.client.said(/^ready$/m);
    await written(ends);
    assert.ok((await counters(ends)).icmpUnreachable, 'the forged ICMP did not arrive');
    await forger.kill();
  });

  it('nothing listens: within 5 s, and the error names the ICMP', async () => {
    net = new Namespaces();
    const [a, b] = [net.address('a', 'ipv4'), net.address('b', 'ipv4')];
    const client = net.start('a', 'end-main', 'drive', a, b);
    const started = Date.now();
    await client.said(/^UNREACHABLE\nICMP port unreachable: reported for/m);
    assert.ok(Date.now() - started < patience(5000), `${Date.now() - started} ms`);
  });
});
