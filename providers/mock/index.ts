/**
 * The mock provider (`dapl/providers/mock`): the software HCA, MAD and CM of softroce over a
 * simulated network with virtual time, for tests of protocols and applications. See docs/mock.md.
 */
import { mad } from '../../plugins/mad/index.js';
import { xrc } from '../../plugins/xrc/index.js';
import { cm } from '../../plugins/cm/index.js';
import {
  CLOCK,
  CM,
  DEVICE,
  PROCESS_HOLD,
  LOGGER,
  MAD,
  PACKET_PORT,
  RANDOM,
  SCHEDULER,
  TIMERS,
  XRC,
  definePlugin,
} from '../../core/spi/index.js';
import type {
  DatProviderInit,
  ProviderInstance,
  Registrar,
  Resolver,
} from '../../core/spi/index.js';
import type { HcaParameters } from '../hca/index.js';
import type { Fabric } from './fabric.js';
import { MockNode } from './node.js';
import { optionsOf } from './provider-init.js';

export { Fabric } from './fabric.js';
export type { FabricCounters, FabricOptions, FabricTap, LinkSelection } from './fabric.js';
export type { Fault, FaultAction, FaultRule, PacketMatch, PacketView } from './faults.js';
export { defaultLink } from './link.js';
export type { LinkOptions } from './link.js';
export { MemoryPort } from './memory-port.js';
export type { MemoryPortOptions } from './memory-port.js';
export { MockNode } from './node.js';
export type { MockNodeOptions, SendFaultRule } from './node.js';
export { namedFabric } from './provider-init.js';
export type { RunOptions } from './runner.js';
export { SeededRandom } from './seeded-random.js';
export { VirtualClock, VirtualTimer } from './virtual-clock.js';

export interface MockOptions {
  readonly fabric: Fabric;
  /** IP address in text: a device of that fabric, which the first opening makes. */
  readonly address: string;
  readonly mtuBytes?: number;
  readonly parameters?: Partial<HcaParameters>;
}

interface MockInstance extends ProviderInstance {
  readonly fabric: Fabric;
}

/** A device on a simulated fabric; `fabric.node(address)` is its other side, where faults are. */
export const mock = definePlugin(
  {
    name: 'mock',
    kind: 'provider',
    sdkVersion: '1.0',
    requires: [],
    provides: ['rc', 'ud', 'atomic', 'mad', 'cm', 'xrc'],
  },
  (options: MockOptions): MockInstance => ({
    deviceKey: `mock:${options.fabric.id}:${options.address}`,
    fabric: options.fabric,
    // All nodes of a fabric reach the same peers.
    relatedTo: (other) => (other as Partial<MockInstance>).fabric === options.fabric,
    async open(registrar: Registrar, resolver: Resolver): Promise<void> {
      const { fabric, address, mtuBytes, parameters } = options;
      const node = new MockNode(fabric, {
        addresses: [address],
        logger: resolver.resolve(LOGGER),
        ...(mtuBytes === undefined ? {} : { mtuBytes }),
        ...(parameters === undefined ? {} : { parameters }),
      });
      registrar.bind(CLOCK, () => fabric.clock);
      registrar.bind(TIMERS, () => node.timers);
      registrar.bind(RANDOM, () => node.random);
      registrar.bind(SCHEDULER, () => node.scheduler);
      registrar.bind(PROCESS_HOLD, () => node.processHold);
      registrar.bind(PACKET_PORT, () => node.port);
      registrar.bind(DEVICE, () => node.device);
      registrar.bind(MAD, mad({}).instance);
      registrar.bind(CM, cm({}).instance);
      registrar.bind(XRC, xrc({}).instance);
    },
  }),
);

/** Opened by a line of dat.conf (docs/registry.md). */
export const datProviderInit: DatProviderInit = (_info, iaParams) => mock(optionsOf(iaParams));
