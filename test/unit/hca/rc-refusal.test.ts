import assert from 'node:assert/strict';
import { QpState, WcStatus, WrOpcode } from '../../../core/spi/index.js';
import { HcaPair, connect, drain, postSend } from '../../support/hca-pair.js';

const { SUCCESS, WR_FLUSH_ERR, REM_ACCESS_ERR } = WcStatus;
const ACKNOWLEDGE = 0x11;

/** READ, atomic, a WRITE that is refused, and one more; `filter` is on what the peer sends. */
function refusedBehindAnswers(
  filter: (packet: Uint8Array) => Uint8Array[],
  retryCount = 7,
): [number, number][] {
  const pair = new HcaPair(8);
  const qpA = pair.a.createQp();
  const qpB = pair.b.createQp();
  connect(pair, qpA, qpB, { retryCount });
  pair.b.port.filter = filter;
  const segments = [{ offset: 0, length: 3000 }];
  const word = [{ offset: 0, length: 8 }];
  const remote = { remoteAddress: pair.b.base, rkey: pair.b.region.rkey };
  postSend(pair.a, qpA, { opcode: WrOpcode.RDMA_READ, segments, ...remote, cookie: 1 }, false);
  const add = { opcode: WrOpcode.ATOMIC_FETCH_AND_ADD, segments: word, ...remote };
  postSend(pair.a, qpA, { ...add, cookie: 2, flags: 0 }, false);
  const write = { opcode: WrOpcode.RDMA_WRITE, segments, ...remote };
  postSend(pair.a, qpA, { ...write, rkey: 1, cookie: 3 }, false);
  postSend(pair.a, qpA, { ...write, cookie: 4 });
  pair.run(20_000);
  assert.equal(qpA.state, QpState.ERR);
  assert.equal(qpB.state, QpState.ERR);
  return drain(pair.a.sendCq).map((c) => [c.cookie, c.status]);
}

describe('RC request that is refused behind answers that are lost', () => {
  const onlyNak = (packet: Uint8Array): Uint8Array[] => (packet[0] === ACKNOWLEDGE ? [packet] : []);

  it('fails with what the NAK says, not with a timeout; those before it are flushed', () => {
    for (const retryCount of [0, 1, 7]) {
      assert.deepEqual(refusedBehindAnswers(onlyNak, retryCount), [
        [1, WR_FLUSH_ERR],
        [2, WR_FLUSH_ERR],
        [3, REM_ACCESS_ERR],
        [4, WR_FLUSH_ERR],
      ]);
    }
  });

  it('leaves the answers that come at last their success', () => {
    const late: Uint8Array[] = [];
    const answers = refusedBehindAnswers((packet) => {
      if (packet[0] !== ACKNOWLEDGE) {
        late.push(packet.slice());
        return [];
      }
      return [packet, ...late];
    });
    assert.deepEqual(answers, [
      [1, SUCCESS],
      [3, REM_ACCESS_ERR],
      [4, WR_FLUSH_ERR],
    ]);
  });

  it('flushes from the first answer that does not come', () => {
    let count = 0;
    const answers = refusedBehindAnswers((packet) => {
      const atomic = packet[0] === 0x12;
      return atomic && count++ === 0 ? [] : [packet];
    });
    assert.deepEqual(answers, [
      [1, SUCCESS],
      [2, WR_FLUSH_ERR],
      [3, REM_ACCESS_ERR],
      [4, WR_FLUSH_ERR],
    ]);
  });
});

describe('RC refusal', () => {
  it('leaves before the requests that it leads to, on any queue pair', () => {
    const pair = new HcaPair(9);
    const [qpA, otherA, otherB] = [pair.a.createQp(), pair.a.createQp(), pair.b.createQp()];
    const message = { opcode: WrOpcode.SEND, segments: [{ offset: 0, length: 8 }] };
    const qpB = pair.b.createQp({ onEvent: () => postSend(pair.b, otherB, message) });
    connect(pair, qpA, qpB);
    connect(pair, otherA, otherB);
    const sent: number[] = [];
    pair.b.port.filter = (packet) => {
      sent.push(packet[0] ?? 0);
      return [packet];
    };
    const remote = { remoteAddress: pair.b.base, rkey: 1 };
    postSend(pair.a, qpA, { ...message, opcode: WrOpcode.RDMA_WRITE, ...remote });
    pair.run(100);
    assert.deepEqual(sent.slice(0, 2), [ACKNOWLEDGE, 0x04]);
  });
});
