/** What goes out of a transfer and when: windows, probes, retries, and every way to end it. */
import assert from 'node:assert/strict';
import { type MadSendHandle, WcStatus } from '../../../core/spi/index.js';
import { RMPP_TYPE } from '../../../plugins/mad/wire/rmpp-header.js';
import { madOf } from '../../support/mad-pair.js';
import {
  RMPP_DATA,
  RmppPair,
  controlOf,
  describeRmpp,
  replyTo,
  transferOf,
} from '../../support/rmpp-pair.js';

const MS = 1_000;
/** Segments that are on QP1 at a time. */
const IN_FLIGHT = 16;

const segments = (first: number, last: number): string[] =>
  Array.from({ length: last - first + 1 }, (_, at) => `DATA ${first + at}`);

/** A transfer to a peer that says what the test says. */
class Sending {
  readonly rmpp: RmppPair;
  readonly mad: Uint8Array;
  readonly handle: MadSendHandle;
  /** What has gone out, and when. */
  private readonly log: { readonly text: string; readonly atUs: number }[] = [];
  private readonly beganUs: number;

  constructor(count: number, { timeoutUs = 0, retries = 5, sendDepth = 128 } = {}) {
    this.rmpp = new RmppPair({ a: { sendDepth } });
    const { world, network } = this.rmpp.pair;
    network.fate = (parcel) => {
      this.log.push({ text: describeRmpp(parcel), atUs: world.now() });
      return [];
    };
    const { agent } = this.rmpp.asker;
    this.mad = transferOf(agent, count * RMPP_DATA, { method: 3 });
    this.beganUs = world.now();
    const destination = this.rmpp.pair.b.address;
    const send = { destination, data: this.mad, timeoutUs, retries, context: 'ask' };
    this.handle = agent.send(send);
  }

  get results(): readonly string[] {
    return this.rmpp.asker.results;
  }

  get counters(): { readonly segmentsSent: number; readonly segmentsResent: number } {
    return this.rmpp.pair.a.mad.rmppCounters;
  }

  run(durationUs: number): Promise<void> {
    return this.rmpp.pair.world.runFor(durationUs);
  }

  /** The peer says something to it; nothing moves but by that. */
  async hear(type: number, segmentNumber: number, data2 = 0, status = 0): Promise<void> {
    const fields = { type, segmentNumber, payloadLengthOrNewWindowLast: data2, status };
    this.rmpp.inject(controlOf(replyTo(this.mad, RMPP_DATA), fields), 'asker');
    await this.run(0);
  }

  ack(segmentNumber: number, windowLast: number): Promise<void> {
    return this.hear(RMPP_TYPE.ACK, segmentNumber, windowLast);
  }

  /** What has gone out since this was asked the last time. */
  sent(): string[] {
    return this.log.splice(0).map(({ text }) => text);
  }

  /** The same with its times since the beginning, in milliseconds. */
  sentAtMs(): string[] {
    return this.log.splice(0).map(({ text, atUs }) => `${text}: ${(atUs - this.beganUs) / MS}`);
  }
}

