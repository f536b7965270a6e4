/** The provider of a stranger's device and its connection manager, from public entries alone. */
import {
  CLOCK,
  CM,
  type ConfiguredProvider,
  definePlugin,
  DEVICE,
  kinds,
  PROCESS_HOLD,
  RANDOM,
  SCHEDULER,
  TIMERS,
} from 'dapl/spi';
import { StrangerCm } from './cm.js';
import { StrangerDevice } from './device.js';
import type { Mutant } from './mutants.js';

export interface StrangerOptions {
  readonly address: string;
  readonly mutant?: Mutant;
}

const plugin = definePlugin(
  {
    name: 'stranger',
    kind: 'provider',
    sdkVersion: '2.0',
    requires: [],
    provides: ['rc', 'cm'],
    options: { address: kinds.TEXT, mutant: kinds.optional(kinds.TEXT) },
  },
  ({ address, mutant }: StrangerOptions) => ({
    deviceKey: `stranger:${address}`,
    async open(registrar) {
      const device = new StrangerDevice(address, mutant);
      let held = 0;
      const hold = (by: number): void => {
        held += by;
        device.setHold(held > 0);
      };
      registrar.bind(CLOCK, () => device.clock);
      registrar.bind(TIMERS, () => device.timers);
      registrar.bind(RANDOM, () => ({ u32: () => Math.floor(Math.random() * 2 ** 32) }));
      registrar.bind(SCHEDULER, () => device);
      registrar.bind(PROCESS_HOLD, () => ({ retain: () => hold(1), release: () => hold(-1) }));
      registrar.bind(DEVICE, () => device);
      registrar.bind(CM, () => new StrangerCm(device));
    },
  }),
);

export function stranger(options: StrangerOptions): ConfiguredProvider {
  return plugin(options);
}
