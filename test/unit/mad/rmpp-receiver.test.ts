/** What a receiver of transfers says, holds and remembers; and what belongs to which transfer. */
import assert from 'node:assert/strict';
import {
  type Gid,
  gidFromIp,
  type ReceivedMad,
  SpiError,
  WcStatus,
} from '../../../core/spi/index.js';
import type { MadOptions } from '../../../plugins/mad/index.js';
import { RMPP_FLAG, RMPP_TYPE, type RmppHeader } from '../../../plugins/mad/wire/rmpp-header.js';
import type { MadHeader } from '../../../core/spi/modules/mad-header.js';
import { headerOf, madOf } from '../../support/mad-pair.js';
import {
  RMPP_CLASS,
  RMPP_DATA,
  RMPP_HEADERS,
  RMPP_OUI,
  RmppPair,
  controlOf,
  describeRmpp,
  replyTo,
  transferOf,
} from '../../support/rmpp-pair.js';

const { ACTIVE, FIRST, LAST } = RMPP_FLAG;
const SECOND = 1_000_000;
const LINGER_US = 10 * SECOND;
const TOTAL_US = 40 * SECOND;
const PEER = gidFromIp('10.0.0.1');
const OTHER_PEER = gidFromIp('10.0.0.7');
/** Length that a last segment announces: the OUI, and ten bytes. */
const LAST_LENGTH = 14;

interface Segment extends Partial<RmppHeader> {
  readonly header?: Partial<MadHeader>;
  readonly from?: Gid;
}

/** A node that hears what the test says, and whose answers get nowhere. */
class Receiving {
  readonly rmpp: RmppPair;
  private said = 0;

  constructor(b: MadOptions = {}) {
    this.rmpp = new RmppPair({ b });
    this.rmpp.pair.network.fate = () => [];
  }

  get node(): RmppPair['pair']['b'] {
    return this.rmpp.pair.b;
  }

  get received(): readonly Uint8Array[] {
    return this.rmpp.answerer.received;
  }

  get held(): { readonly bytesHeld: number; readonly transfersHeld: number } {
    const { bytesHeld, transfersHeld } = this.node.mad.rmppAllowance;
    return { bytesHeld, transfersHeld };
  }

  /** DATA of a number, unless more is said; returns what is answered. */
  async hear(
    segmentNumber: number,
    { header, from = PEER, ...rmpp }: Segment = {},
  ): Promise<string> {
    const ids = { transactionIdHi: 0xbeef, transactionIdLo: 7 };
    const mad = madOf({ managementClass: RMPP_CLASS, method: 3, ...ids, ...header });
    mad.set([RMPP_OUI >>> 16, (RMPP_OUI >>> 8) & 0xff, RMPP_OUI & 0xff], 37);
    mad.fill(segmentNumber, RMPP_HEADERS);
    const flags = ACTIVE | (segmentNumber === 1 ? FIRST : 0);
    const { device, address } = this.node;
    device.receive(controlOf(mad, { segmentNumber, flags, ...rmpp }), from, address.gid);
    await this.run(0);
    return this.answers();
  }

  last(segmentNumber: number, more: Segment = {}): Promise<string> {
    const flags = ACTIVE | LAST | (segmentNumber === 1 ? FIRST : 0);
    return this.hear(segmentNumber, { flags, payloadLengthOrNewWindowLast: LAST_LENGTH, ...more });
  }

  run(durationUs: number): Promise<void> {
    return this.rmpp.pair.world.runFor(durationUs);
  }

  /** What has been sent since this was asked the last time. */
  answers(): string {
    const { carried } = this.rmpp;
    return carried.slice(this.said, (this.said = carried.length)).join();
  }
}

