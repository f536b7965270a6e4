/** RMPP on the wire (Linux, mad_rmpp.c): exact bytes, violations and their codes, strangers. */
import assert from 'node:assert/strict';
import { RMPP_FLAG, RMPP_TYPE } from '../../../plugins/mad/wire/rmpp-header.js';
import { SeededRandom } from '../../../providers/mock/index.js';
import { MadPair, madOf } from '../../support/mad-pair.js';
import {
  RMPP_CLASS,
  RMPP_DATA,
  RMPP_OUI,
  RmppPair,
  controlOf,
  replyTo,
  transferOf,
} from '../../support/rmpp-pair.js';

const hex = (bytes: Uint8Array | undefined): string => Buffer.from(bytes ?? []).toString('hex');
const { ACTIVE, FIRST, LAST } = RMPP_FLAG;

/** A transfer of the peer's: its own transaction, to a method that the answerer has. */
function stranger(segmentNumber: number, rmpp: object = {}, transaction = 7): Uint8Array {
  const mad = madOf({
    managementClass: RMPP_CLASS,
    method: 3,
    transactionIdHi: 0xbeef,
    transactionIdLo: transaction,
  });
  mad.set([RMPP_OUI >>> 16, (RMPP_OUI >>> 8) & 0xff, RMPP_OUI & 0xff], 37);
  const flags = ACTIVE | (segmentNumber === 1 ? FIRST : 0);
  return controlOf(mad, { segmentNumber, flags, ...rmpp });
}

describe('RMPP: bytes', () => {
  it('has the first segment, its ACK, the last segment and the turn as the page says', async () => {
    const rmpp = new RmppPair();
    rmpp.onRequest = (request) => void rmpp.answer(request, 0);
    const mad = transferOf(rmpp.asker.agent, RMPP_DATA + 1, { transaction: 0x01020304 });
    mad.fill(0xaa, 40);
    rmpp.ask(mad, { timeoutUs: 100_000 });
    await rmpp.pair.world.runFor(1_000);
    const tid = `00${rmpp.asker.agent.hiTid.toString(16).padStart(6, '0')}01020304`;
    const [first, ack, last, lastAck, turn] = rmpp.pair.network.carried.map(({ data }) => data);
    const header = (method: string): string => `013001${method}00000000${tid}0020000000000000`;
    const tail = (bytes: Uint8Array | undefined): string => hex(bytes?.subarray(36));
    const data = `000d0a0b${'aa'.repeat(216)}`;
    const empty = `000d0a0b${'00'.repeat(216)}`;
    // Version 1, DATA, no response time | active | first, status 0, segment 1, 2 * 220 - 215 bytes.
    assert.equal(hex(first?.subarray(0, 36)), `${header('01')}0101fb0000000001000000e1`);
    assert.equal(tail(first), data);
    // Get and response bit; ACK of 1, up to 1 + 64; the OUI again, or nobody could route it.
    assert.equal(hex(ack?.subarray(0, 36)), `${header('81')}0102f9000000000100000041`);
    assert.equal(tail(ack), empty);
    assert.equal(hex(last?.subarray(0, 36)), `${header('01')}0101fd000000000200000005`);
    assert.equal(tail(last), `000d0a0baa${'00'.repeat(215)}`);
    assert.equal(hex(lastAck?.subarray(0, 36)), `${header('81')}0102f9000000000200000041`);
    const turned = rmpp.carried.indexOf('ACK 0 1');
    assert.ok(turned > 3 && turn);
    const turnBytes = rmpp.pair.network.carried[turned]?.data;
    assert.equal(hex(turnBytes?.subarray(0, 36)), `${header('01')}0102f9000000000000000001`);
  });

  it('sends ABORT with the response bit turned, status, and nothing else', async () => {
    const rmpp = new RmppPair();
    rmpp.inject(stranger(2, { flags: ACTIVE | FIRST }));
    await rmpp.pair.world.runFor(100);
    const bytes = rmpp.pair.network.carried[0]?.data;
    assert.equal(
      hex(bytes?.subarray(0, 40)),
      '013001830000000000' +
        '00beef00000007' +
        '0020000000000000' +
        '0104f9780000000000000000' +
        '000d0a0b',
    );
  });
});