describe('RMPP: what a sender sends', () => {
  it('is one segment, then what the window allows, never more than 16 on QP1', async () => {
    const sending = new Sending(100);
    const { qp1 } = sending.rmpp.pair.a;
    await sending.run(0);
    assert.deepEqual(sending.sent(), ['DATA 1']);
    qp1.holdCompletions = true;
    await sending.ack(1, 41);
    assert.deepEqual(sending.sent(), segments(2, 1 + IN_FLIGHT));
    qp1.releaseCompletions();
    await sending.run(0);
    assert.deepEqual(sending.sent(), segments(2 + IN_FLIGHT, 41));
    await sending.ack(41, 42);
    assert.deepEqual(sending.sent(), ['DATA 42']);
    await sending.ack(42, 200);
    assert.deepEqual(sending.sent(), segments(43, 100));
    assert.deepEqual(sending.results, []);
    await sending.ack(100, 200);
    assert.deepEqual(sending.results, ['SUCCESS ask']);
    assert.deepEqual(sending.sent(), []);
    // ACKs are responses: they have been taken.
    assert.equal(sending.rmpp.pair.a.mad.counters.unmatchedResponses, 0);
    const { segmentsSent, segmentsResent } = sending.counters;
    assert.deepEqual([segmentsSent, segmentsResent], [100, 0]);
  });

  it('goes on when the window opens by an ACK that acknowledges nothing new', async () => {
    const sending = new Sending(5);
    await sending.run(0);
    await sending.ack(1, 2);
    sending.sent();
    await sending.ack(1, 4);
    // It shows besides that 2 has got lost.
    assert.deepEqual(sending.sent(), segments(2, 4));
    await sending.ack(1, 5);
    assert.deepEqual(sending.sent(), ['DATA 5']);
  });

  it('is nothing for an ACK that is older, or of a smaller window', async () => {
    const sending = new Sending(100);
    await sending.run(0);
    await sending.ack(1, 65);
    await sending.ack(65, 70);
    sending.sent();
    await sending.ack(64, 90);
    await sending.ack(66, 69);
    assert.deepEqual(sending.sent(), []);
    // The same one again shows that the next has got lost, once.
    await sending.ack(65, 70);
    await sending.ack(65, 70);
    assert.deepEqual(sending.sent(), ['DATA 66']);
    assert.deepEqual(sending.results, []);
  });

  it('is what an ACK shows to be missing, once, in front of what is new', async () => {
    const sending = new Sending(100);
    await sending.run(0);
    await sending.ack(1, 20);
    sending.sent();
    await sending.ack(5, 22);
    assert.deepEqual(sending.sent(), ['DATA 6', 'DATA 21', 'DATA 22']);
    await sending.ack(5, 22);
    assert.deepEqual(sending.sent(), []);
    await sending.ack(8, 22);
    assert.deepEqual(sending.sent(), ['DATA 9']);
    // Up to the highest that has gone out: nothing is missing.
    await sending.ack(22, 23);
    assert.deepEqual(sending.sent(), ['DATA 23']);
    assert.equal(sending.counters.segmentsResent, 2);
  });

  it('is not again what is on QP1 at that time, or has been acknowledged since', async () => {
    const sending = new Sending(40);
    const { qp1 } = sending.rmpp.pair.a;
    await sending.run(0);
    qp1.holdCompletions = true;
    await sending.ack(1, 17);
    await sending.ack(9, 17);
    qp1.releaseCompletions();
    await sending.run(0);
    assert.deepEqual(sending.sent(), segments(1, 17));
    qp1.holdCompletions = true;
    await sending.ack(10, 40);
    await sending.ack(12, 40);
    await sending.ack(14, 40);
    qp1.releaseCompletions();
    await sending.run(0);
    // 13 is missing no more when there is room for it.
    assert.deepEqual(sending.sent(), [
      'DATA 11',
      ...segments(18, 32),
      'DATA 15',
      ...segments(33, 40),
    ]);
  });

  it('goes on behind what is acknowledged, though it has not been sent', async () => {
    const sending = new Sending(40);
    const { qp1 } = sending.rmpp.pair.a;
    await sending.run(0);
    qp1.holdCompletions = true;
    await sending.ack(1, 40);
    sending.sent();
    await sending.ack(30, 40);
    qp1.releaseCompletions();
    await sending.run(0);
    assert.deepEqual(sending.sent(), segments(31, 40));
  });
});

