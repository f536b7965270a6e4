import assert from 'node:assert/strict';
import { TX, TX_SEGMENT, gidFromIp } from '../../../core/spi/index.js';
import { TransmitQueue } from '../../../providers/hca/sending/transmit-queue.js';
import { RC } from '../../../core/spi/wire/opcode.js';
import { MemoryPort } from '../../support/memory-port.js';

describe('packets on their way to the port', () => {
  it('are a response only where its payload has room in two segments', () => {
    const txPackets = new Uint32Array(8 * TX.WORDS);
    const txSegments = new Uint32Array(3 * TX_SEGMENT.WORDS);
    const port = Object.assign(new MemoryPort(gidFromIp('10.0.0.1')), { txPackets, txSegments });
    const tx = new TransmitQueue(port, () => true);
    tx.open(0, RC.acknowledge, 0, 1, 0);
    tx.addCopied(0, 0, 4096);
    assert.ok(tx.hasRoomForResponse);
    tx.open(0, RC.acknowledge, 0, 1, 0);
    tx.addSegment(0, 0, 8);
    assert.ok(tx.hasRoom(1) && !tx.hasRoomForResponse);
  });

  it('take their payload elsewhere when told, as far as it lies in what has moved', () => {
    const port = new MemoryPort(gidFromIp('10.0.0.1'));
    const tx = new TransmitQueue(port, () => true);
    tx.open(0, RC.acknowledge, 0, 1, 0);
    for (const [region, offset] of [
      [5, 99],
      [5, 100],
      [5, 192],
      [5, 193],
      [6, 100],
      [5, 2 ** 33],
    ] as const) {
      tx.addSegment(region, offset, 8);
    }
    tx.redirect(5, 100, 100, 7);
    const found = Array.from({ length: 6 }, (_, i) => [
      ...port.txSegments.subarray(i * TX_SEGMENT.WORDS, i * TX_SEGMENT.WORDS + 3),
    ]);
    assert.deepEqual(found, [
      [5, 99, 0],
      [7, 0, 0],
      [7, 92, 0],
      [5, 193, 0],
      [6, 100, 0],
      [5, 0, 2],
    ]);
  });
});
