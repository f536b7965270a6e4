/** Address handles of QP1: shared by sends to one place, kept up to a bound, given back. */
import assert from 'node:assert/strict';
import { type Gid, gidFromIp } from '../../../core/spi/index.js';
import { AddressHandles } from '../../../plugins/mad/gsi-port.js';
import { FakeDevice } from '../../support/fake-gsi-device.js';
import { FakeNetwork } from '../../support/fake-network.js';
import { VirtualWorld } from '../../support/virtual-world.js';

function scene(maxIdle: number): { device: FakeDevice; handles: AddressHandles } {
  const gids = [gidFromIp('10.0.0.1'), gidFromIp('10.0.1.1')];
  const device = new FakeDevice(new FakeNetwork(new VirtualWorld()), gids, {});
  return { device, handles: new AddressHandles(device, device.createProtectionDomain(), maxIdle) };
}

const host = (number: number): Gid => gidFromIp(`10.0.0.${number}`);

/** Hosts that the device has an address handle for. */
const hostsOf = ({ addressHandles }: FakeDevice): (number | undefined)[] =>
  [...addressHandles.values()].map(({ gid }) => gid[15]).sort();

describe('MAD: address handles', () => {
  it('are one to a destination: GID, and local address', () => {
    const { device, handles } = scene(4);
    const first = handles.acquire(host(2), 0);
    assert.equal(handles.acquire(host(2), 0), first);
    assert.notEqual(handles.acquire(host(2), 1).handle, first.handle);
    assert.notEqual(handles.acquire(host(3), 0).handle, first.handle);
    assert.deepEqual(device.addressHandles.get(first.handle), { gid: host(2), localGidIndex: 0 });
    assert.equal(device.addressHandles.size, 3);
    assert.equal(handles.size, 3);
  });

  it('are what they were made for, though the caller changes its GID', () => {
    const { handles } = scene(4);
    const gid = host(2);
    const first = handles.acquire(gid, 0);
    gid[15] = 9;
    assert.deepEqual(first.gid, host(2));
    assert.equal(handles.acquire(host(2), 0), first);
  });

  it('stay while a send uses them; of the idle ones the longest unused goes first', () => {
    const { device, handles } = scene(2);
    const [one, two, three, four] = [1, 2, 3, 4].map((number) => handles.acquire(host(number), 0));
    assert.ok(one && two && three && four);
    handles.acquire(host(1), 0);
    for (const used of [one, two, three]) handles.release(used);
    // Four are more than two: 2 and 3 have gone as they became idle, 1 and 4 are in use.
    assert.deepEqual(hostsOf(device), [1, 4]);
    handles.release(handles.acquire(host(5), 0));
    assert.deepEqual(hostsOf(device), [1, 4]);
    handles.release(one);
    handles.release(four);
    assert.deepEqual(hostsOf(device), [1, 4]);
    // 1 was made first, but is used anew: 4 is the longest unused.
    handles.release(handles.acquire(host(1), 0));
    handles.release(handles.acquire(host(6), 0));
    assert.deepEqual(hostsOf(device), [1, 6]);
    // A handle that has gone is made anew.
    assert.notEqual(handles.acquire(host(4), 0), four);
  });

  it('do not go when there are no more than may be kept', () => {
    const { device, handles } = scene(2);
    const [one, two] = [1, 2].map((number) => handles.acquire(host(number), 0));
    assert.ok(one && two);
    handles.release(one);
    handles.release(two);
    assert.deepEqual(hostsOf(device), [1, 2]);
    assert.equal(handles.acquire(host(1), 0), one);
  });

  it('all go at the end, in use or not', () => {
    const { device, handles } = scene(4);
    handles.acquire(host(1), 0);
    handles.release(handles.acquire(host(2), 0));
    handles.close();
    assert.equal(device.addressHandles.size, 0);
    assert.equal(handles.size, 0);
  });
});
