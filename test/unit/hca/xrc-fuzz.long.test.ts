/** Mutated XRC packets in the peer's name: slots complete at most once, the device lives on. */
import assert from 'node:assert/strict';
import { QpState, WcStatus, WrOpcode } from '../../../core/spi/index.js';
import { SeededRandom } from '../../../providers/mock/index.js';
import { drain } from '../../support/hca-pair.js';
import { TO, XRC_MTU, XrcHcaPair, data, post } from '../../support/xrc-hca-pair.js';

const ROUNDS = 150;
const PER_ROUND = 40;

function mutated(random: SeededRandom, seen: readonly Uint8Array[]): Uint8Array {
  const packet = seen[random.below(seen.length)]!.slice();
  for (let changes = random.below(4); changes > 0; changes--) {
    packet[random.below(Math.min(packet.length, 40))] = random.u32();
  }
  // Often the PSN that comes next, so that it is no mere duplicate.
  if (random.below(2) === 0) {
    const newest = seen.at(-1)!;
    packet.set(newest.subarray(9, 12), 9);
    packet[11] = packet[11]! + random.below(3);
  }
  // Often an XRC opcode, with a number of a queue that is nearly right.
  if (random.below(2) === 0) packet[0] = 0xa0 | random.below(0x18);
  if (random.below(4) === 0 && packet.length > 15)
    packet[15] = packet[15]! ^ (1 << random.below(8));
  return random.below(6) === 0 ? packet.subarray(0, random.below(packet.length + 1)) : packet;
}

/** Traffic of every kind to both receivers, while its packets come back changed. */
function round(seed: number): boolean {
  const pair = new XrcHcaPair(2);
  const random = new SeededRandom(seed);
  const seen: Uint8Array[] = [];
  for (const side of [pair.a, pair.b]) {
    side.port.filter = (packet) => {
      seen.push(packet.slice());
      return [packet];
    };
  }
  const posted = 6;
  for (const receiver of pair.receivers) {
    for (let slot = 0; slot < posted; slot++) receiver.post(slot, TO + slot * 2048, 2048);
  }
  for (const who of [0, 1]) {
    const { rkey } = pair.receivers[who]!.region;
    const remote = { remoteAddress: pair.b.base + BigInt(0x40000), rkey };
    post(pair, { opcode: WrOpcode.SEND, segments: data(3 * XRC_MTU) }, who);
    post(pair, { opcode: WrOpcode.RDMA_WRITE, segments: data(2 * XRC_MTU), ...remote }, who);
    post(pair, { opcode: WrOpcode.RDMA_READ, segments: data(2 * XRC_MTU), ...remote }, who);
    post(pair, { opcode: WrOpcode.ATOMIC_FETCH_AND_ADD, segments: data(8), ...remote }, who);
    pair.settle();
    for (let i = 0; i < PER_ROUND / 2; i++) {
      (random.below(4) === 0 ? pair.a : pair.b).port.inject(mutated(random, seen));
      if (i % 5 === 0) pair.settle();
    }
  }
  pair.run(300_000);
  const sent = drain(pair.a.sendCq).map(({ status }) => status);
  assert.equal(sent.length, 8, `seed ${seed}: every request ends once`);
  for (const receiver of pair.receivers) {
    const slots = receiver.drain().map(({ wqeIndex }) => wqeIndex);
    assert.equal(new Set(slots).size, slots.length, `seed ${seed}: a slot completed twice`);
    assert.ok(slots.every((slot) => slot < posted));
  }
  const whole = sent.every((status) => status === WcStatus.SUCCESS);
  if (!whole) assert.notEqual(pair.initiator.state, QpState.RTS, `seed ${seed}`);
  return whole;
}

describe('XRC: mutated packets', () => {
  it('break a connection at worst', () => {
    let whole = 0;
    for (let seed = 1; seed <= ROUNDS; seed++) if (round(seed)) whole++;
    assert.ok(whole > 0 && whole < ROUNDS, `${whole} of ${ROUNDS} connections survived`);
  });
});
