import assert from 'node:assert/strict';
import { QpState, type QueuePair, WcStatus, WrOpcode } from '../../../core/spi/index.js';
import type { DropReason } from '../../../providers/hca/index.js';
import {
  connectedPair,
  drain,
  type HcaPair,
  postReceive,
  postSend,
} from '../../support/hca-pair.js';

const A_PSN = 0xfffffa;

interface Packet {
  opcode: number;
  qpn: number;
  psn: number;
  ackReq?: boolean;
  pkey?: number;
  flags?: number;
  /** Extension headers and payload. */
  rest?: readonly number[];
}

function bytesOf({
  opcode,
  qpn,
  psn,
  ackReq = true,
  pkey = 0xffff,
  flags = 0,
  rest = [],
}: Packet): Uint8Array {
  const packet = new Uint8Array(12 + rest.length);
  const view = new DataView(packet.buffer);
  packet.set([opcode, flags]);
  view.setUint16(2, pkey);
  view.setUint32(4, qpn);
  view.setUint32(8, psn);
  if (ackReq) packet[8] = 0x80;
  packet.set(rest, 12);
  return packet;
}

/** What a port sent, as "opcode psn syndrome". */
function watch(pair: HcaPair, side: 'a' | 'b'): string[] {
  const lines: string[] = [];
  pair[side].port.filter = (packet) => {
    const view = new DataView(packet.buffer, packet.byteOffset, packet.byteLength);
    const psn = view.getUint32(8) & 0xffffff;
    const syndrome = packet[0] === 0x11 ? ` ${packet[12]!.toString(16)}` : '';
    lines.push(`${packet[0]!.toString(16)} ${psn.toString(16)}${syndrome}`);
    return [packet];
  };
  return lines;
}

function connected(): { pair: HcaPair; qpA: QueuePair; qpB: QueuePair } {
  const all = connectedPair(31);
  for (let i = 0; i < 8; i++) postReceive(all.pair.b, all.qpB, [{ offset: 64, length: 4096 }]);
  return all;
}

/** Pumps until there is no more to do: nobody here fetches completions, whom a pump waits for. */
function takeIn(pair: HcaPair): void {
  while (pair.b.driver.pump());
}

const SEND_ONLY = 4;
const ACK = 0x11;
const four = [1, 2, 3, 4];

describe('RC responder on the wire', () => {
  it('NAKs a gap once, and again only for a new gap', () => {
    const { pair, qpB } = connected();
    const sent = watch(pair, 'b');
    const send = (psn: number): void =>
      pair.b.port.inject(bytesOf({ opcode: SEND_ONLY, qpn: qpB.qpn, psn, rest: four }));
    send(A_PSN + 1);
    send(A_PSN + 2);
    pair.b.driver.pump();
    send(A_PSN + 3);
    pair.b.driver.pump();
    assert.deepEqual(sent, ['11 fffffa 60']);
    send(A_PSN);
    takeIn(pair);
    send(A_PSN + 2);
    takeIn(pair);
    assert.deepEqual(sent.slice(1), ['11 fffffa 1f', '11 fffffb 60']);
    assert.equal(pair.b.driver.device.counters.drops.sequenceGap, 4);
  });

  it('acknowledges a burst once, a duplicate with the last PSN executed', () => {
    const { pair, qpB } = connected();
    const sent = watch(pair, 'b');
    for (let i = 0; i < 4; i++) {
      pair.b.port.inject(bytesOf({ opcode: SEND_ONLY, qpn: qpB.qpn, psn: A_PSN + i, rest: four }));
    }
    takeIn(pair);
    pair.b.port.inject(bytesOf({ opcode: SEND_ONLY, qpn: qpB.qpn, psn: A_PSN, rest: four }));
    takeIn(pair);
    assert.deepEqual(sent, ['11 fffffd 1f', '11 fffffd 1f']);
    assert.equal(drain(pair.b.receiveCq).length, 4);
  });

  it('does not acknowledge what did not ask for it', () => {
    const { pair, qpB } = connected();
    const sent = watch(pair, 'b');
    const packet = { opcode: SEND_ONLY, qpn: qpB.qpn, psn: A_PSN, rest: four, ackReq: false };
    pair.b.port.inject(bytesOf(packet));
    pair.b.driver.pump();
    assert.deepEqual(sent, []);
    assert.equal(drain(pair.b.receiveCq).length, 1);
  });

  const full = new Array<number>(1024).fill(7);
  const invalid: [string, Partial<Packet>][] = [
    ['a Middle without a First', { opcode: 1, rest: full }],
    ['a Last without a First', { opcode: 2, rest: four }],
    ['a First that is not full', { opcode: 0, rest: four }],
    ['an Only beyond the MTU', { opcode: 4, rest: [...full, ...four] }],
    ['a FLUSH', { opcode: 0x1c, rest: new Array<number>(20).fill(0) }],
  ];
  for (const [what, packet] of invalid) {
    it(`refuses ${what} as an invalid request`, () => {
      const { pair, qpB } = connected();
      const sent = watch(pair, 'b');
      pair.b.port.inject(bytesOf({ opcode: 0, qpn: qpB.qpn, psn: A_PSN, ...packet }));
      pair.b.driver.pump();
      assert.deepEqual(sent, ['11 fffffa 61']);
      assert.equal(qpB.state, QpState.ERR);
    });
  }

  it('takes SEND with invalidate as a SEND whose key is not ours to give', () => {
    const { pair, qpB } = connected();
    const sent = watch(pair, 'b');
    const rest = [0, 0, 0, 9, ...four];
    pair.b.port.inject(bytesOf({ opcode: 0x17, qpn: qpB.qpn, psn: A_PSN, rest }));
    pair.b.driver.pump();
    assert.deepEqual(sent, ['11 fffffa 1f']);
    assert.equal(drain(pair.b.receiveCq)[0]?.status, WcStatus.REM_INV_REQ_ERR);
    assert.equal(qpB.state, QpState.ERR);
  });
});