describe('RMPP: what a receiver says', () => {
  it('is an ACK of the window, of each hole once, and of what comes again', async () => {
    const receiving = new Receiving();
    const dialogue: [segment: number, answer: string][] = [
      [1, 'ACK 1 65'],
      [2, ''],
      // 3 is missing: it is told once.
      [4, 'ACK 2 65'],
      [5, ''],
      // It has come again from before the hole, and from behind it.
      [2, 'ACK 2 65'],
      [4, ''],
      // The hole is filled; the next one begins where this ACK has ended.
      [3, 'ACK 5 65'],
      [7, ''],
      [6, 'ACK 7 65'],
      [8, ''],
      [10, 'ACK 8 65'],
      // Beyond the window.
      [66, ''],
    ];
    for (const [at, [segment, answer]] of dialogue.entries()) {
      assert.equal(await receiving.hear(segment), answer, `${at}: ${segment}`);
    }
    await receiving.hear(9);
    for (let segment = 11; segment < 65; segment++) {
      assert.equal(await receiving.hear(segment), '', String(segment));
    }
    assert.equal(await receiving.hear(65), 'ACK 65 129');
    const { segmentsReceived, segmentsDropped } = receiving.node.mad.rmppCounters;
    assert.equal(segmentsReceived, dialogue.length + 1 + 55);
    // 2 and 4 came again, 66 too soon.
    assert.equal(segmentsDropped, 3);
  });

  it('is an ACK as the window fills from behind', async () => {
    const receiving = new Receiving({ receiveDepth: 24 });
    assert.equal(await receiving.hear(1), 'ACK 1 4');
    assert.equal(await receiving.hear(4), 'ACK 1 4');
    assert.equal(await receiving.hear(3), '');
    assert.equal(await receiving.hear(2), 'ACK 4 7');
  });

  it('is the ACK of all, once more whenever one of it comes again, for ten seconds', async () => {
    const receiving = new Receiving();
    await receiving.hear(1);
    assert.equal(await receiving.last(2), 'ACK 2 65');
    assert.equal(receiving.received.length, 1);
    await receiving.run(LINGER_US - 1);
    assert.equal(await receiving.hear(1), 'ACK 2 65');
    assert.equal(await receiving.last(2), 'ACK 2 65');
    assert.equal(receiving.received.length, 1);
    assert.deepEqual(receiving.held, { bytesHeld: 0, transfersHeld: 0 });
    await receiving.run(2);
    assert.equal(receiving.rmpp.pair.world.activeTimers, 0);
    assert.equal(await receiving.last(2), '');
    assert.equal(await receiving.last(1), 'ACK 1 1');
    assert.equal(receiving.received.length, 2);
    const { transfersReceived, transfersRefused } = receiving.node.mad.rmppCounters;
    assert.deepEqual([transfersReceived, transfersRefused], [2, 0]);
  });

  it('is ABORT 118 after 40 seconds, however much comes, and nothing of it is held', async () => {
    const receiving = new Receiving();
    await receiving.hear(1);
    await receiving.run(TOTAL_US - 1);
    assert.equal(await receiving.hear(2), '');
    await receiving.run(2);
    assert.equal(receiving.answers(), 'ABORT 118');
    assert.deepEqual(receiving.held, { bytesHeld: 0, transfersHeld: 0 });
    assert.equal(receiving.node.mad.rmppCounters.transfersRefused, 1);
    assert.equal(await receiving.hear(3), '');
  });

  it('is nothing to STOP and ABORT, which end it', async () => {
    for (const [type, status] of [
      [RMPP_TYPE.STOP, 1],
      [RMPP_TYPE.ABORT, 118],
      [RMPP_TYPE.ABORT, 127],
    ] as const) {
      const receiving = new Receiving();
      await receiving.hear(1);
      assert.equal(receiving.held.transfersHeld, 1);
      assert.equal(await receiving.hear(0, { type, status }), '');
      assert.deepEqual(receiving.held, { bytesHeld: 0, transfersHeld: 0 });
      assert.equal(receiving.rmpp.pair.world.activeTimers, 0);
      assert.equal(await receiving.hear(2), '');
      assert.equal(receiving.node.mad.rmppCounters.transfersRefused, 0);
    }
  });

  it('does not forget a complete transfer by STOP or ABORT', async () => {
    const receiving = new Receiving();
    await receiving.last(1);
    await receiving.hear(0, { type: RMPP_TYPE.ABORT, status: 127 });
    assert.equal(await receiving.last(1), 'ACK 1 1');
    assert.equal(receiving.received.length, 1);
  });

  it('is ABORT, and the end, where lengths contradict; STOP where there is no room', async () => {
    const rows: [Segment, string][] = [
      [{ payloadLengthOrNewWindowLast: 3, flags: ACTIVE | LAST }, 'ABORT 119'],
      [{ status: 1 }, 'ABORT 124'],
    ];
    for (const [segment, answer] of rows) {
      const receiving = new Receiving();
      await receiving.hear(1);
      assert.equal(await receiving.hear(2, segment), answer);
      // A segment that says nothing sensible is no part of the transfer.
      const ended = answer === 'ABORT 119';
      assert.equal(receiving.held.transfersHeld, ended ? 0 : 1);
      const { transfersRefused, violations, segmentsDropped } = receiving.node.mad.rmppCounters;
      assert.deepEqual([transfersRefused, violations], ended ? [1, 0] : [0, 1]);
      assert.equal(segmentsDropped, 0);
    }
    const full = new Receiving({ rmpp: { maxTransferBytes: 4096 } });
    await full.hear(1);
    assert.equal(await full.hear(40), 'STOP 1');
    assert.deepEqual(full.held, { bytesHeld: 0, transfersHeld: 0 });
    assert.equal(full.node.mad.rmppCounters.transfersRefused, 1);
    assert.equal(full.rmpp.pair.world.activeTimers, 0);
  });

  it('is STOP to the first segment of one too many, and counts it', async () => {
    const receiving = new Receiving({ rmpp: { maxTransfersPerPeer: 1 } });
    await receiving.hear(1);
    assert.equal(await receiving.hear(1, { header: { transactionIdLo: 8 } }), 'STOP 1');
    const { transfersRefused, segmentsDropped } = receiving.node.mad.rmppCounters;
    assert.deepEqual([transfersRefused, segmentsDropped], [1, 1]);
    assert.equal(await receiving.hear(1, { from: OTHER_PEER }), 'ACK 1 65');
    // As the first one ends, the same peer may begin another.
    await receiving.hear(0, { type: RMPP_TYPE.ABORT, status: 127 });
    assert.equal(await receiving.hear(1, { header: { transactionIdLo: 8 } }), 'ACK 1 65');
  });

  it('is best effort: nothing where QP1 has no room, or the peer cannot be reached', async () => {
    const busy = new Receiving({ sendDepth: 1 });
    busy.node.qp1.holdCompletions = true;
    assert.equal(await busy.hear(1), 'ACK 1 65');
    assert.equal(await busy.last(2), '');
    assert.equal(busy.received.length, 1);
    busy.node.qp1.releaseCompletions();
    await busy.run(0);
    assert.equal(busy.answers(), '');
    await busy.rmpp.assertNothingHeld();
    const unreachable = new Receiving();
    unreachable.node.device.createAddressHandle = () => {
      throw new SpiError('ENETUNREACH', 'the test');
    };
    await unreachable.hear(1);
    await unreachable.last(2);
    assert.equal(unreachable.received.length, 1);
    await unreachable.rmpp.assertNothingHeld();
  });

  it('goes again behind a failed send, unless its agent unregisters', async () => {
    for (const unregisters of [false, true]) {
      const receiving = new Receiving();
      const { qp1 } = receiving.node;
      qp1.holdCompletions = true;
      qp1.sendStatuses.push(WcStatus.LOC_PROT_ERR);
      await receiving.hear(1);
      assert.equal(await receiving.hear(3), '');
      let isOver = false;
      const { agent } = receiving.rmpp.answerer;
      if (unregisters) void agent.unregister().then(() => (isOver = true));
      await receiving.run(0);
      assert.equal(isOver, false, 'control messages on QP1 are waited for');
      qp1.releaseCompletions();
      await receiving.run(0);
      assert.equal(receiving.answers(), unregisters ? '' : 'ACK 1 65');
      assert.equal(isOver, unregisters);
    }
  });

  it('keeps no address handle behind it', async () => {
    const receiving = new Receiving({ maxIdleAddresses: 0 });
    assert.equal(await receiving.hear(1), 'ACK 1 65');
    assert.equal(receiving.node.device.addressHandles.size, 0);
  });

  it('ends with its agent: nothing is held, nothing said', async () => {
    const receiving = new Receiving();
    await receiving.hear(1);
    await receiving.last(1, { header: { transactionIdLo: 8 } });
    receiving.answers();
    await receiving.rmpp.answerer.agent.unregister();
    assert.deepEqual(receiving.held, { bytesHeld: 0, transfersHeld: 0 });
    assert.equal(receiving.rmpp.pair.world.activeTimers, 0);
    await receiving.run(TOTAL_US);
    assert.equal(receiving.answers(), '');
  });
});

