/** Each message of a connection lost, duplicated, or delayed past the next. */
import assert from 'node:assert/strict';
import { SeededRandom } from '../../../providers/mock/index.js';
import { CmPair, messageOf, type Side, typesOf } from '../../support/cm-pair.js';

interface Outcome {
  readonly pair: CmPair;
  readonly active: Side;
  readonly passives: readonly Side[];
}

/** Connects, lets it happen, has one side disconnect, and waits until nothing is left. */
async function life(pair: CmPair, disconnects: 'active' | 'passive'): Promise<Outcome> {
  const passives: Side[] = [];
  pair.listen((request) => void passives.push(pair.accept(request)));
  const active = pair.connect();
  await pair.world.runFor(5_000_000);
  const side = disconnects === 'active' ? active : passives[0];
  side?.connection.disconnect();
  await pair.world.run();
  return { pair, active, passives };
}

function assertNothingLeft({ pair }: Outcome): void {
  assert.ok(pair.a.cm.isIdle && pair.b.cm.isIdle);
  assert.equal(pair.world.activeTimers, 0);
}

function assertOrderly({ active, passives }: Outcome, disconnects: string, where: string): void {
  const whole = ['established', 'disconnected', 'timewait-exit'];
  assert.equal(passives.length, 1, where);
  assert.deepEqual(typesOf(active.events), whole, where);
  assert.deepEqual(typesOf(passives[0]?.events ?? []), whole, where);
  const [, ended] = active.events;
  assert.ok(ended?.type === 'disconnected' && ended.byPeer === (disconnects === 'passive'), where);
}

const MESSAGES = ['REQ', 'REP', 'RTU', 'DREQ', 'DREP'] as const;
const FAULTS: Record<string, readonly number[]> = {
  'lost once': [],
  'duplicated at once': [10, 10],
  'duplicated later': [10, 300],
  'delayed past the next': [700_000],
  'duplicated long after': [10, 1_500_000],
};

describe('CM: every message of a connection', () => {
  for (const message of MESSAGES) {
    for (const [fault, delays] of Object.entries(FAULTS)) {
      for (const disconnects of ['active', 'passive'] as const) {
        it(`${message} ${fault}, the ${disconnects} side disconnects`, async () => {
          const pair = new CmPair();
          pair.tamper(message, 1, delays);
          const outcome = await life(pair, disconnects);
          assertNothingLeft(outcome);
          assertOrderly(outcome, disconnects, pair.messages.join());
        });
      }
    }
  }

  it('recovers from a lost REQ or REP in about half a second', async () => {
    for (const lost of ['REQ', 'REP']) {
      const pair = new CmPair();
      pair.tamper(lost, 1, []);
      pair.listen((request) => void pair.accept(request));
      const { events } = pair.connect();
      await pair.world.runFor(510_000);
      assert.deepEqual(typesOf(events), ['established'], lost);
    }
  });

  it('repeats a message byte for byte', async () => {
    const pair = new CmPair();
    for (const message of MESSAGES) pair.tamper(message, 1, []);
    await life(pair, 'active');
    for (const message of MESSAGES) {
      const copies = pair.network.carried.filter((parcel) => messageOf(parcel).name === message);
      assert.ok(copies.length >= 2, message);
      for (const { data } of copies) assert.deepEqual(data, copies[0]?.data, message);
    }
  });
});

