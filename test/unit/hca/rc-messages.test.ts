/** RC responder: packets that make up messages, and those that do not (IBTA 9.7.4.1.2). */
import assert from 'node:assert/strict';
import { AsyncEventType, QpState, WcFlags, WcStatus } from '../../../core/spi/index.js';
import { connect, drain, postReceive } from '../../support/hca-pair.js';
import { packet } from '../../support/request-packets.js';
import { FIRST_PSN, MTU, OPCODE, ResponderScene, SYNDROME } from '../../support/responder-scene.js';
import { assertSameBytes } from '../../support/same-bytes.js';

const { SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_ONLY } = OPCODE;
const { WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, WRITE_ONLY } = OPCODE;
const FULL = new Array<number>(MTU).fill(0xaa);
const FOUR = [0xaa, 0xaa, 0xaa, 0xaa];
const INTO = 0x1000;

/** What follows the BTH in a request of each kind. */
function restOf(here: ResponderScene, opcode: number): number[] {
  switch (opcode) {
    case SEND_FIRST:
    case SEND_MIDDLE:
    case WRITE_MIDDLE:
      return FULL;
    case WRITE_FIRST:
      return [...here.range(3 * MTU, 0x8000), ...FULL];
    case WRITE_ONLY:
      return [...here.range(4, 0x8000), ...FOUR];
    case OPCODE.READ:
      return here.range(8);
    case OPCODE.FETCH_ADD:
      return [...here.range(0).slice(0, 12), ...new Array<number>(16).fill(1)];
    default:
      return FOUR;
  }
}

describe('RC: a message that is not finished', () => {
  const follow: Record<number, number[]> = {
    [SEND_FIRST]: [SEND_FIRST, SEND_ONLY, WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, WRITE_ONLY],
    [WRITE_FIRST]: [WRITE_FIRST, WRITE_ONLY, SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_ONLY],
  };
  for (const first of [SEND_FIRST, WRITE_FIRST]) {
    for (const next of [...follow[first]!, OPCODE.READ, OPCODE.FETCH_ADD]) {
      it(`is followed by nothing else: opcode ${next} after opcode ${first} is refused`, () => {
        const here = new ResponderScene();
        const { bytes, events, receiveCq } = here.pair.b;
        for (const cookie of [1, 2]) {
          postReceive(here.pair.b, here.qpB, [{ offset: INTO, length: 8 * MTU }], cookie);
        }
        here.say(here.request(first, 0, restOf(here, first), false));
        const before = bytes.slice();
        assert.deepEqual(here.say(here.request(next, 1, restOf(here, next))), [
          here.acknowledgement(1, SYNDROME.INVALID, 0),
        ]);
        assert.equal(here.qpB.state, QpState.ERR);
        assertSameBytes(bytes, before);
        const isSend = first === SEND_FIRST;
        const ofFirst = isSend ? WcStatus.REM_INV_REQ_ERR : WcStatus.WR_FLUSH_ERR;
        assert.deepEqual(
          drain(receiveCq).map(({ cookie, status }) => [cookie, status]),
          [
            [1, ofFirst],
            [2, WcStatus.WR_FLUSH_ERR],
          ],
        );
        assert.deepEqual(events, isSend ? [] : [AsyncEventType.QP_REQ_ERR], 'told once');
      });
    }
  }

  for (const next of [SEND_MIDDLE, SEND_LAST, WRITE_MIDDLE, WRITE_LAST]) {
    it(`has to be begun: opcode ${next} after messages that are finished is refused`, () => {
      const here = new ResponderScene();
      const { bytes } = here.pair.b;
      for (let i = 0; i < 2; i++) {
        postReceive(here.pair.b, here.qpB, [{ offset: INTO, length: 8 * MTU }]);
      }
      here.say(
        here.request(SEND_FIRST, 0, FULL),
        here.request(SEND_LAST, 1, FOUR),
        here.request(WRITE_ONLY, 2, restOf(here, WRITE_ONLY)),
      );
      const before = bytes.slice();
      assert.deepEqual(here.say(here.request(next, 3, restOf(here, next))), [
        here.acknowledgement(3, SYNDROME.INVALID, 2),
      ]);
      assertSameBytes(bytes, before);
    });
  }
});

describe('RC: messages of several connections', () => {
  it('whose packets come by turns are put together each by itself', () => {
    const here = new ResponderScene();
    const { a, b } = here.pair;
    const other = b.createQp();
    connect(here.pair, a.createQp(), other, {}, MTU);
    const parts = [here.qpB, other].map((qp, i) => {
      postReceive(b, qp, [
        { offset: INTO + i * 0x1000, length: MTU / 2 },
        { offset: INTO + i * 0x1000 + 0x800, length: 4 * MTU },
      ]);
      return [0, 1, 2].map((part) => {
        const opcode = [SEND_FIRST, SEND_MIDDLE, SEND_LAST][part]!;
        const payload = new Array<number>(MTU).fill(16 * (i + 1) + part);
        return packet(opcode, qp.qpn, (FIRST_PSN + part) & 0xffffff, payload);
      });
    });
    for (const part of [0, 1, 2]) here.say(parts[0]![part]!, parts[1]![part]!);
    for (const i of [0, 1]) {
      const whole = [0, 1, 2].flatMap((part) => new Array<number>(MTU).fill(16 * (i + 1) + part));
      const at = INTO + i * 0x1000;
      assertSameBytes(b.bytes.subarray(at, at + MTU / 2), Uint8Array.from(whole.slice(0, MTU / 2)));
      const rest = b.bytes.subarray(at + 0x800, at + 0x800 + 2.5 * MTU);
      assertSameBytes(rest, Uint8Array.from(whole.slice(MTU / 2)));
    }
    const lengths = drain(b.receiveCq).map(({ byteLength }) => byteLength);
    assert.deepEqual(lengths, [3 * MTU, 3 * MTU]);
  });
});

describe('RC: what a receive is told', () => {
  it('whether the message is a solicited one', () => {
    const here = new ResponderScene();
    const { b } = here.pair;
    for (let i = 0; i < 2; i++) postReceive(b, here.qpB, [{ offset: INTO, length: 8 }]);
    const solicited = here.request(SEND_ONLY, 0, FOUR);
    solicited[1]! |= 0x80;
    here.say(solicited, here.request(SEND_ONLY, 1, FOUR));
    const flags = drain(b.receiveCq).map((one) => one.flags);
    assert.deepEqual(flags, [WcFlags.SOLICITED, 0]);
  });

  it('that it has more segments than its queue pair may', () => {
    const here = new ResponderScene();
    const { b } = here.pair;
    const segment = { offset: INTO, length: 8 };
    const few = b.createQp({ maxReceiveSge: 2 });
    connect(here.pair, here.pair.a.createQp(), few, {}, MTU);
    postReceive(b, few, [segment, segment], 1);
    postReceive(b, few, [segment, segment, segment], 2);
    for (const ahead of [0, 1]) {
      here.say(packet(SEND_ONLY, few.qpn, (FIRST_PSN + ahead) & 0xffffff, FOUR, true));
    }
    assert.deepEqual(
      drain(b.receiveCq).map(({ cookie, status }) => [cookie, status]),
      [
        [1, WcStatus.SUCCESS],
        [2, WcStatus.LOC_QP_OP_ERR],
      ],
    );
    assert.equal(few.state, QpState.ERR);
  });
});
