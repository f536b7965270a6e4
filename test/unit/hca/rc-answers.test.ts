/**
 * RC responder: what it answers and in which order, byte for byte, and the message numbers that
 * tell the requester how far it has come (IBTA 9.7.5.1).
 */
import assert from 'node:assert/strict';
import { AsyncEventType, QpState, WcStatus, WrOpcode } from '../../../core/spi/index.js';
import { drain, postReceive, postSend } from '../../support/hca-pair.js';
import {
  FIRST_PSN,
  MTU,
  OPCODE,
  ResponderScene,
  SYNDROME,
  aeth,
  hex,
} from '../../support/responder-scene.js';
import { assertSameBytes } from '../../support/same-bytes.js';
import { reth } from '../../support/request-packets.js';

const FULL = new Array<number>(MTU).fill(7);
const FOUR = [1, 2, 3, 4];
/** Packets of a READ: more than the port's arrays hold. */
const MANY = 1100;
const LONG = MANY * MTU;

class Scene extends ResponderScene {
  /** @param receives to post */
  constructor(receives = 4, depth = 4) {
    super({ maxDestRdAtomic: depth, maxRdAtomic: depth });
    this.post(receives);
    const { bytes } = this.pair.b;
    for (let i = 0; i < bytes.length; i++) bytes[i] = (i * 2654435761) >>> 24;
  }

  post(receives: number): void {
    for (let i = 0; i < receives; i++) {
      postReceive(this.pair.b, this.qpB, [{ offset: 0x80000, length: 4 * MTU }], i);
    }
  }

  send(ahead: number, asks = true): Uint8Array {
    return this.request(OPCODE.SEND_ONLY, ahead, FOUR, asks);
  }

  ack(ahead: number, msn: number): string {
    return this.acknowledgement(ahead, SYNDROME.ACK, msn);
  }

  /** A READ's answer: all of its packets, with what b has in memory there. */
  data(ahead: number, msn: number, length: number, offset = 0): string[] {
    const count = Math.ceil(length / MTU);
    const answers: string[] = [];
    for (let i = 0; i < count; i++) {
      const { READ_ONLY, READ_FIRST, READ_MIDDLE, READ_LAST } = OPCODE;
      const isLast = i === count - 1;
      const opcode = isLast ? READ_LAST : i === 0 ? READ_FIRST : READ_MIDDLE;
      const header = opcode === READ_MIDDLE ? [] : aeth(SYNDROME.ACK, msn);
      const end = offset + Math.min(length, (i + 1) * MTU);
      const head = this.answer(count === 1 ? READ_ONLY : opcode, ahead + i, header);
      const payload = this.pair.b.bytes.subarray(offset + i * MTU, end);
      answers.push(head + hex(payload));
    }
    return answers;
  }

  /** The port takes nothing while requests come, a long READ last; returns the packets ready. */
  begin(...requests: readonly Uint8Array[]): number {
    const { port, driver } = this.pair.b;
    port.sendCredit = 0;
    for (const request of requests) port.inject(request);
    driver.pump();
    const ready = driver.device.hca.tx.waiting;
    assert.ok(ready > 2 && ready < MANY, `${ready} packets are ready`);
    return ready;
  }

  /** The port takes all again; returns what it has been given. */
  goOn(): string[] {
    this.pair.b.port.sendCredit = Infinity;
    return this.hear();
  }

  statuses(): [cookie: number, status: number][] {
    return drain(this.pair.b.receiveCq).map(({ cookie, status }) => [cookie, status]);
  }
}

