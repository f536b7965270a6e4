/** Which CM messages are looked at: the rule of each row of the table in admission.ts. */
import assert from 'node:assert/strict';
import { gidFromIp } from '../../../core/spi/index.js';
import { Admission } from '../../../plugins/cm/admission/admission.js';

const LIMITS = {
  ofPeer: { perSecond: 100, burst: 20 },
  inAll: { perSecond: 400, burst: 80 },
};
const A = gidFromIp('10.0.0.1');
const B = gidFromIp('fd00::1');

let serial = 0;
/** Bytes that have not been there before. */
function fresh(): Uint8Array {
  const mad = new Uint8Array(256);
  new DataView(mad.buffer).setUint32(12, ++serial);
  return mad;
}

function taken(admission: Admission, peer: Uint8Array, count: number, nowUs: number): number {
  let sum = 0;
  for (let i = 0; i < count; i++) if (admission.judge(fresh(), peer, nowUs) === 'taken') sum++;
  return sum;
}

describe('CM: admission', () => {
  it('gives an address its burst at once and its rate in the long run', () => {
    const admission = new Admission(LIMITS, 1);
    assert.equal(taken(admission, A, 100, 0), 20);
    assert.equal(admission.judge(fresh(), A, 9_000), 'overRate');
    assert.equal(taken(admission, A, 100, 50_000), 5);
    assert.equal(taken(admission, A, 100, 60_000_000), 20);
  });

  it('judges each address for itself', () => {
    const admission = new Admission(LIMITS, 1);
    taken(admission, A, 100, 0);
    assert.equal(taken(admission, B, 100, 0), 20);
  });

  it('leaves the second half of what there is to addresses that have been quiet', () => {
    const admission = new Admission(LIMITS, 1);
    const flooders = Array.from({ length: 10 }, (_, i) => gidFromIp(`10.0.1.${i}`));
    // By turns, each address has used half of its burst before half of all is used up.
    const first = flooders.slice(0, 3).map((peer) => taken(admission, peer, 100, 0));
    assert.deepEqual(first, [20, 20, 10]);
    assert.equal(taken(admission, B, 100, 0), 10);
    const rest = flooders.slice(3).map((peer) => taken(admission, peer, 100, 0));
    assert.equal(
      rest.reduce((sum, count) => sum + count),
      20,
    );
    assert.equal(admission.judge(fresh(), B, 0), 'overRate');
  });

  it('has no limit for what is paid back', () => {
    const admission = new Admission(LIMITS, 1);
    for (let i = 0; i < 10_000; i++) {
      assert.equal(admission.judge(fresh(), A, 0), 'taken');
      admission.payBack(A, 1, 0);
    }
    assert.equal(taken(admission, A, 100, 0), 20);
  });

  it('saves nothing up beyond the burst, whatever is paid back', () => {
    const admission = new Admission(LIMITS, 1);
    admission.payBack(A, 1000, 0);
    assert.equal(taken(admission, A, 100, 0), 20);
  });

  it('takes copies of a message now and then, and never for others', () => {
    const admission = new Admission(
      { ofPeer: { perSecond: 1e6, burst: 1e6 }, inAll: { perSecond: 1e6, burst: 1e6 } },
      1,
    );
    const mad = fresh();
    let copies = 0;
    for (let ms = 0; ms < 1000; ms++) {
      for (let i = 0; i < 5; i++) {
        const verdict = admission.judge(mad, A, 1000 * ms);
        if (verdict === 'taken') copies++;
        else assert.equal(verdict, 'repeated');
      }
    }
    assert.equal(copies, 80);
    assert.equal(admission.judge(mad, B, 999_000), 'taken');
    assert.equal(admission.judge(fresh(), A, 999_000), 'taken');
    assert.equal(admission.judge(mad, A, 1_200_000), 'taken');
  });

  it('tells a thousand addresses apart, and many more do not make it forget a flood', () => {
    const admission = new Admission(
      { ofPeer: LIMITS.ofPeer, inAll: { perSecond: 1e6, burst: 1e6 } },
      0x12345,
    );
    assert.equal(taken(admission, A, 100, 0), 20);
    let served = 0;
    for (let i = 0; i < 5000; i++) {
      served += taken(admission, gidFromIp(`10.${1 + (i >> 8)}.0.${i & 255}`), 1, 0);
    }
    assert.ok(served > 4000, `${served} of 5000`);
    assert.equal(admission.judge(fresh(), A, 0), 'overRate');
  });
});
