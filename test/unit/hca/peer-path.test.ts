import assert from 'node:assert/strict';
import { gidFromIp } from '../../../core/spi/index.js';
import {
  NO_PATH,
  type PathPort,
  type PeerPath,
  PeerPaths,
} from '../../../providers/hca/sending/peer-path.js';
import type { ReceivedPacket } from '../../../providers/hca/common/received-packet.js';

/** Counts its paths as ports do: the same peer has the same number while it is in use. */
class Counting implements PathPort {
  readonly uses = new Map<number, number>();

  addPath(gid: Uint8Array): number {
    if (gid[15] === 99) throw new RangeError('no way there');
    const number = gid[15]!;
    this.uses.set(number, (this.uses.get(number) ?? 0) + 1);
    return number;
  }

  releasePath(path: number): void {
    const left = this.uses.get(path)! - 1;
    if (left === 0) this.uses.delete(path);
    else this.uses.set(path, left);
  }
}

const to = (last: number): { gid: Uint8Array; localGidIndex: number } => ({
  gid: gidFromIp(`10.0.0.${last}`),
  localGidIndex: 0,
});

function from(last: number): ReceivedPacket {
  const view = new DataView(to(last).gid.slice().buffer);
  const [source0, source1, source2, source3] = [0, 4, 8, 12].map((at) => view.getUint32(at));
  return { source0, source1, source2, source3, localGidIndex: 0 } as ReceivedPacket;
}

describe('Peer paths', () => {
  it('are shared by connections to one peer, and go with the last of them', () => {
    const port = new Counting();
    const paths = new PeerPaths(port);
    const one = paths.replace(NO_PATH, to(1));
    const same = paths.replace(NO_PATH, to(1));
    const other = paths.replace(NO_PATH, to(2));
    assert.equal(one, same);
    assert.deepEqual([one.number, other.number], [1, 2]);
    assert.deepEqual([one.leadsTo(from(1)), one.leadsTo(from(2))], [true, false]);
    assert.equal(paths.release(one), NO_PATH);
    assert.deepEqual(
      [...port.uses],
      [
        [1, 1],
        [2, 1],
      ],
    );
    assert.equal(paths.release(same), NO_PATH);
    assert.notEqual(paths.replace(NO_PATH, to(1)), one, 'a new one, for the port may have changed');
    assert.equal(paths.release(NO_PATH), NO_PATH);
  });

  it('replace one another, also by the same', () => {
    const port = new Counting();
    const paths = new PeerPaths(port);
    let path: PeerPath = NO_PATH;
    for (const last of [1, 1, 2, 1]) path = paths.replace(path, to(last));
    assert.deepEqual([...port.uses], [[1, 1]]);
    assert.throws(() => paths.replace(path, to(99)), { code: 'ENETUNREACH' });
    assert.deepEqual([...port.uses], [[1, 1]], 'still held');
    paths.release(path);
    assert.equal(port.uses.size, 0);
  });

  it('of who has none lead from nowhere', () => {
    assert.equal(NO_PATH.leadsTo(from(1)), false);
    assert.equal(NO_PATH.number, -1);
  });
});
