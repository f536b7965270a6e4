/**
 * What the network says of a peer is a hint: it takes three, to three messages, over a second; any
 * word of the peer's wins. The same for connecting, accepting, disconnecting and resolving.
 */
import assert from 'node:assert/strict';
import type { NetworkReport } from '../../../core/spi/index.js';
import { HINTS_SPAN_US, REQUESTS_PER_PEER } from '../../../plugins/cm/common/timing.js';
import { CmPair, type Side, typesOf } from '../../support/cm-pair.js';
import { SidrPair, withQpn } from '../../support/sidr-pair.js';

const SECOND_US = 1_000_000;
const RTT_US = 50;

type CmNode = CmPair['a'];
type Pair = Pick<CmPair, 'a' | 'b' | 'network' | 'world'>;

function gidOf(node: CmNode): Uint8Array {
  const [gid] = node.device.gids;
  assert.ok(gid);
  return gid;
}

/** Each packet of `from` is lost and answered by ICMP, as where nothing listens. */
function nothingListens(pair: Pair, from: CmNode, to: CmNode): void {
  pair.network.fate = (parcel) => {
    if (parcel.from !== from.device) return [10];
    pair.world.after(RTT_US, () => from.device.reportUnreachable(gidOf(to)));
    return [];
  };
}

/** Somebody forges it every 10 ms, for so long. */
function forge(pair: Pair, at: CmNode, report: NetworkReport, forUs: number): void {
  for (let us = 0; us < forUs; us += 10_000) pair.world.after(us, () => at.device.report(report));
}

const port = (node: CmNode): NetworkReport => ({ type: 'port-unreachable', gid: gidOf(node) });

