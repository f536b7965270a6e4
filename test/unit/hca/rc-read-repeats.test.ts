// READs over a bad link, from a responder that is as strict as rdma_rxe with what is asked again:
// it answers what lies in one of the requests that it has had, and of each nothing from before the
// place where it was repeated last. What it does not answer is gone without a word.
import assert from 'node:assert/strict';
import { WcStatus, WrOpcode } from '../../../core/spi/index.js';
import { BTH_LENGTH, bthOpcode, bthPsn } from '../../../core/spi/wire/bth.js';
import { psnAdd, psnDiff } from '../../../providers/hca/wire/psn.js';
import { SeededRandom } from '../../../providers/mock/index.js';
import { HcaPair, connect, drain, postSend } from '../../support/hca-pair.js';

const MTU = 256;
const DEPTH = 4;
const READ_REQUEST = 0x0c;
const [READS, READ_BYTES] = [6, 40 * MTU + 9];

interface Resource {
  readonly psn: number;
  readonly packets: number;
  readonly end: bigint;
  from: bigint;
}

/** What rdma_rxe keeps of READs: the last ones, as many as it has granted. */
class StrictResponder {
  private expected = 0xfffffa;
  private readonly resources: Resource[] = [];
  refused = 0;

  /** Whether it answers. */
  takes(packet: DataView): boolean {
    const psn = bthPsn(packet, 0);
    const from = packet.getBigUint64(BTH_LENGTH);
    const length = packet.getUint32(BTH_LENGTH + 12);
    const packets = Math.max(1, Math.ceil(length / MTU));
    const end = from + BigInt(length);
    const ahead = psnDiff(psn, this.expected);
    if (ahead > 0) return true; // a gap: it says so by a NAK
    if (ahead === 0) {
      this.resources.push({ psn, packets, end, from });
      if (this.resources.length > DEPTH) this.resources.shift();
      this.expected = psnAdd(psn, packets);
      return true;
    }
    const known = this.resources.find(
      (one) => psnDiff(psn, one.psn) >= 0 && psnDiff(psn, psnAdd(one.psn, one.packets)) < 0,
    );
    if (known === undefined || from < known.from || end > known.end) {
      this.refused++;
      return false;
    }
    known.from = from;
    return true;
  }
}

/** Returns how often the responder was asked what it does not answer. */
function readOver(lossShare: number, seed: number): number {
  const pair = new HcaPair(seed, { memoryBytes: 0x60000 });
  const [qpA, qpB] = [pair.a.createQp(), pair.b.createQp()];
  connect(pair, qpA, qpB, { maxRdAtomic: DEPTH, maxDestRdAtomic: DEPTH }, MTU);
  const random = new SeededRandom(seed);
  for (let i = 0; i < READ_BYTES; i++) pair.b.bytes[i] = random.u32();
  const responder = new StrictResponder();
  const isLost = (): boolean => random.u32() / 2 ** 32 < lossShare;
  pair.a.port.filter = (packet) => {
    if (isLost()) return [];
    const view = new DataView(packet.buffer, packet.byteOffset, packet.byteLength);
    return bthOpcode(view, 0) !== READ_REQUEST || responder.takes(view) ? [packet] : [];
  };
  pair.b.port.filter = (packet) => (isLost() ? [] : [packet]);
  const remote = { remoteAddress: pair.b.base, rkey: pair.b.region.rkey };
  const places = Array.from({ length: READS }, (_, i) => 0x4000 * (i + 1));
  for (const [cookie, offset] of places.entries()) {
    const segments = [{ offset, length: READ_BYTES }];
    postSend(pair.a, qpA, { opcode: WrOpcode.RDMA_READ, ...remote, segments, cookie });
  }
  pair.run(20_000_000);
  assert.deepEqual(
    drain(pair.a.sendCq).map(({ cookie, status }) => [cookie, status]),
    places.map((_, cookie) => [cookie, WcStatus.SUCCESS]),
    `seed ${seed}, loss ${lossShare}`,
  );
  const sent = pair.b.bytes.subarray(0, READ_BYTES);
  for (const offset of places) {
    assert.deepEqual(pair.a.bytes.subarray(offset, offset + READ_BYTES), sent);
  }
  return responder.refused;
}

describe('RC: READs asked for again', () => {
  for (const lossShare of [0.01, 0.05, 0.1]) {
    it(`are never more than a strict responder answers, at ${lossShare * 100} % loss`, () => {
      for (let seed = 1; seed <= 40; seed++) assert.equal(readOver(lossShare, seed), 0, `${seed}`);
    });
  }
});
