import assert from 'node:assert/strict';
import { type Ia, openIa, type OpenIaOptions } from 'dapl';
import { cm } from 'dapl/plugins/cm';
import { Fabric, mock } from 'dapl/providers/mock';
import { softroce } from 'dapl/providers/softroce';
import { definePlugin } from 'dapl/spi';
import { connected } from './suite/peer.js';

type Open = (which: 0 | 1, options?: OpenIaOptions) => Promise<Ia>;

const OPENERS: Readonly<Record<string, () => Open>> = {
  mock: () => {
    const fabric = new Fabric({ seed: 1, autoRun: true });
    return (which, options) => openIa(mock({ fabric, address: `192.0.2.${which}` }), options);
  },
  softroce: () => (which, options) =>
    openIa(softroce({ addresses: [`127.0.2.${51 + which}`] }), options),
};

/** The CM of the package, which counts what it is asked to do. */
function countingCm(): { plugin: ReturnType<typeof cm>; calls: string[] } {
  const calls: string[] = [];
  const inner = cm({});
  const counting = definePlugin({ ...inner.meta, name: 'counting-cm' }, () => (resolver) => {
    const module = inner.instance(resolver);
    return new Proxy(module, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name, target);
        if (typeof member !== 'function') return member;
        return (...values: unknown[]): unknown => {
          calls.push(String(name));
          return Reflect.apply(member, target, values);
        };
      },
    });
  });
  return { plugin: counting({}), calls };
}

describe('Modules of an open device', () => {
  for (const [name, opener] of Object.entries(OPENERS)) {
    it(`a module given at open takes the place of the provider's own: ${name}`, async () => {
      const open = opener();
      const { plugin, calls } = countingCm();
      const active = await open(0, { modules: { cm: plugin } });
      const passive = await open(1);
      const address = passive.address;
      const close = async (): Promise<void> => {
        await Promise.all([active.close(), passive.close()]);
      };
      await connected({ active, passive, passiveAddress: address, close });
      assert.deepEqual(calls, ['connect']);
      const again = await open(0, { modules: { cm: plugin } });
      await again.close();
      const other = open(0, { modules: { cm: countingCm().plugin } });
      await assert.rejects(other, { code: 'DAT_INVALID_STATE' });
      await close();
      assert.deepEqual(calls, ['connect', 'close']);
    });
  }
});
