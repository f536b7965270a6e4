/** A provider of fakes, and an interface adapter opened on it. */
import { type Ia, type OpenIaOptions, openIa } from '../../plugins/node/index.js';
import {
  CLOCK,
  CM,
  type ConfiguredPlugin,
  DEVICE,
  definePlugin,
  PROCESS_HOLD,
  MAD,
  type MadModule,
  part,
  type ProviderInstance,
  RANDOM,
  type Registrar,
  SCHEDULER,
  TIMERS,
} from '../../core/spi/index.js';
import { FakeCm } from './fake-cm.js';
import { FakeDevice } from './fake-device.js';
import { FakeWorld } from './fake-world.js';

/** Everything that a test wants to reach. */
export class FakeProvider implements ProviderInstance {
  private static count = 0;
  readonly deviceKey = `fake-${FakeProvider.count++}`;
  readonly world = new FakeWorld();
  readonly device = new FakeDevice(this.world);
  readonly cm = new FakeCm(this.world, this.device.ended);
  opened = 0;
  /** Thrown by the next open. */
  failNext: Error | undefined = undefined;

  async open(registrar: Registrar): Promise<void> {
    this.opened++;
    await Promise.resolve();
    const { world } = this;
    registrar.bind(CLOCK, () => world);
    registrar.bind(TIMERS, () => world);
    registrar.bind(RANDOM, () => world);
    registrar.bind(SCHEDULER, () => world);
    registrar.bind(PROCESS_HOLD, () => world);
    registrar.bind(DEVICE, () => this.device);
    registrar.bind(MAD, () => this.mad());
    registrar.bind(
      CM,
      part({ mad: MAD }, () => this.cm),
    );
    const error = this.failNext;
    this.failNext = undefined;
    if (error !== undefined) throw error;
  }

  private mad(): MadModule {
    return {
      registerAgent: () => {
        throw new Error('no agents here');
      },
      close: async () => void this.device.ended.push('mad'),
    };
  }

  plugin(): ConfiguredPlugin<'provider'> {
    const meta = {
      name: 'fake',
      kind: 'provider',
      sdkVersion: '2.0',
      requires: [],
      provides: ['rc', 'mad', 'cm'],
    } as const;
    return definePlugin(meta, () => this)(undefined);
  }
}

export interface FakeIa {
  readonly ia: Ia;
  readonly fake: FakeProvider;
  readonly world: FakeWorld;
  readonly device: FakeDevice;
  readonly cm: FakeCm;
}

export async function openFake(options: OpenIaOptions = {}): Promise<FakeIa> {
  const fake = new FakeProvider();
  const ia = await openIa(fake.plugin(), options);
  const { world, device, cm } = fake;
  return { ia, fake, world, device, cm };
}
