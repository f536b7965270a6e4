/** Shares of half-open connections and of a backlog, as tables of who asks and who gets. */
import assert from 'node:assert/strict';
import { gidFromIp } from '../../../core/spi/index.js';
import { Backlog, Shares } from '../../../plugins/cm/admission/shares.js';

const [A, B, C] = ['10.0.0.1', '10.0.0.2', 'fd00::3'].map(gidFromIp) as [
  Uint8Array,
  Uint8Array,
  Uint8Array,
];

const times = (count: number, take: () => boolean): number =>
  Array.from({ length: count }, take).filter(Boolean).length;

describe('CM: shares of half-open connections', () => {
  it('gives an address as many as are left', () => {
    const shares = new Shares(1024);
    assert.equal(
      times(2000, () => shares.take(A)),
      512,
    );
    assert.equal(
      times(2000, () => shares.take(B)),
      256,
    );
    assert.ok(shares.take(C));
    shares.giveBack(A);
    assert.ok(!shares.take(A));
  });

  it('has a place for who holds none, until there is none at all', () => {
    const shares = new Shares(64);
    const addresses = Array.from({ length: 200 }, (_, i) => gidFromIp(`10.0.1.${i}`));
    for (let round = 0; round < 64; round++) addresses.slice(0, 20).forEach((a) => shares.take(a));
    assert.ok(shares.take(A));
    const rest = addresses.slice(20).filter((a) => shares.take(a)).length;
    assert.ok(rest >= 1 && rest < 44, `${rest}`);
    assert.ok(!shares.take(B));
  });

  it('serves one address with the smallest limit there is', () => {
    const shares = new Shares(1);
    assert.deepEqual([shares.take(A), shares.take(A)], [true, false]);
    shares.giveBack(A);
    assert.ok(shares.take(B));
  });
});

describe('CM: shares of a backlog', () => {
  it('is all for one address while nobody else is turned away', () => {
    const backlog = new Backlog(8);
    assert.equal(
      times(9, () => backlog.take(A, 0)),
      8,
    );
    backlog.giveBack(A);
    assert.ok(backlog.take(A, 0));
  });

  it('keeps the next free place for who was turned away, from who holds more', () => {
    const backlog = new Backlog(4);
    times(4, () => backlog.take(A, 0));
    assert.ok(!backlog.take(B, 0));
    backlog.giveBack(A);
    assert.ok(!backlog.take(A, 1_000));
    assert.ok(backlog.take(B, 500_000));
    backlog.giveBack(A);
    assert.ok(backlog.take(A, 600_000), 'nobody is waiting any more');
  });

  it('serves by turns when there is one place', () => {
    const backlog = new Backlog(1);
    assert.ok(backlog.take(A, 0));
    assert.deepEqual(
      [backlog.take(A, 0), backlog.take(B, 0), backlog.take(C, 0)],
      Array(3).fill(false),
    );
    const served: string[] = [];
    for (let round = 0; round < 30; round++) {
      backlog.giveBack([A, B, C].find((gid) => served.at(-1) === gid.join()) ?? A);
      // The first address asks all the time, the others once.
      for (const gid of [A, A, B, A, C, A]) if (backlog.take(gid, round)) served.push(gid.join());
    }
    const counts = [A, B, C].map((gid) => served.filter((one) => one === gid.join()).length);
    assert.ok(Math.min(...counts) >= 6, counts.join());
  });

  it('keeps no place longer than a request may come again', () => {
    const backlog = new Backlog(1);
    assert.ok(backlog.take(A, 0));
    assert.ok(!backlog.take(B, 0));
    assert.ok(!backlog.take(A, 1_000));
    backlog.giveBack(A);
    assert.ok(backlog.take(A, 9_000_000));
  });

  it('lets no number of addresses keep more than a bounded number of places', () => {
    const backlog = new Backlog(200);
    times(200, () => backlog.take(A, 0));
    for (let i = 0; i < 1000; i++) backlog.take(gidFromIp(`10.1.${i >> 8}.${i & 255}`), 0);
    for (let i = 0; i < 65; i++) backlog.giveBack(A);
    assert.ok(backlog.take(A, 0));
    assert.ok(!backlog.take(A, 0));
  });
});