describe('RC: message numbers', () => {
  it('count messages, not their packets', () => {
    const here = new Scene();
    const { SEND_FIRST, SEND_MIDDLE, SEND_LAST, WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST } = OPCODE;
    const range = here.range(2 * MTU + 4, 8192);
    const requests = [
      here.request(SEND_FIRST, 0, FULL),
      here.request(SEND_MIDDLE, 1, FULL),
      here.request(SEND_LAST, 2, FOUR),
      here.request(WRITE_FIRST, 3, [...range, ...FULL]),
      here.request(WRITE_MIDDLE, 4, FULL),
      here.request(WRITE_LAST, 5, FOUR),
      here.send(6),
    ];
    const numbers = [0, 0, 1, 1, 1, 2, 3];
    for (const [ahead, request] of requests.entries()) {
      assert.deepEqual(here.say(request), [here.ack(ahead, numbers[ahead]!)], `${ahead}`);
    }
    assert.deepEqual(here.say(here.send(8)), [here.acknowledgement(7, SYNDROME.SEQUENCE, 3)]);
  });

  it('of a READ are the same in its first and its last packet, and when it is repeated', () => {
    const here = new Scene();
    here.say(here.send(0));
    const length = 3 * MTU + 8;
    const request = here.read(1, length, 64);
    const whole = here.data(1, 2, length, 64);
    assert.deepEqual(here.say(request), whole);
    assert.deepEqual(here.say(here.send(5), here.read(6, 8)), here.data(6, 4, 8));
    assert.deepEqual(here.say(request), whole);
    assert.deepEqual(here.say(here.read(3, MTU, 64 + 2 * MTU)), here.data(3, 2, MTU, 64 + 2 * MTU));
  });

  it('begin at 0 with each connection, as do PSNs', () => {
    const here = new Scene();
    here.say(here.send(0), here.read(1, 8));
    here.connectAgain();
    here.post(1);
    assert.deepEqual(here.say(here.send(0)), [here.ack(0, 1)]);
    assert.deepEqual(here.say(here.read(1, 8)), here.data(1, 2, 8));
  });
});

describe('RC: answers to one burst', () => {
  it('an acknowledgement leaves out what the answer of a READ behind it says', () => {
    const here = new Scene();
    assert.deepEqual(here.say(here.send(0), here.read(1, 8)), here.data(1, 2, 8));
  });

  it('a NAK leaves out what it says by itself', () => {
    const here = new Scene();
    const answers = here.say(here.send(0), here.send(2), here.send(1), here.send(4));
    assert.deepEqual(answers, [here.acknowledgement(2, SYNDROME.SEQUENCE, 2)]);
  });

  it('a NAK stays behind the READ before it, and before the acknowledgement behind it', () => {
    const here = new Scene();
    const answers = here.say(here.read(0, 8), here.send(2), here.send(1), here.read(2, 8));
    assert.deepEqual(answers, [
      ...here.data(0, 1, 8),
      here.acknowledgement(1, SYNDROME.SEQUENCE, 1),
      ...here.data(2, 3, 8),
    ]);
    assert.deepEqual(here.say(here.send(4), here.send(3)), [
      here.acknowledgement(3, SYNDROME.SEQUENCE, 3),
      here.ack(3, 4),
    ]);
  });

  it('are as many as it takes, in their order', () => {
    const here = new Scene(0, 32);
    here.post(32);
    const requests: Uint8Array[] = [];
    const answers: string[] = [];
    for (let i = 0; i < 32; i++) {
      const [length, offset] = [(i + 1) * 4, 128 * i];
      requests.push(here.read(2 * i, length, offset), here.send(2 * i + 2));
      requests.push(here.send(2 * i + 1));
      answers.push(...here.data(2 * i, 2 * i + 1, length, offset));
      answers.push(here.acknowledgement(2 * i + 1, SYNDROME.SEQUENCE, 2 * i + 1));
    }
    answers.push(here.ack(63, 64));
    assert.deepEqual(here.say(...requests), answers);
    assert.deepEqual(here.say(here.read(64, 8)), here.data(64, 65, 8), 'and after them');
  });

  it('are as many as it takes, behind some that have gone, and on the next connection', () => {
    const here = new Scene(0, 8);
    const first = here.read(0, 4);
    here.begin(first, here.read(1, LONG));
    const later: Uint8Array[] = [];
    const answers = [...here.data(0, 1, 4), ...here.data(1, 2, LONG)];
    for (let i = 0; i < 6; i++) {
      later.push(here.read(MANY + 1 + i, 8, 8 * i));
      answers.push(...here.data(MANY + 1 + i, 3 + i, 8, 8 * i));
    }
    here.say(...later);
    assert.deepEqual(here.goOn(), answers);
    here.connectAgain();
    const again = Array.from({ length: 7 }, (_, i) => here.read(i, 8, 8 * i));
    const expected = again.flatMap((_, i) => here.data(i, i + 1, 8, 8 * i));
    assert.deepEqual(here.say(...again), expected);
  });
});

