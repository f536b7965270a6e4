/** The measured share of damaged packets that the port takes for right ones. */
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const Numbering = { FROM_ZERO: 0, ONE_COUNTER: 1, AT_RANDOM: 2 } as const;

interface Addon {
  /** @returns how many damaged packets passed, and how many right ones were refused */
  measure(
    this: void,
    numbering: number,
    ipv6: boolean,
    packets: number,
    seed: number,
  ): [number, number];
}

const path = join(import.meta.dirname, '../../../build/native/icrc-share.node');
const { measure } = createRequire(import.meta.url)(path) as Addon;

const PACKETS = 2 ** 23;
const SEED = 20261121;

describe('share of damaged packets that pass the ICRC check', function () {
  this.timeout(120_000);

  it('is far below 2^-16 for a peer that numbers each datagram from 0, as ours do', () => {
    const [passed, refused] = measure(Numbering.FROM_ZERO, false, PACKETS, SEED);
    assert.ok(passed <= PACKETS / 2 ** 20, `${String(passed)} of ${String(PACKETS)}`);
    assert.ok(refused <= passed, `${String(refused)} right ones refused`);
  });

  it('is far below 2^-16 for a kernel, which numbers from one counter', () => {
    const [passed, refused] = measure(Numbering.ONE_COUNTER, false, PACKETS, SEED);
    assert.ok(passed <= PACKETS / 2 ** 20, `${String(passed)} of ${String(PACKETS)}`);
    assert.ok(refused <= passed, `${String(refused)} right ones refused`);
  });

  it('is 2^-16 for a peer whose numbers follow no rule', () => {
    const [passed, refused] = measure(Numbering.AT_RANDOM, false, PACKETS, SEED);
    const expected = PACKETS / 2 ** 16;
    const spread = 4 * Math.sqrt(expected);
    assert.ok(Math.abs(passed - expected) < spread, `${String(passed)} of ${String(PACKETS)}`);
    assert.equal(refused, 0);
  });

  it('is zero over IPv6, which hides nothing', () => {
    const [passed, refused] = measure(Numbering.FROM_ZERO, true, PACKETS, SEED);
    assert.deepEqual([passed, refused], [0, 0]);
  });
});
