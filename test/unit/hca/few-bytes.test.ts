import assert from 'node:assert/strict';
import { TX, WrFlags, WrOpcode, gidFromIp } from '../../../core/spi/index.js';
import { TransmitQueue } from '../../../providers/hca/sending/transmit-queue.js';
import { RC, XRC_BASE } from '../../../core/spi/wire/opcode.js';
import { connectedPair, drain, postReceive, postSend } from '../../support/hca-pair.js';
import { MemoryPort } from '../../support/memory-port.js';

const LENGTHS = Array.from({ length: 42 }, (_, i) => i);

describe('Payload of few bytes', () => {
  it('of every length arrives, from and to places that begin anywhere', () => {
    for (const length of LENGTHS) {
      const { pair, qpA, qpB } = connectedPair(7);
      const [from, to] = [101, 203];
      for (let i = 0; i < length; i++) pair.a.bytes[from + i] = 0x80 + i;
      pair.b.bytes.fill(0xee);
      postReceive(pair.b, qpB, [{ offset: to, length: 64 }]);
      const flags = WrFlags.SIGNALED;
      const segments = [{ offset: from, length }];
      postSend(pair.a, qpA, { opcode: WrOpcode.SEND, segments, flags });
      pair.run(1000);
      assert.equal(drain(pair.b.receiveCq)[0]?.byteLength, length);
      const expected = LENGTHS.slice(0, length).map((i) => 0x80 + i);
      assert.deepEqual([...pair.b.bytes.subarray(to, to + length)], expected);
      assert.equal(pair.b.bytes[to - 1], 0xee);
      assert.equal(pair.b.bytes[to + length], 0xee);
    }
  });

  it('stands behind the headers where it is whole words and has room there', () => {
    const port = new MemoryPort(gidFromIp('10.0.0.1'));
    const tx = new TransmitQueue(port, () => true);
    const bytes = Uint8Array.from({ length: 64 }, (_, i) => i);
    const view = new DataView(bytes.buffer);
    const region = { port: 1, bytes, view };
    const add = (opcode: number, length: number): boolean => {
      tx.open(0, opcode, 0, 1, 0);
      return tx.addFew(region, 5, length);
    };
    assert.ok(add(RC.sendOnly, 8));
    assert.equal(port.txPackets[TX.HEADER_LENGTH], 20);
    const at = TX.HEADER * 4 + 12;
    const { buffer, byteOffset } = port.txPackets;
    assert.deepEqual([...new Uint8Array(buffer, byteOffset + at, 8)], [5, 6, 7, 8, 9, 10, 11, 12]);
    assert.ok(add(RC.writeOnly + XRC_BASE, 16), '32 bytes of headers');
    assert.equal(add(RC.writeOnlyImm + XRC_BASE, 16), false, 'no room behind 36');
    assert.equal(add(RC.sendOnly, 20), false, 'too many');
    assert.equal(add(RC.sendOnly, 6), false, 'no words');
  });

  it('that overwrites what came before it does so', () => {
    const { pair, qpA, qpB } = connectedPair(7);
    const place = { offset: 0, length: 64 };
    for (const length of [64, 8, 64, 4, 16]) {
      pair.a.bytes.fill(length, 0, 64);
      postReceive(pair.b, qpB, [place]);
      postSend(pair.a, qpA, { opcode: WrOpcode.SEND, segments: [{ offset: 0, length }] });
      pair.a.driver.pump();
    }
    pair.run(1000);
    const expected = [...Array<number>(16).fill(16), ...Array<number>(48).fill(64)];
    assert.deepEqual([...pair.b.bytes.subarray(0, 64)], expected);
  });
});