describe('RMPP: a sender that hears nothing', () => {
  it('asks after 100 ms, then twice as late each time; two seconds cost a retry', async () => {
    const sending = new Sending(3, { retries: 1 });
    await sending.run(10_000 * MS);
    const times = [0, 100, 300, 700, 1500, 2000, 3600];
    assert.deepEqual(sending.sentAtMs(), [
      ...times.map((ms) => `DATA 1: ${ms}`),
      'ABORT 126: 4000',
    ]);
    assert.deepEqual(sending.results, ['RESP_TIMEOUT_ERR ask']);
  });

  it('has the timeout of the send instead where that is shorter', async () => {
    for (const [timeoutUs, endMs] of [
      [60 * MS, 60],
      [5_000 * MS, 2000],
    ] as const) {
      const sending = new Sending(3, { timeoutUs, retries: 0 });
      await sending.run(10_000 * MS);
      assert.equal(sending.sentAtMs().at(-1), `ABORT 126: ${endMs}`);
      assert.deepEqual(sending.results, ['RESP_TIMEOUT_ERR ask']);
    }
  });

  it('asks after four round trips once it knows them: for the oldest and the newest', async () => {
    const sending = new Sending(100);
    await sending.run(50 * MS);
    await sending.ack(1, 65);
    sending.sent();
    await sending.run(700 * MS);
    const [first, second, ...rest] = [50 + 200, 50 + 600, 50 + 1400];
    assert.deepEqual(sending.sentAtMs(), [
      `DATA 2: ${first}`,
      `DATA 65: ${first}`,
      `DATA 2: ${second}`,
      `DATA 65: ${second}`,
    ]);
    assert.equal(rest.length, 1);
    // An ACK has it begin anew; behind a probe it tells nothing of the round trip.
    await sending.ack(65, 66);
    sending.sent();
    await sending.run(200 * MS);
    assert.deepEqual(sending.sentAtMs(), [`DATA 66: ${750 + 200}`]);
  });

  it('has the mean of the round trips, and asks no sooner than after 20 ms', async () => {
    const sending = new Sending(100);
    await sending.run(80 * MS);
    await sending.ack(1, 2);
    await sending.run(16 * MS);
    await sending.ack(2, 3);
    sending.sent();
    // (7 * 80 + 16) / 8 = 72 ms.
    await sending.run(288 * MS - 1);
    assert.deepEqual(sending.sent(), []);
    await sending.run(1);
    assert.deepEqual(sending.sent(), ['DATA 3']);
    const quick = new Sending(100);
    await quick.run(1 * MS);
    await quick.ack(1, 2);
    quick.sent();
    await quick.run(20 * MS);
    assert.deepEqual(quick.sentAtMs(), ['DATA 2: 21']);
  });

  it('takes no round trip from an ACK of what has gone out twice', async () => {
    const retried = new Sending(100);
    await retried.run(50 * MS);
    await retried.ack(1, 65);
    // All of the window again, at a retry after 2 s; then the ACK of the first time.
    await retried.run(2001 * MS);
    await retried.ack(65, 66);
    retried.sent();
    await retried.run(200 * MS);
    assert.deepEqual(retried.sentAtMs(), [`DATA 66: ${50 + 2001 + 200}`]);
    const missing = new Sending(100);
    await missing.run(50 * MS);
    await missing.ack(1, 20);
    await missing.run(50 * MS);
    await missing.ack(5, 20);
    assert.deepEqual(missing.sent().slice(-1), ['DATA 6']);
    await missing.run(1 * MS);
    await missing.ack(20, 21);
    assert.deepEqual(missing.sent(), ['DATA 21']);
    await missing.run(200 * MS);
    assert.deepEqual(missing.sentAtMs(), [`DATA 21: ${101 + 200}`]);
    // What has gone out once tells it again.
    await missing.ack(21, 22);
    await missing.run(80 * MS);
    await missing.ack(22, 23);
    missing.sent();
    // (7 * 50 + 80) / 8 = 53.75 ms.
    await missing.run(215 * MS - 1);
    assert.deepEqual(missing.sent(), []);
    await missing.run(1);
    assert.deepEqual(missing.sent(), ['DATA 23']);
  });

  it('takes none from an ACK that acknowledges nothing new', async () => {
    const sending = new Sending(100);
    await sending.run(50 * MS);
    await sending.ack(1, 1);
    await sending.run(1 * MS);
    await sending.ack(1, 2);
    sending.sent();
    await sending.run(200 * MS);
    assert.deepEqual(sending.sentAtMs(), [`DATA 2: ${51 + 200}`]);
  });

  it('sends all that is not acknowledged again at a retry', async () => {
    const sending = new Sending(10, { timeoutUs: 90 * MS, retries: 1 });
    await sending.run(0);
    await sending.ack(1, 5);
    await sending.ack(2, 5);
    sending.sent();
    await sending.run(90 * MS);
    assert.deepEqual(sending.sentAtMs().slice(-3), ['DATA 3: 90', 'DATA 4: 90', 'DATA 5: 90']);
    const { segmentsSent, segmentsResent } = sending.counters;
    assert.equal(segmentsSent - segmentsResent, 5);
  });

  it('has all its retries again, and all the time, when an ACK brings it on', async () => {
    const sending = new Sending(10, { timeoutUs: 60 * MS, retries: 1 });
    await sending.run(110 * MS);
    await sending.ack(1, 2);
    await sending.run(119 * MS);
    assert.deepEqual(sending.results, []);
    await sending.run(2 * MS);
    assert.deepEqual(sending.results, ['RESP_TIMEOUT_ERR ask']);
    assert.equal(sending.sentAtMs().at(-1), 'ABORT 126: 230');
  });

  it('is brought on by an ACK that opens no window, and asks by what is there', async () => {
    const sending = new Sending(10, { retries: 0 });
    await sending.run(0);
    await sending.ack(1, 3);
    await sending.run(1_500 * MS);
    await sending.ack(3, 3);
    sending.sent();
    await sending.run(1_999 * MS);
    assert.deepEqual(sending.results, []);
    assert.deepEqual(new Set(sending.sent()), new Set(['DATA 3']));
    await sending.ack(3, 5);
    assert.deepEqual(sending.sent(), segments(4, 5));
  });

  it('asks after 100 ms as long as it knows no round trip', async () => {
    const sending = new Sending(10);
    await sending.run(150 * MS);
    await sending.ack(1, 2);
    sending.sent();
    await sending.run(100 * MS - 1);
    assert.deepEqual(sending.sent(), []);
    await sending.run(1);
    assert.deepEqual(sending.sent(), ['DATA 2']);
  });

  it('sends nothing twice at a retry that an ACK has overtaken', async () => {
    const sending = new Sending(40, { timeoutUs: 90 * MS, retries: 1 });
    const { qp1 } = sending.rmpp.pair.a;
    await sending.run(0);
    await sending.ack(1, 40);
    await sending.run(90 * MS - 1);
    sending.sent();
    qp1.holdCompletions = true;
    await sending.run(1);
    assert.deepEqual(sending.sent(), segments(2, 17));
    await sending.ack(30, 40);
    qp1.releaseCompletions();
    await sending.run(0);
    assert.deepEqual(sending.sent(), segments(31, 40));
  });

  it('is not brought on by an ACK that brings nothing', async () => {
    const sending = new Sending(10, { timeoutUs: 60 * MS, retries: 0 });
    await sending.run(0);
    await sending.ack(1, 2);
    await sending.run(30 * MS);
    await sending.ack(1, 2);
    await sending.ack(1, 2);
    await sending.run(35 * MS);
    assert.deepEqual(sending.results, []);
    await sending.ack(1, 2);
    await sending.run(26 * MS);
    assert.deepEqual(sending.results, ['RESP_TIMEOUT_ERR ask']);
  });
});

