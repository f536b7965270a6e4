import assert from 'node:assert/strict';
import { type Ia, openIa, type OpenIaOptions } from 'dapl';
import { cm } from 'dapl/plugins/cm';
import { mad } from 'dapl/plugins/mad';
import { xrc } from 'dapl/plugins/xrc';
import { Fabric, mock } from 'dapl/providers/mock';
import { softroce } from 'dapl/providers/softroce';
import { verbs } from 'dapl/providers/verbs';
import {
  CM,
  type ConfiguredModule,
  type ConfiguredProvider,
  definePlugin,
  withModules,
} from 'dapl/spi';
import { CM_LIBRARY, loadCmFake } from '../fake-verbs/cm-host.js';
import { FAKE_LIBIBVERBS, fakeVerbs, Mode } from '../fake-verbs/control.js';
import { counting } from '../support/counting.js';
import { loopback } from '../support/loopback.js';
import { connected } from '../../plugins/testing/suite/peer.js';

type Open = (which: 0 | 1, options?: OpenIaOptions) => Promise<Ia>;
type Over = (provider: ConfiguredProvider) => ConfiguredProvider;

const OPENERS: Readonly<Record<string, (over?: Over) => Open>> = {
  mock: (over = same) => {
    const fabric = new Fabric({ seed: 1, autoRun: true });
    return (which, options) => openIa(over(mock({ fabric, address: `192.0.2.${which}` })), options);
  },
  softroce:
    (over = same) =>
    (which, options) =>
      openIa(over(softroce({ addresses: [loopback(2, 51 + which)] })), options),
  'verbs without hardware': (over = same) => {
    const [fake, cmFake] = [fakeVerbs(), loadCmFake()];
    fake.restore();
    fake.setMode(Mode.THREAD);
    const libraries = { verbs: FAKE_LIBIBVERBS, rdmacm: CM_LIBRARY };
    return (which, options) => {
      const device = `fake${which}`;
      cmFake.addAddress(`198.51.100.${which + 1}`, device);
      return openIa(over(verbs({ device, libraries })), options);
    };
  },
};

function same(provider: ConfiguredProvider): ConfiguredProvider {
  return provider;
}

/** A CM plugin over the CM that is there: each call goes through it, and is counted. */
function countingCm(name = 'counting', calls: string[] = []): Counting {
  const meta = { name, kind: 'cm', sdkVersion: '2.0', requires: [], provides: [] } as const;
  const plugin = definePlugin({ ...meta, inject: { own: CM } }, ({ own }) =>
    counting(own, (call) => void calls.push(`${name}: ${call}`)),
  );
  return { plugin: plugin({}), calls };
}

interface Counting {
  readonly plugin: ConfiguredModule<'cm'>;
  readonly calls: string[];
}

describe('Modules of an open device', () => {
  for (const [name, opener] of Object.entries(OPENERS)) {
    it(`a module given at open stands over the provider's own: ${name}`, async () => {
      const open = opener();
      const { plugin, calls } = countingCm();
      const active = await open(0, { modules: { cm: plugin } });
      const passive = await open(1);
      const address = passive.address;
      const close = async (): Promise<void> => {
        await Promise.all([active.close(), passive.close()]);
      };
      await connected({ active, passive, passiveAddress: address, close });
      assert.deepEqual(calls, ['counting: connect']);
      const again = await open(0, { modules: { cm: plugin } });
      await again.close();
      const other = open(0, { modules: { cm: countingCm().plugin } });
      await assert.rejects(other, { code: 'DAT_INVALID_STATE' });
      await close();
      assert.deepEqual(calls, ['counting: connect', 'counting: close']);
    });

    it(`a module stands over one that stands over the provider's own: ${name}`, async () => {
      const calls: string[] = [];
      const [lower, upper] = ['lower', 'upper'].map((each) => countingCm(each, calls).plugin);
      assert.ok(lower && upper);
      const open = opener((provider) => withModules(provider, lower));
      const active = await open(0, { modules: { cm: upper } });
      const passive = await open(1);
      const close = async (): Promise<void> => {
        await Promise.all([active.close(), passive.close()]);
      };
      await connected({ active, passive, passiveAddress: passive.address, close });
      // Both devices have the lower one.
      assert.deepEqual(calls, ['lower: listen', 'upper: connect', 'lower: connect']);
      await active.close();
      assert.deepEqual(calls.slice(-2), ['upper: close', 'lower: close']);
      await close();
      assert.equal(calls.filter((call) => call === 'upper: close').length, 1);
      assert.equal(calls.filter((call) => call === 'lower: close').length, 2);
    });

    // Ours need QP1, which the system keeps for itself.
    if (name.startsWith('verbs')) continue;
    it(`a module in place of the provider's own is made of the rest: ${name}`, async () => {
      const open = opener();
      const active = await open(0, { modules: { cm: cm({}), mad: mad({}), xrc: xrc({}) } });
      const passive = await open(1, { modules: { cm: cm({ maxHalfOpen: 16 }) } });
      const close = async (): Promise<void> => {
        await Promise.all([active.close(), passive.close()]);
      };
      await connected({ active, passive, passiveAddress: passive.address, close });
      await close();
    });
  }
});
