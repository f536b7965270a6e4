import assert from 'node:assert/strict';
import fc from 'fast-check';
import * as syndrome from '../../../providers/hca/wire/aeth-syndrome.js';
import * as psn from '../../../providers/hca/wire/psn.js';
import { RNR_TIMER_US, rnrTimerUs } from '../../../providers/hca/wire/aeth-syndrome.js';

describe('PSN arithmetic', () => {
  it('wraps at 2^24', () => {
    assert.equal(psn.psnNext(0xffffff), 0);
    assert.equal(psn.psnAdd(0xfffffe, 5), 3);
    assert.equal(psn.psnAdd(3, -5), 0xfffffe);
    assert.equal(psn.psnDiff(2, 0xfffffe), 4);
    assert.equal(psn.psnDiff(0xfffffe, 2), -4);
    assert.equal(psn.psnDiff(0x800000, 0), -0x800000);
  });

  it('psnDiff undoes psnAdd inside the window', () => {
    const anyPsn = fc.integer({ min: 0, max: 0xffffff });
    const step = fc.integer({ min: -0x800000, max: 0x7fffff });
    fc.assert(
      fc.property(anyPsn, step, (from, count) => {
        assert.equal(psn.psnDiff(psn.psnAdd(from, count), from), count);
      }),
    );
  });

  it('knows ranges that wrap', () => {
    assert.equal(psn.psnInRange(0xffffff, 0xfffffe, 4), true);
    assert.equal(psn.psnInRange(1, 0xfffffe, 4), true);
    assert.equal(psn.psnInRange(2, 0xfffffe, 4), false);
    assert.equal(psn.psnInRange(0xfffffd, 0xfffffe, 4), false);
    assert.equal(psn.psnInRange(5, 5, 0), false);
  });
});

describe('AETH syndromes', () => {
  it('are the bytes peers send', () => {
    assert.equal(syndrome.SYNDROME.ack, 0x1f);
    assert.equal(syndrome.rnrNakSyndrome(0), 0x20);
    assert.equal(syndrome.rnrNakSyndrome(31), 0x3f);
    const { nakPsnSequence, nakInvalidRequest, nakRemoteAccess, nakRemoteOperational } =
      syndrome.SYNDROME;
    assert.deepEqual(
      [nakPsnSequence, nakInvalidRequest, nakRemoteAccess, nakRemoteOperational],
      [0x60, 0x61, 0x62, 0x63],
    );
  });

  it('split into type and value for all 256 bytes', () => {
    for (let byte = 0; byte < 256; byte += 1) {
      assert.equal(syndrome.syndromeType(byte), Math.floor((byte % 128) / 32));
      assert.equal(syndrome.syndromeValue(byte), byte % 32);
    }
  });
});

describe('RNR timer', () => {
  it('has the 32 times of the specification', () => {
    // prettier-ignore
    const ms = [
      655.36, 0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.12, 0.16, 0.24, 0.32, 0.48, 0.64, 0.96, 1.28,
      1.92, 2.56, 3.84, 5.12, 7.68, 10.24, 15.36, 20.48, 30.72, 40.96, 61.44, 81.92, 122.88, 163.84,
      245.76, 327.68, 491.52,
    ];
    assert.deepEqual(
      RNR_TIMER_US,
      ms.map((time) => Math.round(time * 1000)),
    );
    assert.equal(rnrTimerUs(0x20 | 12), 640, 'only the low 5 bits count');
  });
});