describe('RC: more answers than may be owed', () => {
  it('have a bound: what is beyond is as good as lost, and taken in when it comes again', () => {
    // 33 may be outstanding, 64 are kept.
    const here = new Scene(0, 33);
    const nothing = here.request(OPCODE.WRITE_ONLY, 0, here.range(0));
    here.say(nothing);
    for (let i = 1; i <= 64; i++) here.say(here.read(i, 8));
    const burst: Uint8Array[] = [];
    for (let i = 1; i <= 64; i++) {
      for (const ahead of [i, i + 64]) {
        burst.push(here.read(ahead, 8), here.send(200), nothing);
      }
    }
    here.say(...burst);
    const { backlogged } = here.counters.drops;
    assert.ok(backlogged > 0 && backlogged < 200, `${backlogged} were dropped`);
    for (let i = 65; i <= 128; i++) {
      assert.deepEqual(here.say(here.read(i, 8)), here.data(i, i + 1, 8));
    }
    assert.equal(here.counters.drops.backlogged, backlogged);
  });
});

describe('RC: a READ asked for again while it is being answered', () => {
  it('goes back to where it is asked from, and on to its end', () => {
    const here = new Scene();
    const from = here.begin(here.read(0, LONG)) - 2;
    const whole = here.data(0, 1, LONG);
    const rest = LONG - from * MTU;
    here.say(here.read(from, rest, from * MTU));
    assert.deepEqual(here.goOn(), [
      ...whole.slice(0, from + 2),
      ...here.data(from, 1, rest, from * MTU),
    ]);
  });

  it('goes on as it is when what is asked for is to come', () => {
    const here = new Scene();
    const ready = here.begin(here.read(0, LONG));
    const later = [ready, ready + 1].map((i) => here.read(i, LONG - i * MTU, i * MTU));
    here.say(...later);
    assert.deepEqual(here.goOn(), here.data(0, 1, LONG));
  });
});

describe('RC: a READ at the end of 4 GiB of addresses', () => {
  it('goes on behind it, the first time and when it is asked for again', () => {
    const here = new Scene();
    const { pd, bytes } = here.pair.b;
    const from = (5n << 32n) - BigInt(2 * MTU);
    const { rkey } = pd.registerMemory(bytes, 7, from);
    const read = (ahead: number, length: number): Uint8Array => {
      const [high, low] = [from + BigInt(ahead * MTU), rkey];
      return here.request(OPCODE.READ, ahead, reth(high, low, length));
    };
    const length = 4 * MTU;
    assert.deepEqual(here.say(read(0, length)), here.data(0, 1, length));
    for (const again of [0, 1, 2, 3]) {
      const rest = length - again * MTU;
      assert.deepEqual(here.say(read(again, rest)), here.data(again, 1, rest, again * MTU));
    }
    assert.equal(here.counters.drops.replayUnknown, 0);
  });
});

describe('RC: a WRITE at the end of 4 GiB of addresses', () => {
  it('goes on behind it', () => {
    const here = new Scene();
    const { pd, bytes } = here.pair.b;
    const from = (5n << 32n) - BigInt(MTU);
    const { rkey } = pd.registerMemory(bytes.subarray(4096), 7, from);
    const packets = [1, 2, 3].map((value) => new Array<number>(MTU).fill(value));
    const range = reth(from, rkey, 3 * MTU);
    here.say(
      here.request(OPCODE.WRITE_FIRST, 0, [...range, ...packets[0]!]),
      here.request(OPCODE.WRITE_MIDDLE, 1, packets[1]!),
      here.request(OPCODE.WRITE_LAST, 2, packets[2]!),
    );
    assertSameBytes(bytes.subarray(4096, 4096 + 3 * MTU), Uint8Array.from(packets.flat()));
    assert.equal(here.qpB.state, QpState.RTS);
  });
});

