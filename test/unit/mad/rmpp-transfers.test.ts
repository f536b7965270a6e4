/** RMPP transfers both ways: lengths, windows, what is lost, repeated or overtaken. */
import assert from 'node:assert/strict';
import { RMPP_FLAG, RMPP_TYPE } from '../../../plugins/mad/wire/rmpp-header.js';
import { SeededRandom } from '../../../providers/mock/index.js';
import {
  RMPP_DATA,
  RMPP_HEADERS,
  RmppPair,
  describeRmpp,
  replyTo,
  rmppOf,
  transferOf,
} from '../../support/rmpp-pair.js';

/** Bytes 24 to 35 are the module's: apart from them a transfer arrives as it was sent. */
function assertSame(actual: Uint8Array | undefined, sent: Uint8Array | undefined): void {
  assert.ok(actual && sent);
  const expected = sent.slice();
  expected.set(actual.subarray(24, 36), 24);
  assert.equal(Buffer.compare(actual, expected), 0, `${actual.length} of ${sent.length} bytes`);
}

describe('RMPP: transfers', () => {
  for (const lengthBytes of [0, 1, 215, 216, 217, 432, 10_000, 300_000]) {
    it(`carries ${lengthBytes} bytes`, async () => {
      const rmpp = new RmppPair();
      const mad = transferOf(rmpp.asker.agent, lengthBytes, { method: 3 });
      mad[26] = RMPP_FLAG.ACTIVE;
      rmpp.ask(mad);
      await rmpp.pair.world.runFor(1_000_000);
      assert.equal(rmpp.answerer.received.length, 1);
      assertSame(rmpp.answerer.received[0], mad);
      assert.deepEqual(rmpp.asker.results, ['SUCCESS ask']);
      const segments = Math.max(1, Math.ceil(lengthBytes / RMPP_DATA));
      assert.equal(rmpp.carried.filter((text) => text.startsWith('DATA')).length, segments);
      await rmpp.assertNothingHeld();
    });
  }

  it('sends one segment, and after each ACK as many as it allows', async () => {
    const rmpp = new RmppPair();
    rmpp.ask(transferOf(rmpp.asker.agent, 100 * RMPP_DATA, { method: 3 }));
    await rmpp.pair.world.runFor(1_000_000);
    const acks = rmpp.carried
      .map((text, i) => ({ text, i }))
      .filter(({ text }) => text.startsWith('ACK'));
    assert.deepEqual(
      acks.map(({ text }) => text),
      ['ACK 1 65', 'ACK 65 129', 'ACK 100 129'],
    );
    assert.deepEqual(rmpp.carried.slice(0, 3), ['DATA 1', 'ACK 1 65', 'DATA 2']);
    assert.equal(acks[1]?.i, 66);
  });

  it('marks first and last, and says the lengths of both', async () => {
    const rmpp = new RmppPair();
    rmpp.ask(transferOf(rmpp.asker.agent, 2 * RMPP_DATA + 10, { method: 3 }));
    await rmpp.pair.world.runFor(1_000);
    const { ACTIVE, FIRST, LAST } = RMPP_FLAG;
    const segments = rmpp.pair.network.carried.map(({ data }) => rmppOf(data));
    const data = segments.filter(({ type }) => type === RMPP_TYPE.DATA);
    // PayloadLength counts the OUI's four bytes in each segment: 220 + 220 + 14.
    assert.deepEqual(
      data.map(({ flags, payloadLengthOrNewWindowLast }) => [flags, payloadLengthOrNewWindowLast]),
      [
        [ACTIVE | FIRST, 454],
        [ACTIVE, 0],
        [ACTIVE | LAST, 14],
      ],
    );
  });

  it('answers a transfer by a transfer: the direction turns by an ACK of segment 0', async () => {
    const rmpp = new RmppPair();
    let reply: Uint8Array | undefined;
    rmpp.onRequest = (request) => (reply = rmpp.answer(request, 200_000));
    const request = transferOf(rmpp.asker.agent, 70_000);
    rmpp.ask(request, { timeoutUs: 500_000 });
    await rmpp.pair.world.runFor(1_000_000);
    assertSame(rmpp.answerer.received[0], request);
    assertSame(rmpp.asker.received[0], reply);
    assert.deepEqual(rmpp.asker.results, ['SUCCESS ask']);
    assert.deepEqual(rmpp.answerer.results, ['SUCCESS answer']);
    assert.ok(rmpp.carried.includes('ACK 0 1'));
    await rmpp.assertNothingHeld();
  });

  it('answers a plain MAD by a transfer', async () => {
    const rmpp = new RmppPair();
    let reply: Uint8Array | undefined;
    rmpp.onRequest = (request) => (reply = rmpp.answer(request, 1000));
    const request = transferOf(rmpp.asker.agent, RMPP_DATA);
    rmpp.ask(request, { timeoutUs: 500_000 });
    await rmpp.pair.world.runFor(1_000_000);
    assertSame(rmpp.answerer.received[0], request);
    assertSame(rmpp.asker.received[0], reply);
    assert.ok(!rmpp.carried.includes('ACK 0 1'));
  });

  it('sends 256 bytes as a transfer only when the flag "active" is set', async () => {
    const rmpp = new RmppPair();
    const mad = transferOf(rmpp.asker.agent, RMPP_DATA, { method: 3, transaction: 1 });
    rmpp.ask(mad);
    const active = transferOf(rmpp.asker.agent, RMPP_DATA, { method: 3, transaction: 2 });
    active[26] = RMPP_FLAG.ACTIVE;
    rmpp.ask(active);
    await rmpp.pair.world.runFor(1_000_000);
    assert.deepEqual(rmpp.carried, ['NONE 0', 'DATA 1', 'ACK 1 1']);
    assert.equal(rmpp.answerer.received.length, 2);
  });

  it('lets a response that takes longer than the timeout arrive', async () => {
    const rmpp = new RmppPair();
    rmpp.pair.network.latencyUs = 4_000;
    rmpp.onRequest = (request) => void rmpp.answer(request, 200_000);
    rmpp.ask(transferOf(rmpp.asker.agent, 0), { timeoutUs: 30_000, retries: 0 });
    await rmpp.pair.world.runFor(2_000_000);
    assert.deepEqual(rmpp.asker.results, ['SUCCESS ask']);
    assert.ok(rmpp.pair.network.carried.length > 900);
  });

  it('carries many transfers at a time, beside plain MADs', async () => {
    const rmpp = new RmppPair();
    const sent = Array.from({ length: 20 }, (_, i) =>
      transferOf(rmpp.asker.agent, 5_000 + i, { method: 3, transaction: i + 1, seed: i }),
    );
    for (const mad of sent) rmpp.ask(mad);
    await rmpp.pair.world.runFor(5_000_000);
    assert.equal(rmpp.asker.results.length, 20);
    const byLength = [...rmpp.answerer.received].sort((a, b) => a.length - b.length);
    for (const [i, mad] of sent.entries()) assertSame(byLength[i], mad);
    await rmpp.assertNothingHeld();
  });
});