describe('CM: hints of the network', () => {
  it('a connect that nothing listens for ends in 1 to 2 s, and says why', async () => {
    const pair = new CmPair();
    nothingListens(pair, pair.a, pair.b);
    const { events } = pair.connect();
    await pair.world.runFor(HINTS_SPAN_US - 1);
    assert.equal(events.length, 0);
    await pair.world.runFor(SECOND_US);
    const [end] = events;
    assert.ok(end?.type === 'unreachable');
    assert.match(
      end.detail,
      /^ICMP port unreachable: reported for [34] messages in 1\.\d s, without/,
    );
    const requests = pair.messages.filter((name) => name === 'REQ').length;
    assert.ok(requests >= 3 && requests <= 4, `${requests} REQs`);
    assert.ok(pair.a.cm.isIdle);
  });

  it('one who began to be silent long before is given up no later', async () => {
    const pair = new CmPair();
    pair.network.fate = () => [];
    const { events } = pair.connect();
    await pair.world.runFor(20 * SECOND_US);
    nothingListens(pair, pair.a, pair.b);
    forge(pair, pair.a, port(pair.b), 10_000);
    await pair.world.runFor(2 * SECOND_US);
    assert.deepEqual(typesOf(events), ['unreachable']);
  });

  it('any number of forged hints to one request are one', async () => {
    const pair = new CmPair();
    pair.network.fate = () => [];
    const { events } = pair.connect();
    forge(pair, pair.a, port(pair.b), SECOND_US - 20_000);
    await pair.world.runFor(SECOND_US - 10_000);
    assert.deepEqual(events, []);
  });

  for (const delayUs of [100, 300_000, 900_000]) {
    it(`a REP after ${delayUs / 1000} ms wins over forged hints`, async () => {
      const pair = new CmPair();
      const sides: Side[] = [];
      pair.listen((request) => {
        pair.world.after(delayUs, () => sides.push(pair.accept(request)));
      });
      const active = pair.connect();
      forge(pair, pair.a, port(pair.b), 3 * SECOND_US);
      await pair.world.runFor(3 * SECOND_US);
      assert.deepEqual(typesOf(active.events), ['established']);
      assert.deepEqual(typesOf(sides[0]?.events ?? []), ['established']);
    });
  }

  it('waits for a consumer that thinks for a minute: MRA is a word of the peer', async () => {
    const pair = new CmPair();
    const sides: Side[] = [];
    pair.listen((request) => {
      pair.world.after(60 * SECOND_US, () => sides.push(pair.accept(request)));
    });
    const active = pair.connect();
    forge(pair, pair.a, port(pair.b), 61 * SECOND_US);
    await pair.world.runFor(61 * SECOND_US);
    assert.deepEqual(typesOf(active.events), ['established']);
  });

  it('what the own system refuses is given up likewise, in its words', async () => {
    const pair = new CmPair();
    pair.network.fate = () => [];
    const { events } = pair.connect();
    const gid = gidOf(pair.b);
    forge(pair, pair.a, { type: 'refused', gid, code: 'ENETUNREACH' }, 2 * SECOND_US);
    await pair.world.runFor(2 * SECOND_US);
    const [end] = events;
    assert.ok(end?.type === 'unreachable');
    assert.match(end.detail, /^refused by our system \(ENETUNREACH\): reported for \d messages/);
  });

  it('a path MTU is nothing that ends a connect', async () => {
    const pair = new CmPair();
    pair.network.fate = () => [];
    const { events } = pair.connect();
    forge(pair, pair.a, { type: 'too-big', gid: gidOf(pair.b), mtuBytes: 68 }, 10 * SECOND_US);
    await pair.world.runFor(10 * SECOND_US);
    assert.deepEqual(events, []);
  });

  it('ends those too that wait for their turn to ask the same peer', async () => {
    const pair = new CmPair();
    nothingListens(pair, pair.a, pair.b);
    const sides = Array.from({ length: 3 * REQUESTS_PER_PEER }, () => pair.connect());
    await pair.world.runFor(2 * SECOND_US);
    for (const { events } of sides) assert.deepEqual(typesOf(events), ['unreachable']);
    assert.ok(pair.a.cm.isIdle);
  });

  it('an accept outlives forged hints too, and ends where nothing listens any more', async () => {
    const pair = new CmPair();
    const sides: Side[] = [];
    pair.listen((request) => {
      pair.world.after(2 * SECOND_US, () => sides.push(pair.accept(request)));
    });
    const active = pair.connect();
    forge(pair, pair.b, port(pair.a), 3 * SECOND_US);
    await pair.world.runFor(3 * SECOND_US);
    assert.deepEqual(typesOf(active.events), ['established']);
    assert.deepEqual(typesOf(sides[0]?.events ?? []), ['established']);

    pair.tamper('REJ', 1, []);
    pair.connect().connection.abandon();
    nothingListens(pair, pair.b, pair.a);
    await pair.world.runFor(6 * SECOND_US);
    const [end] = sides[1]?.events ?? [];
    assert.ok(end?.type === 'accept-failed');
    assert.match(end.detail, /^ICMP port unreachable/);
  });

  it('a disconnect waits for DREP a little longer than for one forged hint', async () => {
    const pair = new CmPair();
    const { active, passive } = await pair.established();
    pair.tamper('DREQ', 1, []);
    active.connection.disconnect();
    forge(pair, pair.a, port(pair.b), 10_000);
    await pair.world.runFor(500_000);
    assert.deepEqual(typesOf(active.events), ['established', 'disconnected']);
    assert.deepEqual(typesOf(passive.events), ['established', 'disconnected']);
  });

  it('and ends in a second or two where nothing listens any more', async () => {
    const pair = new CmPair();
    const { active } = await pair.established();
    nothingListens(pair, pair.a, pair.b);
    active.connection.disconnect();
    await pair.world.runFor(2 * SECOND_US);
    assert.deepEqual(typesOf(active.events).slice(0, 2), ['established', 'disconnected']);
  });

  it('resolving a datagram service: as connecting, with the verdict in the result', async () => {
    const pair = new SidrPair();
    nothingListens(pair, pair.a, pair.b);
    const { results } = pair.ask();
    await pair.world.runFor(HINTS_SPAN_US - 1);
    assert.equal(results.length, 0);
    await pair.world.runFor(SECOND_US);
    assert.equal(results[0]?.failure, 'unreachable');
    assert.match(results[0].detail ?? '', /^ICMP port unreachable/);
  });

  it('a SIDR_REP wins over forged hints, and they drop no question at who is asked', async () => {
    const pair = new SidrPair();
    pair.serve((request) => void pair.world.after(600_000, () => withQpn(9)(request)));
    const { results } = pair.ask();
    forge(pair, pair.a, port(pair.b), SECOND_US);
    forge(pair, pair.b, port(pair.a), SECOND_US);
    await pair.world.runFor(SECOND_US);
    assert.equal(results[0]?.qpn, 9);
  });
});