describe('RC: a WRITE that is not as long as it said', () => {
  const { WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, WRITE_ONLY } = OPCODE;
  const cases: Record<string, [said: number, packets: [opcode: number, length: number][]]> = {
    'one packet too short': [8, [[WRITE_ONLY, 4]]],
    'one packet too long': [4, [[WRITE_ONLY, 8]]],
    'nothing, where something was said': [4, [[WRITE_ONLY, 0]]],
    'something, where nothing was said': [0, [[WRITE_ONLY, 4]]],
    'a first packet that is all': [MTU, [[WRITE_FIRST, MTU]]],
    'a first packet that is more': [MTU - 4, [[WRITE_FIRST, MTU]]],
    'a packet that is all, and is not the last': [
      2 * MTU,
      [
        [WRITE_FIRST, MTU],
        [WRITE_MIDDLE, MTU],
      ],
    ],
    'a last packet too short': [
      2 * MTU,
      [
        [WRITE_FIRST, MTU],
        [WRITE_LAST, 4],
      ],
    ],
    'a last packet too long': [
      MTU + 4,
      [
        [WRITE_FIRST, MTU],
        [WRITE_LAST, 8],
      ],
    ],
  };
  for (const [what, [said, packets]] of Object.entries(cases)) {
    it(`is refused, and no more of it is placed: ${what}`, () => {
      const here = new Scene(0);
      const before = here.pair.b.bytes.slice();
      const requests = packets.map(([opcode, length], i) => {
        const range = i === 0 ? here.range(said, 4096) : [];
        const payload = new Array<number>(length).fill(0xaa);
        return here.request(opcode, i, [...range, ...payload], false);
      });
      const last = packets.length - 1;
      const refusal = here.acknowledgement(last, SYNDROME.INVALID, 0);
      assert.deepEqual(here.say(...requests), [refusal]);
      assert.equal(here.qpB.state, QpState.ERR);
      before.fill(0xaa, 4096, 4096 + last * MTU);
      assertSameBytes(here.pair.b.bytes, before);
      assert.deepEqual(here.pair.b.events, [AsyncEventType.QP_REQ_ERR]);
      assert.deepEqual(here.statuses(), []);
    });
  }

  it('is refused when it says more than 2 GiB; a READ too', () => {
    for (const opcode of [WRITE_FIRST, OPCODE.READ]) {
      for (const [length, syndrome] of [
        [2 ** 31 + 1, SYNDROME.INVALID],
        [2 ** 31, SYNDROME.ACCESS],
      ] as const) {
        const here = new Scene(0);
        const payload = opcode === WRITE_FIRST ? FULL : [];
        const request = here.request(opcode, 0, [...here.range(length), ...payload]);
        assert.deepEqual(here.say(request), [here.acknowledgement(0, syndrome, 0)]);
      }
    }
  });
});

describe('RC: places of READs', () => {
  it('that have gone to others: what was asked for again is not answered, in their stead', () => {
    const here = new Scene(0);
    const requests = [0, 1, 2, 3].map((i) => here.read(i, MTU, i * MTU));
    here.say(...requests);
    const answers = here.say(requests[0]!, here.send(5), here.read(4, 8));
    assert.deepEqual(answers, [
      here.acknowledgement(4, SYNDROME.SEQUENCE, 4),
      ...here.data(4, 5, 8),
    ]);
    assert.deepEqual(here.say(requests[1]!, here.read(5, 8)), here.data(5, 6, 8));
  });
});

describe('RC: a READ whose memory goes away while it is answered', () => {
  /** Of memory that is ours alone to end. */
  const begun = (): { here: Scene; ready: number; end: () => void } => {
    const here = new Scene();
    const { pd, bytes, base } = here.pair.b;
    const region = pd.registerMemory(bytes, 7, base);
    const request = here.request(OPCODE.READ, 0, here.range(LONG, 0, region.rkey));
    const ready = here.begin(request);
    here.say(here.read(MANY, 8), here.send(MANY + 1));
    return { here, ready, end: () => region.destroy() };
  };

  it('is refused from there on, and what is owed behind it with it', () => {
    const { here, ready, end } = begun();
    end();
    const answers = here.goOn();
    const refusal = here.acknowledgement(ready, SYNDROME.ACCESS, 3);
    assert.deepEqual(answers.slice(ready), [refusal]);
    assert.equal(here.qpB.state, QpState.ERR);
    assert.deepEqual(here.pair.b.events, [AsyncEventType.QP_ACCESS_ERR]);
  });

  it('ends without a word in ERR, where what is owed behind it is answered', () => {
    const { here, ready, end } = begun();
    here.qpB.modify({ state: QpState.ERR });
    end();
    assert.deepEqual(here.goOn().slice(ready), [...here.data(MANY, 2, 8), here.ack(MANY + 1, 3)]);
    assert.deepEqual(here.pair.b.events, []);
  });
});

