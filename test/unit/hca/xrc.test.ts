/** XRC in the software HCA: one initiator, one target, several receivers (IBTA annex A14). */
import assert from 'node:assert/strict';
import {
  QpState,
  QpType,
  SpiError,
  WcOpcode,
  WcStatus,
  WrFlags,
  WrOpcode,
} from '../../../core/spi/index.js';
import { drain } from '../../support/hca-pair.js';
import {
  FROM,
  TO,
  XRC_MTU,
  XrcHcaPair,
  XrcReceiver,
  data,
  fill,
  post,
  sameBytes,
  send,
  statuses,
} from '../../support/xrc-hca-pair.js';

const { SUCCESS } = WcStatus;

/** Of a packet: opcode, destination queue pair, and the SRQ number where there is one. */
interface Seen {
  readonly opcode: number;
  readonly qpn: number;
  readonly srqn: number;
}

function watch(pair: XrcHcaPair, side: 'a' | 'b'): Seen[] {
  const seen: Seen[] = [];
  pair[side].port.filter = (packet) => {
    const view = new DataView(packet.buffer, packet.byteOffset, packet.byteLength);
    const low = packet[0]! & 0x1f;
    const request = low < 0x0d || low > 0x12;
    const srqn = request ? view.getUint32(12) : -1;
    seen.push({ opcode: packet[0]!, qpn: view.getUint32(4) & 0xffffff, srqn });
    return [packet];
  };
  return seen;
}

describe('XRC: one connection, many receivers', () => {
  it('a SEND goes to the queue that it names, and completes there', () => {
    const pair = new XrcHcaPair(3);
    fill(pair.a.bytes);
    for (const [i, receiver] of pair.receivers.entries()) receiver.post(i + 4, TO + i * 64, 64);
    for (const i of [2, 0, 1]) post(pair, send(10 + i), i);
    assert.deepEqual(statuses(pair), [SUCCESS, SUCCESS, SUCCESS]);
    for (const [i, { cq, srq }] of pair.receivers.entries()) {
      const [completion, ...more] = drain(cq);
      assert.equal(more.length, 0);
      const { status, opcode, byteLength, wqeIndex, cookie, srqn, context, qpn } = completion!;
      assert.deepEqual(
        { status, opcode, byteLength, wqeIndex, cookie, srqn, context, qpn },
        {
          status: SUCCESS,
          opcode: WcOpcode.RECV,
          byteLength: 10 + i,
          wqeIndex: i + 4,
          cookie: i + 4,
          srqn: srq.srqn,
          context: 0,
          qpn: pair.target.qpn,
        },
      );
    }
    assert.deepEqual(drain(pair.b.receiveCq), []);
  });

  for (const length of [0, 1, 3, XRC_MTU - 1, XRC_MTU, XRC_MTU + 1, 5 * XRC_MTU + 9]) {
    it(`SEND, WRITE, both with immediate, and READ of ${length} bytes`, () => {
      const pair = new XrcHcaPair(2);
      fill(pair.a.bytes.subarray(0, TO));
      const receiver = pair.receivers[1]!;
      const remote = {
        remoteAddress: pair.b.base + BigInt(TO),
        rkey: receiver.region.rkey,
      };
      const clear = (): void => void pair.b.bytes.fill(0, TO);

      receiver.post(0, TO, length + 8);
      post(pair, send(length), 1);
      assert.deepEqual(statuses(pair), [SUCCESS]);
      sameBytes(pair, length);
      assert.equal(receiver.drain()[0]!.byteLength, length);

      clear();
      receiver.post(0, TO, length + 8);
      const immediate = 0xcafe0123;
      post(pair, { ...send(length), opcode: WrOpcode.SEND_WITH_IMM, immediate }, 1);
      assert.deepEqual(statuses(pair), [SUCCESS]);
      sameBytes(pair, length);
      assert.equal(receiver.drain()[0]!.immediate, immediate);

      clear();
      post(pair, { opcode: WrOpcode.RDMA_WRITE, segments: data(length), ...remote }, 1);
      assert.deepEqual(statuses(pair), [SUCCESS]);
      sameBytes(pair, length);
      assert.deepEqual(receiver.drain(), []);

      clear();
      receiver.post(0, 0, 0);
      const withImm = { opcode: WrOpcode.RDMA_WRITE_WITH_IMM, immediate };
      post(pair, { ...withImm, segments: data(length), ...remote }, 1);
      assert.deepEqual(statuses(pair), [SUCCESS]);
      sameBytes(pair, length);
      const [completion] = receiver.drain();
      assert.equal(completion!.opcode, WcOpcode.RECV_RDMA_WITH_IMM);
      assert.deepEqual([completion!.immediate, completion!.byteLength], [immediate, length]);

      fill(pair.b.bytes);
      const into = [{ offset: TO, length }];
      post(pair, { opcode: WrOpcode.RDMA_READ, segments: into, ...remote }, 1);
      assert.deepEqual(statuses(pair), [SUCCESS]);
      assert.deepEqual(
        pair.a.bytes.subarray(TO, TO + length),
        pair.b.bytes.subarray(TO, TO + length),
      );
    });
  }

  it('atomics, in the memory of the queue’s owner', () => {
    const pair = new XrcHcaPair(2);
    const view = new DataView(pair.b.bytes.buffer);
    view.setBigUint64(TO, 41n, true);
    const { rkey } = pair.receivers[1]!.region;
    const remote = { remoteAddress: pair.b.base + BigInt(TO), rkey, segments: data(8) };
    post(pair, { opcode: WrOpcode.ATOMIC_FETCH_AND_ADD, compareAdd: 1n, ...remote }, 1);
    const swap = { opcode: WrOpcode.ATOMIC_CMP_AND_SWP, compareAdd: 42n, swap: 99n };
    post(pair, { ...swap, ...remote, segments: [{ offset: FROM + 8, length: 8 }] }, 1);
    assert.deepEqual(statuses(pair), [SUCCESS, SUCCESS]);
    const results = new DataView(pair.a.bytes.buffer);
    assert.deepEqual(
      [results.getBigUint64(FROM, true), results.getBigUint64(FROM + 8, true)],
      [41n, 42n],
    );
    assert.equal(view.getBigUint64(TO, true), 99n);
  });

  it('inline payload and SEND with more than one segment', () => {
    const pair = new XrcHcaPair(1);
    pair.receivers[0]!.post(0, TO, 64);
    pair.receivers[0]!.post(1, TO + 64, 64);
    post(pair, { opcode: WrOpcode.SEND, inline: Uint8Array.of(1, 2, 3) });
    fill(pair.a.bytes.subarray(0, TO));
    const segments = [
      { offset: FROM, length: 3 },
      { offset: FROM + 100, length: 2 },
    ];
    post(pair, { opcode: WrOpcode.SEND, segments });
    assert.deepEqual(statuses(pair), [SUCCESS, SUCCESS]);
    assert.deepEqual([...pair.b.bytes.subarray(TO, TO + 4)], [1, 2, 3, 0]);
    const { bytes } = pair.a;
    assert.deepEqual(
      [...pair.b.bytes.subarray(TO + 64, TO + 69)],
      [...bytes.subarray(FROM, FROM + 3), ...bytes.subarray(FROM + 100, FROM + 102)],
    );
  });
});