describe('RMPP: violations', () => {
  const answers = async (...mads: Uint8Array[]): Promise<string[]> => {
    const rmpp = new RmppPair();
    for (const mad of mads) {
      rmpp.inject(mad);
      await rmpp.pair.world.runFor(100);
    }
    const { carried } = rmpp;
    assert.deepEqual(rmpp.answerer.received, []);
    rmpp.pair.network.fate = () => [];
    await rmpp.assertNothingHeld();
    return carried;
  };

  const ROWS: readonly [string, string, ...Uint8Array[]][] = [
    ['another version', 'ABORT 125', stranger(1, { version: 2 })],
    ['an unknown type', 'ABORT 121', stranger(1, { type: 9 })],
    ['DATA with a status', 'ABORT 124', stranger(1, { status: 3 })],
    ['segment 1 without "first"', 'ABORT 120', stranger(1, { flags: ACTIVE })],
    ['"first" on another segment', 'ABORT 120', stranger(2, { flags: ACTIVE | FIRST })],
    [
      'a last segment of 221 bytes',
      'ABORT 119',
      stranger(1, { flags: ACTIVE | FIRST | LAST, payloadLengthOrNewWindowLast: 221 }),
    ],
    [
      'a last segment that has not even the OUI',
      'ABORT 119',
      stranger(1, { flags: ACTIVE | FIRST | LAST, payloadLengthOrNewWindowLast: 3 }),
    ],
    [
      'fewer segments than announced',
      'ABORT 119',
      stranger(1, { payloadLengthOrNewWindowLast: 700 }),
      stranger(2, { flags: ACTIVE | LAST, payloadLengthOrNewWindowLast: 40 }),
    ],
    [
      'more segments than announced',
      'ABORT 119',
      stranger(1, { payloadLengthOrNewWindowLast: 300 }),
      stranger(2),
    ],
    [
      'a segment behind the last',
      'ABORT 119',
      stranger(1),
      stranger(3, { flags: ACTIVE | LAST, payloadLengthOrNewWindowLast: 40 }),
      stranger(4),
    ],
    ['ACK with a status', 'ABORT 124', stranger(1, { type: RMPP_TYPE.ACK, status: 1 })],
    ['ACK beyond its window', 'ABORT 122', stranger(2, { type: RMPP_TYPE.ACK })],
    [
      'STOP with a status of ABORT',
      'ABORT 124',
      stranger(0, { type: RMPP_TYPE.STOP, status: 120 }),
    ],
    [
      'ABORT with no status of ABORT',
      'ABORT 124',
      stranger(0, { type: RMPP_TYPE.ABORT, status: 1 }),
    ],
  ];
  for (const [name, expected, ...mads] of ROWS) {
    it(`${name}: ${expected}`, async () => {
      assert.equal((await answers(...mads)).at(-1), expected);
    });
  }

  it('is silent where nothing is wrong but nobody is concerned', async () => {
    const silent = [
      stranger(5),
      stranger(0),
      stranger(3, { type: RMPP_TYPE.ACK, payloadLengthOrNewWindowLast: 9 }),
      stranger(0, { type: RMPP_TYPE.ABORT, status: 127 }),
      stranger(0, { type: RMPP_TYPE.STOP, status: 1 }),
    ];
    assert.deepEqual(await answers(...silent), []);
  });

  it('ends our transfer by an ACK that makes no sense, and says why', async () => {
    for (const [segment, window, status] of [
      [9, 70, 123],
      [2, 70, 123],
      [1, 0, 122],
    ] as const) {
      const rmpp = new RmppPair();
      const mad = transferOf(rmpp.asker.agent, 1_000, { method: 3 });
      rmpp.pair.network.fate = () => [];
      rmpp.ask(mad);
      await rmpp.pair.world.runFor(10);
      const ack = {
        type: RMPP_TYPE.ACK,
        segmentNumber: segment,
        payloadLengthOrNewWindowLast: window,
      };
      rmpp.inject(controlOf(replyTo(mad, 216), ack), 'asker');
      await rmpp.pair.world.runFor(10);
      assert.deepEqual(rmpp.asker.results, [`REM_ABORT_ERR ${status} ask`]);
      assert.equal(rmpp.carried.at(-1), `ABORT ${status}`);
      await rmpp.assertNothingHeld();
    }
  });

  it('takes no notice of old ACKs', async () => {
    const rmpp = new RmppPair();
    const mad = transferOf(rmpp.asker.agent, 100 * RMPP_DATA, { method: 3 });
    rmpp.pair.network.fate = ({ data }) => (data[25] === RMPP_TYPE.ACK ? [10, 300, 900] : [10]);
    rmpp.ask(mad);
    await rmpp.pair.world.runFor(1_000_000);
    assert.deepEqual(rmpp.asker.results, ['SUCCESS ask']);
    assert.equal(rmpp.pair.a.mad.rmppCounters.segmentsResent, 0);
  });

  it('tells the peer of a transfer that is cancelled: ABORT 127', async () => {
    const rmpp = new RmppPair();
    rmpp.pair.network.latencyUs = 100;
    const destination = rmpp.pair.b.address;
    const data = transferOf(rmpp.asker.agent, 50_000, { method: 3 });
    const send = { destination, data, timeoutUs: 0, retries: 3, context: 'ask' };
    const handle = rmpp.asker.agent.send(send);
    await rmpp.pair.world.runFor(250);
    rmpp.asker.agent.cancel(handle);
    await rmpp.pair.world.runFor(500);
    assert.deepEqual(rmpp.asker.results, ['WR_FLUSH_ERR ask']);
    assert.ok(rmpp.carried.includes('ABORT 127'));
    assert.equal(rmpp.pair.b.mad.rmppAllowance.transfersHeld, 0);
    await rmpp.assertNothingHeld();
  });

  it('refuses what nobody could acknowledge', () => {
    const rmpp = new RmppPair();
    const { agent } = rmpp.asker;
    const destination = rmpp.pair.b.address;
    const send = (data: Uint8Array) => () =>
      agent.send({ destination, data, timeoutUs: 0, retries: 0 });
    const mad = transferOf(agent, 1_000, { method: 3 });
    assert.throws(send(replyTo(mad, 1_000)), /method 131: its ACKs are of method 3/);
    assert.throws(send(mad.subarray(0, 39)), /39 bytes: 40 to/);
    const foreign = mad.slice();
    foreign[15] = 9;
    foreign[9] = (foreign[9] ?? 0) ^ 1;
    assert.throws(send(foreign), /transaction id/);
    send(mad)();
    assert.throws(send(mad), /outstanding/);
  });
});