describe('RC completer on the wire', () => {
  const aeth = (syndrome: number): number[] => [syndrome, 0, 0, 1];
  const outstanding = (count: number): { pair: HcaPair; qpA: QueuePair } => {
    const { pair, qpA } = connected();
    const segments = [{ offset: 0, length: 8 }];
    pair.a.port.filter = () => [];
    for (let i = 0; i < count; i++) postSend(pair.a, qpA, { opcode: WrOpcode.SEND, segments });
    pair.a.driver.pump();
    return { pair, qpA };
  };

  it('ignores an ACK for what was never sent, and an old one', () => {
    const { pair, qpA } = outstanding(3);
    for (const psn of [A_PSN + 3, A_PSN + 1000, A_PSN - 1]) {
      pair.a.port.inject(
        bytesOf({ opcode: ACK, qpn: qpA.qpn, psn: psn & 0xffffff, rest: aeth(0x1f) }),
      );
    }
    pair.a.driver.pump();
    assert.deepEqual(drain(pair.a.sendCq), []);
    const { drops } = pair.a.driver.device.counters;
    assert.deepEqual([drops.ghostAck, drops.staleResponse], [2, 1]);
    pair.a.port.inject(bytesOf({ opcode: ACK, qpn: qpA.qpn, psn: A_PSN + 1, rest: aeth(0x1f) }));
    pair.a.driver.pump();
    assert.equal(drain(pair.a.sendCq).length, 2, 'one ACK covers all before it');
  });

  const naks: [number, number][] = [
    [0x61, WcStatus.REM_INV_REQ_ERR],
    [0x62, WcStatus.REM_ACCESS_ERR],
    [0x63, WcStatus.REM_OP_ERR],
    [0x64, WcStatus.REM_INV_RD_REQ_ERR],
    [0x7f, WcStatus.REM_OP_ERR],
  ];
  for (const [syndrome, status] of naks) {
    it(`NAK 0x${syndrome.toString(16)} completes what is before it and fails its request`, () => {
      const { pair, qpA } = outstanding(3);
      const rest = aeth(syndrome);
      pair.a.port.inject(bytesOf({ opcode: ACK, qpn: qpA.qpn, psn: A_PSN + 1, rest }));
      pair.a.driver.pump();
      assert.deepEqual(
        drain(pair.a.sendCq).map((c) => [c.status, c.vendorError]),
        [
          [WcStatus.SUCCESS, 0],
          [status, syndrome],
          [WcStatus.WR_FLUSH_ERR, 0],
        ],
      );
    });
  }

  it('fails on a READ response to a SEND', () => {
    const { pair, qpA } = outstanding(1);
    const rest = [...aeth(0x1f), ...four];
    pair.a.port.inject(bytesOf({ opcode: 0x10, qpn: qpA.qpn, psn: A_PSN, rest }));
    pair.a.driver.pump();
    assert.deepEqual(
      drain(pair.a.sendCq).map((c) => c.status),
      [WcStatus.BAD_RESP_ERR],
    );
  });

  it('goes on after a sequence NAK inside an RNR wait, at the end of that wait', () => {
    const { pair, qpA } = outstanding(2);
    const sent = watch(pair, 'a');
    pair.a.port.inject(bytesOf({ opcode: ACK, qpn: qpA.qpn, psn: A_PSN, rest: aeth(0x2e) }));
    pair.a.port.inject(bytesOf({ opcode: ACK, qpn: qpA.qpn, psn: A_PSN, rest: aeth(0x60) }));
    pair.a.driver.pump();
    pair.run(1_200);
    assert.deepEqual(sent, []);
    pair.run(200);
    assert.deepEqual(sent, ['4 fffffa', '4 fffffb']);
    assert.equal(pair.a.driver.device.counters.retries, 0);
  });
});

