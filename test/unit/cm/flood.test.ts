/** One address floods; a client that has done nothing connects all the same. In virtual time. */
import assert from 'node:assert/strict';
import { gidFromIp } from '../../../core/spi/index.js';
import { FLOOD_KINDS, type FloodKind, floodMad } from '../../../bench/flood/datagrams.js';
import { CmPair, type Side, typesOf } from '../../support/cm-pair.js';

const FLOODER = gidFromIp('10.0.0.9');
const SERVER = gidFromIp('10.0.0.2');
const CONN_QUAL = 7471;
/** How often the innocent connects, and within which time: without a repeated REQ. */
const CONNECTS = 3;
/** Less than the default, so that it is used up soon. */
const LIMITS = { maxHalfOpen: 128, peerRequestBurst: 200 };
const WITHIN_US = 100_000;

interface Flood {
  readonly kind: FloodKind;
  readonly perSecond: number;
  readonly seconds: number;
  /** Of what the flooder sends is answered at most. */
  readonly answered: number;
}

/** Silent half-open connections fill what there is; the rest costs time. */
const FLOODS: readonly Flood[] = [
  { kind: 'fresh', perSecond: 200, seconds: 3, answered: 1 },
  { kind: 'fresh', perSecond: 5000, seconds: 1, answered: 0.2 },
  { kind: 'repeated', perSecond: 5000, seconds: 1, answered: 0.04 },
  { kind: 'refused', perSecond: 5000, seconds: 1, answered: 0.3 },
  { kind: 'stray', perSecond: 5000, seconds: 1, answered: 0.3 },
];

class FloodedPair extends CmPair {
  private sent = 0;

  begin({ kind, perSecond, seconds }: Flood): void {
    const target = { kind, from: FLOODER, to: SERVER, connQual: CONN_QUAL };
    const step = (): void => {
      this.b.device.receive(floodMad(target, this.sent++), FLOODER, SERVER);
      if (this.sent < perSecond * seconds) this.world.after(1e6 / perSecond, step);
    };
    step();
  }

  /** Messages to the flooder. */
  get answers(): number {
    return this.network.carried.filter(({ destination }) => destination[15] === 9).length;
  }
}

describe('CM: one address floods', function () {
  this.timeout(60_000);

  for (const flood of FLOODS) {
    const { kind, perSecond, seconds, answered } = flood;
    it(`${perSecond}/s, ${FLOOD_KINDS[kind]}: an innocent client connects at once`, async () => {
      const pair = new FloodedPair({ b: { cm: LIMITS } });
      pair.listen((request) => void pair.accept(request));
      pair.begin(flood);
      const innocents: Side[] = [];
      for (let i = 0; i < CONNECTS; i++) {
        await pair.world.runFor((seconds * 1e6) / CONNECTS - WITHIN_US);
        const side = pair.connect();
        innocents.push(side);
        await pair.world.runFor(WITHIN_US);
        assert.deepEqual(typesOf(side.events), ['established'], `connect ${i}`);
      }
      assert.ok(pair.answers <= answered * perSecond * seconds, `${pair.answers} answers`);
      for (const { connection } of innocents) connection.disconnect();
      await pair.world.runFor(WITHIN_US);
      for (const { events } of innocents) assert.equal(events[1]?.type, 'disconnected');
    });
  }

  it('a slow consumer’s backlog is not the flooder’s alone', async () => {
    const pair = new FloodedPair();
    const waiting: (() => void)[] = [];
    pair.listen((request) => void waiting.push(() => void pair.accept(request)), 16);
    pair.begin({ kind: 'fresh', perSecond: 200, seconds: 20, answered: 1 });
    await pair.world.runFor(2_000_000);
    assert.equal(waiting.length, 16);
    const { events } = pair.connect();
    // Ten answers a second, none of them at the moment when the innocent asks again.
    await pair.world.runFor(37_000);
    for (let i = 0; i < 50 && events.length === 0; i++) {
      waiting.shift()?.();
      await pair.world.runFor(100_000);
    }
    assert.deepEqual(typesOf(events), ['established']);
    assert.ok(pair.b.cm.counters.overBacklog > 100);
  });

  it('a peer that connects and ends by the thousand is no flooder', async () => {
    const pair = new CmPair();
    pair.listen((request) => void pair.accept(request), 1000);
    for (let round = 0; round < 4; round++) {
      const sides = Array.from({ length: 500 }, () => pair.connect());
      await pair.world.runFor(20_000);
      for (const { events } of sides) assert.deepEqual(typesOf(events), ['established']);
      for (const { connection } of sides) connection.disconnect();
      await pair.world.runFor(20_000);
    }
    assert.equal(pair.b.cm.counters.overRate, 0);
    assert.equal(pair.b.cm.counters.requestsDropped, 0);
    assert.ok(pair.b.cm.counters.received >= 6000);
  });
});