describe('RMPP: strangers', () => {
  it('holds no more than it may, whatever is announced: STOP 1', async () => {
    const limits = { maxTransfers: 20, maxTransfersPerPeer: 8, maxTotalBytes: 100_000 };
    const rmpp = new RmppPair({ b: { rmpp: limits } });
    const { mad } = rmpp.pair.b;
    for (let i = 0; i < 100; i++) rmpp.inject(stranger(1, {}, i));
    await rmpp.pair.world.runFor(100);
    assert.equal(mad.rmppAllowance.transfersHeld, 8);
    assert.ok(mad.rmppAllowance.bytesHeld <= 8 * 4096);
    for (let i = 0; i < 100; i++) {
      const gid = rmpp.pair.a.address.gid.slice();
      gid[15] = 10 + i;
      rmpp.pair.b.device.receive(stranger(1, {}, i), gid, rmpp.pair.b.address.gid);
    }
    await rmpp.pair.world.runFor(100);
    assert.equal(mad.rmppAllowance.transfersHeld, 20);
    assert.ok(mad.rmppAllowance.bytesHeld <= 100_000);
    assert.ok(rmpp.carried.includes('STOP 1'));
    await rmpp.assertNothingHeld();
  });

  it('refuses at once what is announced to be too long, and later what becomes so', async () => {
    const rmpp = new RmppPair({ b: { rmpp: { maxTransferBytes: 20_000 } } });
    rmpp.inject(stranger(1, { payloadLengthOrNewWindowLast: 0xffffffff }));
    await rmpp.pair.world.runFor(100);
    assert.deepEqual(rmpp.carried, ['STOP 1']);
    for (let segment = 1; segment <= 100; segment++) {
      rmpp.inject(stranger(segment, {}, 8));
      await rmpp.pair.world.runFor(20);
    }
    assert.equal(rmpp.carried.at(-1), 'STOP 1');
    assert.ok(rmpp.carried.includes('ACK 65 129'));
    assert.equal(rmpp.pair.b.mad.rmppAllowance.bytesHeld, 0);
    await rmpp.assertNothingHeld();
  });

  it('reassembles no response that nobody has asked for', async () => {
    const rmpp = new RmppPair();
    const mad = stranger(1);
    mad[3] = 0x83;
    new DataView(mad.buffer).setUint32(8, rmpp.answerer.agent.hiTid);
    rmpp.inject(mad);
    await rmpp.pair.world.runFor(100);
    assert.equal(rmpp.pair.b.mad.rmppAllowance.transfersHeld, 0);
    assert.deepEqual(rmpp.carried, []);
  });

  it('remembers a bounded number of complete transfers, for ten seconds', async () => {
    const rmpp = new RmppPair({ b: { rmpp: { maxRemembered: 4 } } });
    const whole = { flags: ACTIVE | FIRST | LAST, payloadLengthOrNewWindowLast: 100 };
    for (let i = 0; i < 50; i++) {
      rmpp.inject(stranger(1, whole, i));
      await rmpp.pair.world.runFor(10);
    }
    assert.equal(rmpp.pair.world.activeTimers, 4);
    rmpp.inject(stranger(1, whole, 49));
    await rmpp.pair.world.runFor(10);
    assert.equal(rmpp.answerer.received.length, 50);
    await rmpp.pair.world.runFor(10_000_000);
    assert.equal(rmpp.pair.world.activeTimers, 0);
    rmpp.inject(stranger(1, whole, 49));
    await rmpp.assertNothingHeld();
    assert.equal(rmpp.answerer.received.length, 51);
  });

  it('survives 100,000 hostile MADs, and works afterwards', async () => {
    const rmpp = new RmppPair();
    const random = new SeededRandom(99);
    const { a, b, world, network } = rmpp.pair;
    network.fate = () => [];
    const templates = [
      stranger(1),
      stranger(2),
      stranger(1, { type: RMPP_TYPE.ACK, payloadLengthOrNewWindowLast: 70 }),
      transferOf(rmpp.answerer.agent, RMPP_DATA),
      replyTo(transferOf(rmpp.answerer.agent, RMPP_DATA), RMPP_DATA),
    ];
    for (let i = 0; i < 100_000; i++) {
      const mad = random.pick(templates).slice();
      for (let n = random.below(6); n > 0; n--) mad[random.below(45)] = random.u32();
      const length = random.percent(3) ? random.below(256) : 256;
      b.device.receive(mad.subarray(0, length), a.address.gid, b.address.gid);
      if (i % 50 === 49) await world.runFor(10);
      if (i % 5_000 === 4_999) network.carried.length = 0;
    }
    const { bytesHeld, transfersHeld } = b.mad.rmppAllowance;
    assert.ok(bytesHeld <= 32 << 20 && transfersHeld <= 32, `${bytesHeld}, ${transfersHeld}`);
    await world.runFor(51_000_000);
    assert.equal(b.mad.rmppAllowance.bytesHeld, 0);
    network.fate = () => [10];
    rmpp.onRequest = (request) => void rmpp.answer(request, 5_000);
    rmpp.ask(transferOf(rmpp.asker.agent, 5_000), { timeoutUs: 100_000 });
    await world.runFor(1_000_000);
    assert.deepEqual(rmpp.asker.results, ['SUCCESS ask']);
    await rmpp.assertNothingHeld();
  });
});

describe('RMPP: beside plain agents', () => {
  it('hands segments as they are to an agent without RMPP', async () => {
    const pair = new MadPair();
    const got: number[] = [];
    pair.b.mad.registerAgent({
      managementClass: RMPP_CLASS,
      classVersion: 1,
      oui: RMPP_OUI,
      methods: [3],
      onReceive: ({ data }) => got.push(data[31] ?? 0),
      onSend: () => undefined,
    });
    for (const segment of [1, 2]) {
      pair.b.device.receive(stranger(segment), pair.a.address.gid, pair.b.address.gid);
    }
    await pair.world.runFor(100);
    assert.deepEqual(got, [1, 2]);
    assert.deepEqual(pair.network.carried, []);
  });
});