describe('Drop counters', () => {
  const cases: [DropReason, (qpn: number) => Uint8Array, boolean?][] = [
    ['tooShort', () => new Uint8Array(11)],
    ['unknownOpcode', (qpn) => bytesOf({ opcode: 0x2c, qpn, psn: 0 })],
    ['badTransportVersion', (qpn) => bytesOf({ opcode: 4, flags: 1, qpn, psn: 0 })],
    ['truncated', (qpn) => bytesOf({ opcode: 6, qpn, psn: 0, rest: four })],
    ['misaligned', (qpn) => bytesOf({ opcode: 4, qpn, psn: 0, rest: [1, 2] })],
    ['unknownQpn', (qpn) => bytesOf({ opcode: 4, qpn: qpn ^ 0x800000, psn: 0 })],
    ['unknownQpn', () => bytesOf({ opcode: 4, qpn: 0, psn: 0 })],
    [
      'unknownQpn',
      () => bytesOf({ opcode: 0x64, qpn: 0xffffff, psn: 0, rest: [...four, ...four] }),
    ],
    ['wrongTransport', (qpn) => bytesOf({ opcode: 0x64, qpn, psn: 0, rest: [...four, ...four] })],
    ['badPkey', (qpn) => bytesOf({ opcode: 4, pkey: 0x8001, qpn, psn: 0 })],
    ['wrongSource', (qpn) => bytesOf({ opcode: 4, qpn, psn: A_PSN }), true],
  ];
  for (const [reason, packet, byStranger] of cases) {
    it(`${reason}`, () => {
      const { pair, qpB } = connected();
      pair.b.port.inject(packet(qpB.qpn), byStranger ? 0 : undefined);
      pair.run(1000);
      const { counters } = pair.b.driver.device;
      assert.equal(counters.drops[reason], 1);
      assert.equal(counters.dropped, 1);
      assert.equal(qpB.state, QpState.RTS);
      assert.equal(pair.b.port.counters.sentPackets, 0, 'silent');
    });
  }

  it('wrongState', () => {
    const { pair, qpB } = connected();
    qpB.modify({ state: QpState.ERR });
    pair.b.port.inject(bytesOf({ opcode: 4, qpn: qpB.qpn, psn: A_PSN }));
    pair.run(0);
    assert.equal(pair.b.driver.device.counters.drops.wrongState, 1);
  });

  it('a limited member of the partition is let in', () => {
    const { pair, qpB } = connected();
    pair.b.port.inject(bytesOf({ opcode: 4, pkey: 0x7fff, qpn: qpB.qpn, psn: A_PSN }));
    pair.run(0);
    assert.equal(drain(pair.b.receiveCq).length, 1);
  });
});