describe('XRC on the wire', () => {
  it('XRCETH behind the BTH of every request packet, XRC opcodes both ways', () => {
    const pair = new XrcHcaPair(2);
    const { srq, region } = pair.receivers[1]!;
    const requests = watch(pair, 'a');
    const responses = watch(pair, 'b');
    const remote = { remoteAddress: pair.b.base + BigInt(TO), rkey: region.rkey };
    for (let slot = 0; slot < 3; slot++) pair.receivers[1]!.post(slot, TO, 1000);
    post(pair, send(3 * XRC_MTU), 1);
    post(pair, { opcode: WrOpcode.SEND_WITH_IMM, segments: data(1) }, 1);
    pair.run(1000);
    post(pair, { opcode: WrOpcode.RDMA_WRITE_WITH_IMM, segments: data(2 * XRC_MTU), ...remote }, 1);
    post(pair, { opcode: WrOpcode.RDMA_READ, segments: data(2 * XRC_MTU), ...remote }, 1);
    post(pair, { opcode: WrOpcode.ATOMIC_FETCH_AND_ADD, segments: data(8), ...remote }, 1);
    post(pair, { opcode: WrOpcode.ATOMIC_CMP_AND_SWP, segments: data(8), ...remote }, 1);
    assert.deepEqual(statuses(pair), [0, 0, 0, 0, 0, 0]);
    assert.deepEqual(
      requests.map(({ opcode }) => opcode),
      [0xa0, 0xa1, 0xa2, 0xa5, 0xa6, 0xa9, 0xac, 0xb4, 0xb3],
    );
    for (const { qpn, srqn } of requests) {
      assert.deepEqual([qpn, srqn], [pair.target.qpn, srq.srqn]);
    }
    assert.ok(responses.every(({ qpn }) => qpn === pair.initiator.qpn));
    const kinds = new Set(responses.map(({ opcode }) => opcode));
    assert.deepEqual([...kinds].sort(), [0xad, 0xaf, 0xb1, 0xb2]);
  });

  it('what comes the wrong way is dropped and counted', () => {
    const pair = new XrcHcaPair(1);
    // The target's acknowledgements turn into requests, and the initiator's requests into ACKs.
    pair.receivers[0]!.post(0, TO, 64);
    pair.b.port.filter = (packet) => {
      const turned = new Uint8Array(packet.length + 4);
      turned.set(packet);
      turned[0] = 0xa4;
      return [turned, packet];
    };
    post(pair, send(1));
    assert.deepEqual(statuses(pair), [SUCCESS]);
    assert.equal(pair.a.driver.device.counters.drops.wrongDirection, 1);
    pair.target.modify({ state: QpState.RTS, sendPsn: 0, timeout: 8 });
    pair.a.port.filter = (packet) => {
      const turned = packet.slice(0, 16);
      turned[0] = 0xb1;
      turned[1] = 0;
      return [turned];
    };
    post(pair, send(1));
    pair.run(500);
    assert.ok(pair.b.driver.device.counters.drops.wrongDirection > 0);
  });

  it('plain RC packets do not reach a target, XRC ones no RC queue pair', () => {
    const pair = new XrcHcaPair(1);
    pair.receivers[0]!.post(0, TO, 64);
    pair.a.port.filter = (packet) => {
      const plain = packet.slice();
      plain[0] = plain[0]! & 0x1f;
      return [plain];
    };
    post(pair, send(4));
    pair.run(500);
    assert.ok(pair.b.driver.device.counters.drops.wrongTransport > 0);
  });
});