describe('RC: a receive that is missing', () => {
  const MIN_RNR_TIMER = 1;
  const NOT_READY = 0x20 | MIN_RNR_TIMER;

  it('is told once, and what is in flight behind it is no gap', () => {
    const here = new Scene(0);
    const answers = here.say(here.send(0), here.send(1), here.send(2));
    assert.deepEqual(answers, [here.acknowledgement(0, NOT_READY, 0)]);
    const { drops } = here.counters;
    assert.deepEqual([drops.noReceive, drops.sequenceGap], [1, 2]);
    assert.equal(here.qpB.lacksReceive, true);
    here.post(3);
    assert.deepEqual(here.say(here.send(0), here.send(1), here.send(2)), [here.ack(2, 3)]);
    assert.equal(here.qpB.lacksReceive, false);
  });

  it('is told again each time that the message comes, and of the next message', () => {
    const here = new Scene(1);
    assert.deepEqual(here.say(here.send(0), here.send(1)), [here.acknowledgement(1, NOT_READY, 1)]);
    assert.deepEqual(here.say(here.send(1)), [here.acknowledgement(1, NOT_READY, 1)]);
    assert.equal(here.counters.drops.noReceive, 2);
    assert.equal(here.counters.rnrNaksSent, 2);
  });

  it('is told of a WRITE with immediate data, of which nothing is placed then', () => {
    const here = new Scene(0);
    const before = here.pair.b.bytes.slice(0, 64);
    const rest = [...here.range(4), ...[0, 0, 0, 5], ...[9, 9, 9, 9]];
    const request = here.request(OPCODE.WRITE_ONLY_IMMEDIATE, 0, rest);
    assert.deepEqual(here.say(request), [here.acknowledgement(0, NOT_READY, 0)]);
    assert.deepEqual(here.pair.b.bytes.slice(0, 64), before);
    here.post(1);
    assert.deepEqual(here.say(request), [here.ack(0, 1)]);
    assert.deepEqual([...here.pair.b.bytes.subarray(0, 4)], [9, 9, 9, 9]);
    const [done] = drain(here.pair.b.receiveCq);
    assert.deepEqual([done?.status, done?.immediate, done?.byteLength], [WcStatus.SUCCESS, 5, 4]);
  });

  it('is not missed by the next connection', () => {
    const here = new Scene(0);
    here.say(here.send(0));
    here.connectAgain();
    assert.equal(here.qpB.lacksReceive, false);
    const gap = here.acknowledgement(0, SYNDROME.SEQUENCE, 0);
    assert.deepEqual(here.say(here.send(1)), [gap], 'nor is a gap known');
  });
});

