import assert from 'node:assert/strict';
import { HostNumbers, PeerNumbers } from '../../providers/softroce/dgram/identification.js';

/** A peer that has proved to count from its host's counter, and the last number it used. */
function counting(from: number): { numbers: PeerNumbers; host: HostNumbers; last: number } {
  const host = new HostNumbers();
  const numbers = new PeerNumbers(host);
  for (let i = 0; i < 20; i++) assert.ok(numbers.admit((from + i) & 0xffff, 0));
  return { numbers, host, last: (from + 19) & 0xffff };
}

describe('identification window', () => {
  it('believes anything of a peer that is new', () => {
    const numbers = new PeerNumbers(new HostNumbers());
    for (const id of [40_000, 3, 65_535, 20_000]) assert.ok(numbers.admit(id, 0));
  });

  it('holds a peer that counts to its counter, also when it wraps', () => {
    for (const from of [1000, 65_530, 65_516]) {
      const { numbers, last } = counting(from);
      assert.ok(numbers.admit((last + 200) & 0xffff, 0));
      assert.ok(!numbers.admit((last + 20_000) & 0xffff, 0));
      assert.ok(numbers.admit((last + 100) & 0xffff, 0)); // overtaken
    }
  });

  it('lets the counter of a host run on while it is silent', () => {
    const { numbers, last } = counting(30_000);
    assert.ok(!numbers.admit((last + 5000) & 0xffff, 10));
    assert.ok(numbers.admit((last + 5000) & 0xffff, 1010));
  });

  it('knows one counter for all peers of a host', () => {
    const { host, last } = counting(30_000);
    const other = new PeerNumbers(host);
    for (let i = 1; i <= 20; i++) assert.ok(other.admit(last + i, 0));
    assert.ok(!other.admit(last + 10_000, 0));
  });

  it('holds a peer that numbers from 0 to that', () => {
    const numbers = new PeerNumbers(new HostNumbers());
    for (let i = 0; i < 20; i++) assert.ok(numbers.admit(i % 5, 0));
    assert.ok(numbers.admit(43, 0));
    assert.ok(!numbers.admit(9000, 0));
    assert.ok(numbers.admit(0, 0));
  });

  it('changes its mind when the next packet follows on', () => {
    const { numbers, last } = counting(30_000);
    const start = (last + 20_000) & 0xffff;
    assert.ok(!numbers.admit(start, 0));
    assert.ok(numbers.admit(start + 1, 0));
    assert.ok(numbers.admit(start + 2, 0));
  });
});