describe('XRC objects of the device', () => {
  const refused = (code: string) => (error: unknown) =>
    error instanceof SpiError && error.code === code;

  it('neither end has a queue that it does not use', () => {
    const { initiator, target } = new XrcHcaPair(0);
    assert.equal(initiator.receiveRing, undefined);
    assert.equal(target.receiveRing, undefined);
    assert.throws(() => initiator.ringReceiveDoorbell(), refused('EINVAL'));
    assert.throws(() => target.ringReceiveDoorbell(), refused('EINVAL'));
    assert.throws(() => target.ringSendDoorbell(), refused('EINVAL'));
  });

  it('go before their domain; a queue goes before its completion queue', () => {
    const pair = new XrcHcaPair(1);
    const [receiver] = pair.receivers;
    assert.throws(() => pair.domain.destroy(), refused('EBUSY'));
    assert.throws(() => receiver!.cq.destroy(), refused('EBUSY'));
    receiver!.srq.destroy();
    receiver!.cq.destroy();
    assert.throws(() => pair.domain.destroy(), refused('EBUSY'));
    pair.target.destroy();
    pair.domain.destroy();
    assert.throws(() => new XrcReceiver(pair.b, pair.domain), refused('EINVAL'));
  });

  it('need a domain, of this device', () => {
    const pair = new XrcHcaPair(0);
    for (const type of [QpType.XRC_INI, QpType.XRC_TGT]) {
      assert.throws(() => pair.a.createQp({ type }), refused('EINVAL'));
      const xrcDomain = pair.domain;
      assert.throws(() => pair.a.createQp({ type, xrcDomain }), refused('EINVAL'));
    }
    assert.throws(() => new XrcReceiver(pair.a, pair.domain), refused('EINVAL'));
  });

  it('an XRC queue belongs to no queue pair', () => {
    const pair = new XrcHcaPair(1);
    const { srq } = pair.receivers[0]!;
    assert.throws(() => pair.b.createQp({ srq }), refused('EINVAL'));
  });

  it('all of them end with the device', async () => {
    const pair = new XrcHcaPair(3);
    await pair.b.driver.device.close();
    assert.throws(() => pair.b.driver.device.createXrcDomain(), refused('ENODEV'));
  });

  it('unsignalled requests to several queues complete silently', () => {
    const pair = new XrcHcaPair(2);
    for (const receiver of pair.receivers) receiver.post(0, TO, 8);
    post(pair, { ...send(1), flags: 0 }, 0);
    post(pair, { ...send(2), flags: WrFlags.SIGNALED }, 1);
    assert.deepEqual(statuses(pair), [SUCCESS]);
  });
});