describe('RMPP: what belongs to a transfer', () => {
  it('has its transaction, class version, method, address and queue pair', async () => {
    const receiving = new Receiving();
    await receiving.hear(1);
    const others: Segment[] = [
      { header: { transactionIdLo: 8 } },
      { header: { transactionIdHi: 0xbeee } },
      { header: { method: 2 } },
      { from: OTHER_PEER },
    ];
    for (const other of others) {
      const { transfersHeld } = receiving.held;
      assert.equal(await receiving.hear(2, other), '');
      assert.equal(receiving.held.transfersHeld, transfersHeld);
      assert.equal(await receiving.hear(1, other), 'ACK 1 65');
    }
    assert.equal(receiving.held.transfersHeld, 5);
    assert.equal(await receiving.last(2), 'ACK 2 65');
    assert.equal(receiving.held.transfersHeld, 4);
  });

  it('comes whole, with the headers of its first segment, and where it is from', async () => {
    const receiving = new Receiving();
    const taken: ReceivedMad[] = [];
    receiving.rmpp.onRequest = (mad) => taken.push({ ...mad, data: mad.data.slice() });
    await receiving.hear(1, { header: { attributeModifier: 5 } });
    await receiving.last(2, { header: { attributeModifier: 6 } });
    assert.equal(taken.length, 1);
    const { data, source } = taken[0]!;
    assert.equal(data.length, RMPP_HEADERS + RMPP_DATA + 10);
    assert.equal(new DataView(data.buffer).getUint32(20), 5);
    assert.ok(data.subarray(RMPP_HEADERS, RMPP_HEADERS + RMPP_DATA).every((byte) => byte === 1));
    assert.deepEqual(source.gid, PEER);
  });
});