describe('CM: a peer that is silent', () => {
  it('fails the connect at the consumer’s limit, and tells the peer', async () => {
    const pair = new CmPair();
    const { events, connection } = pair.connect({ timeoutUs: 2_000_000 });
    pair.network.fate = () => [];
    await pair.world.runFor(2_000_000);
    assert.deepEqual(events, [{ type: 'timed-out' }]);
    assert.equal(pair.messages.at(-1), 'REJ');
    assert.equal(connection.state, 'IDLE');
    assert.ok(pair.a.cm.isIdle);
    assert.equal(pair.world.activeTimers, 0);
  });

  it('fails the connect when the retries are spent: 16 requests in a minute', async () => {
    const pair = new CmPair();
    pair.network.fate = () => [];
    const { events } = pair.connect();
    await pair.world.run();
    assert.deepEqual(events, [{ type: 'unreachable', detail: 'no answer to 16 requests' }]);
    assert.equal(pair.messages.length, 16);
    assert.ok(pair.world.now() < 61_000_000);
  });

  it('fails the accept when nobody says RTU, and says so to the peer', async () => {
    const pair = new CmPair();
    pair.network.fate = (parcel) => (messageOf(parcel).name === 'RTU' ? [] : [10]);
    const outcome = await life(pair, 'active');
    const [passive] = outcome.passives;
    // The active side's DREQ ends it first here; without one the retries do.
    assert.deepEqual(typesOf(passive?.events ?? []), ['disconnected', 'timewait-exit']);
    assertNothingLeft(outcome);
  });

  it('fails the accept when REP is never answered', async () => {
    const pair = new CmPair();
    pair.network.fate = (parcel) => (parcel.from === pair.b.device ? [] : [10]);
    const passives: Side[] = [];
    pair.listen((request) => void passives.push(pair.accept(request)));
    const { events } = pair.connect({ timeoutUs: 1_000 });
    pair.tamper('REJ', 1, []);
    await pair.world.run();
    assert.deepEqual(typesOf(events), ['timed-out']);
    assert.deepEqual(passives[0]?.events, [
      { type: 'accept-failed', detail: 'no answer to 16 replies' },
    ]);
    assert.ok(pair.b.cm.isIdle);
  });

  it('learns from the late REP of a connect that was given up', async () => {
    const pair = new CmPair();
    pair.tamper('REJ', 1, []);
    const passives: Side[] = [];
    pair.listen((request) => {
      void pair.world.after(100_000, () => passives.push(pair.accept(request)));
    });
    pair.connect({ timeoutUs: 50_000 });
    await pair.world.run();
    assert.deepEqual(typesOf(passives[0]?.events ?? []), ['accept-failed']);
    assert.deepEqual(pair.messages, ['REQ', 'REJ', 'REP', 'REJ']);
  });

  it('ends a disconnect within four seconds', async () => {
    const pair = new CmPair();
    const { active } = await pair.established();
    pair.network.fate = () => [];
    const begin = pair.world.now();
    active.connection.disconnect();
    await pair.world.runFor(4_000_000);
    assert.deepEqual(active.events.at(1), { type: 'disconnected', byPeer: false });
    assert.ok(pair.messages.filter((name) => name === 'DREQ').length === 8);
    assert.ok(begin > 0);
  });

  it('leaves an established connection alone at such a hint', async () => {
    const pair = new CmPair();
    const { active } = await pair.established();
    const [gid] = pair.b.device.gids;
    assert.ok(gid);
    pair.a.device.reportUnreachable(gid);
    await pair.world.runFor(10);
    assert.equal(active.connection.state, 'ESTABLISHED');
  });
});

describe('CM: seeded chaos', () => {
  const chaos = async (seed: number): Promise<void> => {
    const random = new SeededRandom(seed);
    const pair = new CmPair({ a: { seed: seed * 2 + 1 }, b: { seed: seed * 3 + 2 } });
    const loss = (random.u32() % 40) / 100;
    pair.network.fate = () => {
      if (random.percent(loss * 100)) return [];
      const delay = random.percent(20) ? random.u32() % 2_000_000 : random.u32() % 500;
      return random.percent(15) ? [delay, random.u32() % 3_000_000] : [delay];
    };
    const sides: Side[] = [];
    pair.listen((request) => {
      if (random.percent(15)) request.reject({ reason: 28, privateData: new Uint8Array(0) });
      else if (random.percent(20)) delayedAccept(pair, request, random.u32() % 3_000_000, sides);
      else sides.push(pair.accept(request));
    });
    for (let i = 0; i < 3; i++) {
      const timeoutUs = random.percent(30) ? 1 + (random.u32() % 4_000_000) : Infinity;
      sides.push(pair.connect({ timeoutUs }));
    }
    await pair.world.runFor(random.u32() % 8_000_000);
    for (const { connection } of sides) {
      const way = random.u32() % 4;
      if (way === 0) connection.abandon();
      else if (way < 3) connection.disconnect();
    }
    await pair.world.runFor(120_000_000);
    for (const { connection } of sides) connection.disconnect();
    await pair.world.run();
    assertDefined(pair, sides, seed);
    await Promise.all([pair.a.cm.close(), pair.b.cm.close()]);
  };

  it('ends every connection in a defined way on both sides: 1,000 seeds', async () => {
    for (let seed = 1; seed <= 1_000; seed++) await chaos(seed);
  });

  function delayedAccept(
    pair: CmPair,
    request: Parameters<CmPair['accept']>[0],
    delayUs: number,
    sides: Side[],
  ): void {
    pair.world.after(delayUs, () => {
      try {
        sides.push(pair.accept(request));
      } catch (error) {
        assert.match(String(error), /request is gone/);
      }
    });
  }

  const GRAMMAR = new RegExp(
    '^(established )?(disconnected )?(timewait-exit )?$|' +
      '^rejected (timewait-exit )?$|^(unreachable|timed-out) $|^accept-failed (timewait-exit )?$',
  );

  function assertDefined(pair: CmPair, sides: readonly Side[], seed: number): void {
    for (const { connection, events } of sides) {
      const story = [typesOf(events).join(), ...connection.flightRecord()].join('\n');
      const record = `seed ${seed}: ${story}`;
      assert.equal(connection.state, 'IDLE', record);
      assert.match(
        typesOf(events)
          .map((type) => `${type} `)
          .join(''),
        GRAMMAR,
        record,
      );
    }
    assert.ok(pair.a.cm.isIdle && pair.b.cm.isIdle, `seed ${seed}`);
    assert.equal(pair.world.activeTimers, 0, `seed ${seed}`);
  }
});
