/** What is kept for the end of the process by a signal: the DREQ of each established connection. */
import assert from 'node:assert/strict';
import { type AddressVector, SpiError } from '../../../core/spi/index.js';
import { parseCmMad } from '../../../plugins/cm/wire/message.js';
import { CmPair } from '../../support/cm-pair.js';
import type { FakeDevice } from '../../support/fake-gsi-device.js';

interface Kept {
  readonly mad: Uint8Array;
  readonly to: AddressVector;
}

/** What a device keeps, by its number. */
function partingsOf(device: FakeDevice): Map<number, Kept> {
  const kept = new Map<number, Kept>();
  let next = 0;
  Object.assign(device, {
    keepExitMad: (mad: Uint8Array, to: AddressVector) => {
      kept.set(next, { mad: mad.slice(), to });
      return next++;
    },
    dropExitMad: (parting: number) => assert.ok(kept.delete(parting), `${parting} is kept`),
  });
  return kept;
}

describe('CM: what is kept for the end of the process', () => {
  const scene = (): { pair: CmPair; a: Map<number, Kept>; b: Map<number, Kept> } => {
    const kept: Map<number, Kept>[] = [];
    const prepare = (device: FakeDevice): void => void kept.push(partingsOf(device));
    const pair = new CmPair({ a: { prepare }, b: { prepare } });
    const [a, b] = kept;
    assert.ok(a && b);
    return { pair, a, b };
  };

  it('is a DREQ of each side that the other takes for its own', async () => {
    const { pair, a, b } = scene();
    const { active, passive } = await pair.established();
    assert.deepEqual([a.size, b.size], [1, 1]);
    const sides = [
      { kept: [...a.values()], qpn: passive.qp.qpn, to: pair.b, from: pair.a },
      { kept: [...b.values()], qpn: active.qp.qpn, to: pair.a, from: pair.b },
    ];
    for (const { kept, qpn, to, from } of sides) {
      const [{ mad, to: address } = assert.fail()] = kept;
      assert.deepEqual(address.gid, to.device.gids[0]);
      const parsed = parseCmMad(mad);
      assert.ok(parsed?.message.name === 'DREQ');
      assert.equal(parsed.message.body.remoteQpn, qpn);
      assert.ok(
        mad.subarray(52).every((byte) => byte === 0),
        'as short as a device wants it',
      );
      const [source, destination] = [from.device.gids[0], to.device.gids[0]];
      assert.ok(source && destination);
      to.device.receive(mad, source, destination);
    }
    await pair.world.runFor(1_000);
    for (const { events } of [active, passive]) {
      assert.deepEqual(events.at(-1), { type: 'disconnected', byPeer: true });
    }
    assert.deepEqual([a.size, b.size], [0, 0]);
  });

  for (const end of ['disconnect', 'abandon'] as const) {
    it(`is dropped by ${end}`, async () => {
      const { pair, a, b } = scene();
      const { active } = await pair.established();
      active.connection[end]();
      assert.equal(a.size, 0);
      await pair.world.runFor(1_000);
      assert.equal(b.size, 0);
    });
  }

  it('is dropped with the module', async () => {
    const { pair, a } = scene();
    await pair.established();
    const closed = pair.a.cm.close();
    assert.equal(a.size, 0);
    await pair.world.run();
    await closed;
  });

  it('is nothing before the connection is established', async () => {
    const { pair, a, b } = scene();
    pair.listen(() => undefined);
    pair.connect();
    await pair.world.runFor(1_000);
    assert.deepEqual([a.size, b.size], [0, 0]);
  });

  it('is left out where the device cannot keep it: the connection is not concerned', async () => {
    const prepare = (device: FakeDevice): void => {
      const keepExitMad = (): number => {
        throw new SpiError('ENETUNREACH', 'no way there');
      };
      Object.assign(device, { keepExitMad, dropExitMad: () => assert.fail() });
    };
    const pair = new CmPair({ a: { prepare } });
    const { active } = await pair.established();
    active.connection.disconnect();
    await pair.world.run();
    assert.ok(pair.a.cm.isIdle);
  });
});