describe('RMPP: a response in segments', () => {
  /** An agent that has asked in one MAD, and what comes back to it. */
  async function asked(timeoutUs: number): Promise<{
    rmpp: RmppPair;
    respond: (segment: number, fields?: Partial<RmppHeader>) => Promise<void>;
  }> {
    const rmpp = new RmppPair();
    rmpp.pair.network.fate = () => [];
    const request = transferOf(rmpp.asker.agent, RMPP_DATA);
    rmpp.ask(request, { timeoutUs, retries: 0 });
    await rmpp.pair.world.runFor(0);
    const respond = async (segment: number, fields: Partial<RmppHeader> = {}): Promise<void> => {
      const flags = ACTIVE | (segment === 1 ? FIRST : 0);
      const mad = replyTo(request, RMPP_DATA);
      rmpp.inject(controlOf(mad, { segmentNumber: segment, flags, ...fields }), 'asker');
      await rmpp.pair.world.runFor(0);
    };
    return { rmpp, respond };
  }

  it('has the wait begin anew as long as something new of it comes', async () => {
    const { rmpp, respond } = await asked(1_000);
    const { world } = rmpp.pair;
    await world.runFor(600);
    await respond(1);
    await world.runFor(600);
    assert.deepEqual(rmpp.asker.results, []);
    await respond(2);
    // What has come before does not count: 1000 us after the wait began for the second time.
    await world.runFor(900);
    await respond(2);
    await respond(70);
    assert.deepEqual(rmpp.asker.results, []);
    await world.runFor(1_400);
    assert.deepEqual(rmpp.asker.results, ['RESP_TIMEOUT_ERR ask']);
  });

  it('is taken while its request waits, and no longer', async () => {
    const { rmpp, respond } = await asked(1_000);
    await respond(1);
    const flags = ACTIVE | LAST;
    await respond(2, { flags, payloadLengthOrNewWindowLast: LAST_LENGTH });
    assert.deepEqual(rmpp.asker.results, ['SUCCESS ask']);
    assert.equal(rmpp.asker.received.length, 1);
    const late = await asked(1_000);
    await late.rmpp.pair.world.runFor(1_001);
    await late.respond(1);
    assert.equal(late.rmpp.pair.a.mad.rmppAllowance.transfersHeld, 0);
    assert.equal(late.rmpp.carried.length, 1);
  });

  it('goes as far before its first ACK as the turn has allowed', async () => {
    for (const [turns, sent] of [
      [[], ['DATA 1']],
      [[4], ['DATA 1', 'DATA 2', 'DATA 3', 'DATA 4']],
      [
        [4, 2],
        ['DATA 1', 'DATA 2'],
      ],
    ] as const) {
      const receiving = new Receiving();
      let request: ReceivedMad | undefined;
      receiving.rmpp.onRequest = (mad) => (request = { ...mad, data: mad.data.slice() });
      await receiving.hear(1);
      await receiving.last(2);
      assert.ok(request);
      for (const window of turns) {
        const type = RMPP_TYPE.ACK;
        await receiving.hear(0, { type, payloadLengthOrNewWindowLast: window });
      }
      // It is no turn: it acknowledges something.
      await receiving.hear(1, { type: RMPP_TYPE.ACK, payloadLengthOrNewWindowLast: 6 });
      receiving.answers();
      receiving.rmpp.answer(request, 10 * RMPP_DATA);
      await receiving.run(0);
      assert.equal(receiving.answers(), sent.join());
    }
  });

  it('is not turned to before its request is whole', async () => {
    const receiving = new Receiving();
    let request: ReceivedMad | undefined;
    receiving.rmpp.onRequest = (mad) => (request = { ...mad, data: mad.data.slice() });
    await receiving.hear(1);
    await receiving.hear(0, { type: RMPP_TYPE.ACK, payloadLengthOrNewWindowLast: 4 });
    await receiving.last(2);
    assert.ok(request);
    receiving.answers();
    receiving.rmpp.answer(request, 10 * RMPP_DATA);
    await receiving.run(0);
    assert.equal(receiving.answers(), 'DATA 1');
  });
});