describe('RC: a connection that begins anew', () => {
  it('knows of no request that was executed before', () => {
    const here = new Scene(2);
    here.say(here.send(0), here.read(1, 8));
    here.connectAgain();
    assert.deepEqual(here.say(here.send(-1), here.read(-1, 8)), []);
    assert.equal(here.counters.drops.replayUnknown, 1);
  });

  for (const isConnected of [false, true]) {
    it(`owes nothing of what was owed before${isConnected ? '' : ', while it is reset'}`, () => {
      const here = new Scene(0);
      const ready = here.begin(here.read(0, LONG));
      here.say(here.request(OPCODE.WRITE_ONLY, MANY, here.range(0)));
      if (isConnected) here.connectAgain();
      else here.qpB.modify({ state: QpState.RESET });
      assert.equal(here.goOn().length, ready);
    });
  }

  it('has room for its answers, however many were owed before: they write over no request', () => {
    const here = new Scene(0, 32);
    const burst = Array.from({ length: 32 }, (_, i) => here.read(i, 8));
    here.say(...burst);
    here.connectAgain();
    const segments = [{ offset: 64, length: 8 }];
    postSend(here.pair.b, here.qpB, { opcode: WrOpcode.SEND, segments }, false);
    assert.equal(here.say(...burst).length, 32);
    here.qpB.ringSendDoorbell();
    const [sent, ...more] = here.hear();
    assert.deepEqual(more, []);
    assert.equal(sent?.slice(24), hex(here.pair.b.bytes.subarray(64, 72)));
  });

  it('does not answer a READ with what one of the same PSN was answered with', () => {
    const here = new Scene(0);
    here.say(here.read(0, 8));
    here.connectAgain();
    here.post(1);
    here.say(here.send(0));
    assert.deepEqual(here.say(here.read(0, 8)), []);
    assert.equal(here.counters.drops.replayUnknown, 1);
  });

  it('tells once more that its peer has spoken', () => {
    const here = new Scene(0);
    here.say(here.read(0, 8));
    here.qpB.modify({ state: QpState.RESET });
    here.qpB.modify({ state: QpState.INIT, pkeyIndex: 0, portNumber: 1, accessFlags: 15 });
    here.qpB.modify({
      state: QpState.RTR,
      addressVector: { gid: here.pair.a.port.gids[0]!, localGidIndex: 0 },
      pathMtuBytes: MTU,
      destinationQpn: here.qpA.qpn,
      receivePsn: FIRST_PSN,
      maxDestRdAtomic: 4,
      minRnrTimer: 1,
    });
    here.say(here.read(0, 8), here.read(1, 8));
    assert.deepEqual(here.pair.b.events, [AsyncEventType.COMM_EST]);
  });

  it('in RESET has nothing to tell at its end, nor before it was ever connected', () => {
    const here = new Scene();
    here.say(here.send(0, false));
    here.qpB.modify({ state: QpState.RESET });
    here.qpB.destroy();
    const fresh = here.pair.b.createQp();
    fresh.modify({ state: QpState.INIT, pkeyIndex: 0, portNumber: 1, accessFlags: 0 });
    fresh.modify({ state: QpState.ERR });
    here.pair.b.createQp().destroy();
    assert.deepEqual(here.hear(), []);
  });

  it('begins a message with its first packet, whatever was under way', () => {
    const here = new Scene(1);
    here.say(here.request(OPCODE.SEND_FIRST, 0, FULL));
    here.connectAgain();
    here.post(1);
    assert.deepEqual(here.say(here.send(0)), [here.ack(0, 1)]);
    assert.deepEqual(here.statuses(), [[0, WcStatus.SUCCESS]]);
  });
});

describe('RC: what has come, and did not ask for an answer,', () => {
  const ends: Record<string, (here: Scene) => void> = {
    fails: ({ qpB }) => qpB.modify({ state: QpState.ERR }),
    'is destroyed': ({ qpB }) => qpB.destroy(),
  };
  for (const [what, end] of Object.entries(ends)) {
    it(`is told of when this side ${what}`, () => {
      const here = new Scene();
      assert.deepEqual(here.say(here.send(0), here.send(1, false)), [here.ack(0, 1)]);
      end(here);
      assert.deepEqual(here.hear(), [here.ack(1, 2)]);
    });

    const told: Record<string, (here: Scene) => Uint8Array[]> = {
      'an acknowledgement': (here) => [here.send(0, false), here.send(1)],
      'the answer of a READ': (here) => [here.send(0, false), here.read(1, 8)],
      'a NAK': (here) => [here.send(0, false), here.send(2)],
    };
    for (const [by, requests] of Object.entries(told)) {
      it(`is not told of again when this side ${what}: ${by} did`, () => {
        const here = new Scene();
        assert.equal(here.say(...requests(here)).length, 1);
        end(here);
        assert.deepEqual(here.hear(), []);
      });
    }

    it(`is nothing when this side ${what} and nothing has come, or on another connection`, () => {
      const here = new Scene();
      here.say(here.send(0, false));
      here.connectAgain();
      end(here);
      assert.deepEqual(here.hear(), []);
    });
  }
});