describe('RMPP: the end of a sending', () => {
  it('is at an ACK of what it does not have, or has not allowed: ABORT 123', async () => {
    for (const [segment, window, isEnd] of [
      [10, 70, false],
      [11, 70, true],
      [8, 70, true],
      [7, 70, false],
    ] as const) {
      const sending = new Sending(10);
      await sending.run(0);
      await sending.ack(1, segment < 9 ? 7 : 70);
      sending.sent();
      await sending.ack(segment, window);
      const expected = isEnd ? ['ABORT 123'] : segment === 7 ? segments(8, 10) : [];
      assert.deepEqual(sending.sent(), expected, String(segment));
      const result = isEnd ? ['REM_ABORT_ERR 123 ask'] : segment === 7 ? [] : ['SUCCESS ask'];
      assert.deepEqual(sending.results, result, String(segment));
    }
  });

  it('turns the direction where a response is awaited, whenever the last ACK comes', async () => {
    const sending = new Sending(2, { timeoutUs: 500 * MS });
    await sending.run(0);
    await sending.ack(1, 65);
    sending.sent();
    await sending.ack(2, 65);
    assert.deepEqual(sending.sent(), ['ACK 0 1']);
    await sending.ack(1, 65);
    assert.deepEqual(sending.sent(), []);
    // Whatever its window; but not for segments that it does not have.
    await sending.ack(2, 64);
    assert.deepEqual(sending.sent(), ['ACK 0 1']);
    await sending.ack(3, 65);
    assert.deepEqual(sending.sent(), []);
    await sending.run(1_000 * MS);
    assert.deepEqual(sending.results, ['RESP_TIMEOUT_ERR ask']);
    await sending.ack(2, 65);
    assert.deepEqual(sending.sent(), []);
  });

  it('does not turn the direction where none is', async () => {
    const sending = new Sending(2);
    await sending.run(0);
    await sending.ack(1, 65);
    await sending.ack(2, 65);
    await sending.ack(2, 65);
    assert.deepEqual(sending.sent(), segments(1, 2));
    assert.deepEqual(sending.results, ['SUCCESS ask']);
  });

  it('waits for what is on QP1, and takes back what waits for room', async () => {
    const ways: Readonly<Record<string, (sending: Sending) => unknown>> = {
      'REM_ABORT_ERR 127 ask': (sending) => sending.hear(RMPP_TYPE.ABORT, 0, 0, 127),
      'REM_ABORT_ERR 1 ask': (sending) => sending.hear(RMPP_TYPE.STOP, 0, 0, 1),
      'WR_FLUSH_ERR ask': ({ rmpp, handle }) => rmpp.asker.agent.cancel(handle),
      'SUCCESS ask': (sending) => sending.ack(60, 60),
    };
    for (const [result, end] of Object.entries(ways)) {
      const sending = new Sending(60, { sendDepth: 4 });
      const { qp1 } = sending.rmpp.pair.a;
      await sending.run(0);
      qp1.holdCompletions = true;
      await sending.ack(1, 60);
      assert.deepEqual(sending.sent(), ['DATA 1', ...segments(2, 5)]);
      await end(sending);
      await sending.run(0);
      assert.deepEqual(sending.results, [], result);
      // It is decided: what the peer says now changes nothing.
      await sending.hear(RMPP_TYPE.ABORT, 0, 0, 118);
      qp1.releaseCompletions();
      await sending.run(0);
      assert.deepEqual(sending.results, [result]);
      assert.deepEqual(sending.sent(), []);
      await sending.rmpp.assertNothingHeld();
    }
  });

  it('is without a word when the response comes before the last ACK', async () => {
    const sending = new Sending(10, { timeoutUs: 500 * MS });
    await sending.run(0);
    await sending.ack(1, 5);
    sending.sent();
    const { rmpp } = sending;
    rmpp.inject(controlOf(replyTo(sending.mad, RMPP_DATA), { flags: 0 }), 'asker');
    await sending.run(0);
    assert.deepEqual(sending.results, ['SUCCESS ask']);
    assert.deepEqual(sending.sent(), []);
    assert.equal(rmpp.pair.world.activeTimers, 0);
  });

  it('has no reason of the peer where it is cancelled besides', async () => {
    const sending = new Sending(10);
    const { pair, asker } = sending.rmpp;
    await sending.run(0);
    pair.a.qp1.holdCompletions = true;
    await sending.ack(1, 5);
    await sending.hear(RMPP_TYPE.ABORT, 0, 0, 127);
    asker.agent.cancel(sending.handle);
    pair.a.qp1.releaseCompletions();
    await sending.run(0);
    assert.deepEqual(sending.results, ['WR_FLUSH_ERR ask']);
  });

  it('is told to the peer when it is cancelled; not when the agent unregisters', async () => {
    for (const unregisters of [false, true]) {
      const sending = new Sending(10);
      await sending.run(0);
      await sending.ack(1, 5);
      sending.sent();
      const { agent } = sending.rmpp.asker;
      let isOver = false;
      if (unregisters) void agent.unregister().then(() => (isOver = true));
      else agent.cancel(sending.handle);
      assert.deepEqual(sending.results, []);
      await sending.run(10);
      assert.deepEqual(sending.sent(), unregisters ? [] : ['ABORT 127']);
      assert.deepEqual(sending.results, ['WR_FLUSH_ERR ask']);
      assert.equal(isOver, unregisters);
      assert.equal(sending.rmpp.pair.world.activeTimers, 0);
    }
  });

  it('has the status of the work request that has failed, and nothing goes behind it', async () => {
    const sending = new Sending(10);
    const { qp1 } = sending.rmpp.pair.a;
    await sending.run(0);
    qp1.holdCompletions = true;
    qp1.sendStatuses.push(WcStatus.SUCCESS, WcStatus.LOC_PROT_ERR);
    await sending.ack(1, 10);
    sending.sent();
    qp1.releaseCompletions();
    await sending.run(0);
    assert.deepEqual(sending.results, ['LOC_PROT_ERR ask']);
    assert.deepEqual(sending.sent(), []);
    await sending.rmpp.assertNothingHeld();
  });

  it('is not there for segments behind the failed send of another: they go again', async () => {
    const sending = new Sending(3);
    const { pair, asker } = sending.rmpp;
    await sending.run(0);
    pair.a.qp1.holdCompletions = true;
    pair.a.qp1.sendStatuses.push(WcStatus.LOC_PROT_ERR);
    const { b } = pair;
    const data = madOf({ managementClass: 0x30, method: 3 });
    const plain = { destination: b.address, data, timeoutUs: 0, retries: 0, context: 'plain' };
    asker.agent.send(plain);
    await sending.ack(1, 3);
    sending.sent();
    pair.a.qp1.releaseCompletions();
    await sending.run(0);
    assert.deepEqual(sending.results, ['LOC_PROT_ERR plain']);
    assert.deepEqual(sending.sent(), segments(2, 3));
    await sending.ack(3, 65);
    assert.deepEqual(sending.results, ['LOC_PROT_ERR plain', 'SUCCESS ask']);
  });

  it('leaves its transaction id free, and not before it is reported', async () => {
    const sending = new Sending(2);
    const { agent } = sending.rmpp.asker;
    const destination = sending.rmpp.pair.b.address;
    const again = (): unknown =>
      agent.send({ destination, data: sending.mad, timeoutUs: 0, retries: 0 });
    await sending.run(0);
    assert.throws(again, /a transfer with this transaction id is outstanding/);
    await sending.ack(1, 2);
    await sending.ack(2, 2);
    assert.deepEqual(sending.results, ['SUCCESS ask']);
    again();
  });
});