describe('RMPP: what the peer says to a transfer of ours', () => {
  const CONTROLS: readonly [Partial<RmppHeader>, results: string[], said: string[]][] = [
    [{ type: RMPP_TYPE.ABORT, status: 117 }, ['REM_ABORT_ERR 124 ask'], ['ABORT 124']],
    [{ type: RMPP_TYPE.ABORT, status: 118 }, ['REM_ABORT_ERR 118 ask'], []],
    [{ type: RMPP_TYPE.ABORT, status: 127 }, ['REM_ABORT_ERR 127 ask'], []],
    [{ type: RMPP_TYPE.ABORT, status: 128 }, ['REM_ABORT_ERR 124 ask'], ['ABORT 124']],
    [{ type: RMPP_TYPE.STOP, status: 1 }, ['REM_ABORT_ERR 1 ask'], []],
    [{ type: RMPP_TYPE.STOP, status: 2 }, ['REM_ABORT_ERR 124 ask'], ['ABORT 124']],
    [{ type: RMPP_TYPE.ACK, status: 1 }, ['REM_ABORT_ERR 124 ask'], ['ABORT 124']],
    [{ type: 5 }, ['REM_ABORT_ERR 121 ask'], ['ABORT 121']],
    [{ type: 0 }, ['REM_ABORT_ERR 121 ask'], ['ABORT 121']],
    [{ version: 2, type: RMPP_TYPE.ACK }, ['REM_ABORT_ERR 125 ask'], ['ABORT 125']],
    // DATA is about a transfer of the peer's.
    [{ type: RMPP_TYPE.DATA, status: 1 }, [], ['ABORT 124']],
    [{ type: RMPP_TYPE.DATA, segmentNumber: 1 }, [], ['ABORT 120']],
    [{ type: RMPP_TYPE.DATA, segmentNumber: 2 }, [], []],
  ];
  for (const [fields, results, said] of CONTROLS) {
    const { type, status = 0, segmentNumber = 0, version = 1 } = fields;
    it(`type ${type}, status ${status}, segment ${segmentNumber}, version ${version}`, async () => {
      const rmpp = new RmppPair();
      rmpp.pair.network.fate = () => [];
      const mad = transferOf(rmpp.asker.agent, 10 * RMPP_DATA, { method: 3 });
      rmpp.ask(mad);
      await rmpp.pair.world.runFor(0);
      rmpp.inject(controlOf(replyTo(mad, RMPP_DATA), fields), 'asker');
      await rmpp.pair.world.runFor(0);
      assert.deepEqual(rmpp.asker.results, results);
      assert.deepEqual(rmpp.carried.slice(1), said);
      assert.equal(rmpp.pair.a.mad.rmppCounters.violations, said.length);
      for (const { data } of rmpp.pair.network.carried.slice(1)) {
        // Towards the peer: the response bit is that of our transfer.
        assert.equal(headerOf(data).method, 3);
      }
    });
  }

  it('counts for the transfer with its transaction and peer, and its direction', async () => {
    const rmpp = new RmppPair();
    rmpp.pair.network.fate = () => [];
    const mad = transferOf(rmpp.asker.agent, 10 * RMPP_DATA, { method: 3 });
    rmpp.ask(mad);
    await rmpp.pair.world.runFor(0);
    const abort = { type: RMPP_TYPE.ABORT, status: 127 };
    const { a, b } = rmpp.pair;
    a.device.receive(controlOf(replyTo(mad, RMPP_DATA), abort), OTHER_PEER, a.address.gid);
    const other = transferOf(rmpp.asker.agent, RMPP_DATA, { method: 3, transaction: 2 });
    rmpp.inject(controlOf(replyTo(other, RMPP_DATA), abort), 'asker');
    await rmpp.pair.world.runFor(0);
    assert.deepEqual(rmpp.asker.results, []);
    a.device.receive(controlOf(replyTo(mad, RMPP_DATA), abort), b.address.gid, a.address.gid);
    await rmpp.pair.world.runFor(0);
    assert.deepEqual(rmpp.asker.results, ['REM_ABORT_ERR 127 ask']);
    assert.deepEqual(rmpp.pair.network.carried.map(describeRmpp), ['DATA 1']);
  });
});