describe('RMPP: a bad network', () => {
  for (const lossPercent of [1, 5, 10]) {
    it(`carries 300 KB both ways, ${lossPercent} % lost, some repeated or late`, async () => {
      for (let seed = 1; seed <= 5; seed++) {
        const random = new SeededRandom(seed * 100 + lossPercent);
        const rmpp = new RmppPair();
        rmpp.pair.network.fate = () => {
          if (random.percent(lossPercent)) return [];
          const delay = random.percent(5) ? 10 + random.below(2_000) : 10;
          return random.percent(3) ? [delay, delay + random.below(5_000)] : [delay];
        };
        let reply: Uint8Array | undefined;
        rmpp.onRequest = (request) => (reply = rmpp.answer(request, 300_000));
        const request = transferOf(rmpp.asker.agent, 300_000, { seed });
        rmpp.ask(request, { timeoutUs: 2_000_000, retries: 7 });
        const begin = rmpp.pair.world.now();
        while (rmpp.asker.results.length === 0) await rmpp.pair.world.runFor(100_000);
        const seconds = (rmpp.pair.world.now() - begin) / 1e6;
        assert.deepEqual(rmpp.asker.results, ['SUCCESS ask'], `seed ${seed}`);
        assert.ok(seconds < 40, `${seconds} s`);
        assert.equal(rmpp.answerer.received.length, 1);
        assertSame(rmpp.answerer.received[0], request);
        assertSame(rmpp.asker.received[0], reply);
        await rmpp.assertNothingHeld();
      }
    });
  }

  it('repeats what is lost by the second, without waiting for the timeout', async () => {
    const rmpp = new RmppPair();
    let data = 0;
    rmpp.pair.network.fate = ({ data: mad }) =>
      rmppOf(mad).type === RMPP_TYPE.DATA && ++data === 20 ? [] : [10];
    rmpp.ask(transferOf(rmpp.asker.agent, 64 * RMPP_DATA, { method: 3 }));
    const begin = rmpp.pair.world.now();
    while (rmpp.asker.results.length === 0) await rmpp.pair.world.runFor(100);
    assert.ok(rmpp.pair.world.now() - begin < 2_000);
    assert.equal(rmpp.pair.a.mad.rmppCounters.segmentsResent, 1);
  });

  it('recovers from the loss of the last segment and of the last ACK', async () => {
    for (const lost of ['DATA 3', 'ACK 3 65']) {
      const rmpp = new RmppPair();
      let gone = false;
      rmpp.pair.network.fate = (parcel) => {
        if (gone || describeRmpp(parcel) !== lost) return [10];
        gone = true;
        return [];
      };
      rmpp.ask(transferOf(rmpp.asker.agent, 3 * RMPP_DATA, { method: 3 }));
      const begin = rmpp.pair.world.now();
      while (rmpp.asker.results.length === 0) await rmpp.pair.world.runFor(1_000);
      assert.deepEqual(rmpp.asker.results, ['SUCCESS ask']);
      assert.ok(gone && rmpp.pair.world.now() - begin < 100_000, lost);
      assert.equal(rmpp.answerer.received.length, 1);
    }
  });

  it('gives up after its retries, and tells the peer: ABORT 126', async () => {
    const rmpp = new RmppPair();
    let cut = false;
    rmpp.pair.network.fate = ({ data }) => {
      cut ||= rmppOf(data).segmentNumber > 10;
      return cut && rmppOf(data).type !== RMPP_TYPE.ABORT ? [] : [10];
    };
    rmpp.ask(transferOf(rmpp.asker.agent, 50_000, { method: 3 }), { retries: 2 });
    const begin = rmpp.pair.world.now();
    await rmpp.pair.world.runFor(20_000_000);
    assert.deepEqual(rmpp.asker.results, ['RESP_TIMEOUT_ERR ask']);
    assert.equal(rmpp.carried.at(-1), 'ABORT 126');
    assert.ok(rmpp.pair.world.now() - begin >= 6_000_000);
    assert.equal(rmpp.pair.b.mad.rmppAllowance.transfersHeld, 0);
    await rmpp.assertNothingHeld();
  });

  it('ends a transfer that takes more than 40 seconds: ABORT 118', async () => {
    const rmpp = new RmppPair();
    const mad = transferOf(rmpp.asker.agent, 50_000, { method: 3 });
    rmpp.inject(segmentOf(mad, 1));
    await rmpp.pair.world.runFor(39_999_000);
    assert.equal(rmpp.pair.b.mad.rmppAllowance.transfersHeld, 1);
    rmpp.inject(segmentOf(mad, 2));
    await rmpp.pair.world.runFor(2_000);
    assert.equal(rmpp.carried.at(-1), 'ABORT 118');
    assert.equal(rmpp.pair.b.mad.rmppAllowance.transfersHeld, 0);
    rmpp.inject(segmentOf(mad, 3));
    await rmpp.assertNothingHeld();
    assert.equal(rmpp.answerer.received.length, 0);
  });

  it('ends its send when the peer ends it by STOP 1 or ABORT', async () => {
    for (const [type, status] of [
      [RMPP_TYPE.STOP, 1],
      [RMPP_TYPE.ABORT, 118],
      [RMPP_TYPE.ABORT, 127],
    ] as const) {
      const rmpp = new RmppPair();
      rmpp.pair.network.fate = () => [];
      const mad = transferOf(rmpp.asker.agent, 50_000, { method: 3 });
      rmpp.ask(mad);
      await rmpp.pair.world.runFor(100);
      const control = replyTo(mad, 216);
      control[26] = 1;
      control.set([1, type, 0xf9, status, 0, 0, 0, 0, 0, 0, 0, 0], 24);
      rmpp.inject(control, 'asker');
      await rmpp.pair.world.runFor(100);
      assert.deepEqual(rmpp.asker.results, [`REM_ABORT_ERR ${status} ask`]);
      await rmpp.assertNothingHeld();
    }
  });
});

/** Segment `number` as a peer would send it, without announcing the whole length. */
function segmentOf(mad: Uint8Array, number: number): Uint8Array {
  const data = new Uint8Array(256);
  data.set(mad.subarray(0, RMPP_HEADERS));
  data.set([1, 1, number === 1 ? 0xfb : 0xf9, 0, 0, 0, 0, number, 0, 0, 0, 0], 24);
  return data;
}
