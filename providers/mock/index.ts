/**
 * The mock provider (`dapl/providers/mock`): the software HCA, MAD and CM of softroce over a
 * simulated network with virtual time, for tests of protocols and applications. See docs/mock.md.
 */
import {
  checkValue,
  instanceOf,
  integer,
  optional,
  show,
  TEXT,
} from '../../core/spi/checks/index.js';
import { einval } from '../../core/spi/errors/einval.js';
import {
  type DatProviderInit,
  definePlugin,
  integerOption,
  type ProviderInstance,
  readIaParams,
  SpiError,
  token,
} from '../../core/spi/index.js';
import { HCA_PROVIDES, type HcaParameters } from '../hca/index.js';
import { bindHca } from '../kit/bind-hca.js';
import { PARAMETERS, parametersOf } from '../hca/common/parameters.js';
import { gidsOf, PORT_OPTIONS } from '../hca/common/port-options.js';
import { Fabric } from './fabric.js';
import { MockNode } from './node.js';
import { joinGroup } from './join-group.js';

export type { Bottleneck, BottleneckOptions } from './bottleneck.js';
export { Fabric } from './fabric.js';
export type {
  FabricCounters,
  FabricOptions,
  FabricTap,
  LinkSelection,
  LossReason,
} from './fabric.js';
export type { Fault, FaultRule, Occurrence } from '../../plugins/faults/grammar/fault-script.js';
export { OPCODE_NAMES } from '../../plugins/faults/grammar/packet-faults.js';
export type {
  PacketAction,
  PacketFaultRule,
  PacketMatch,
  PacketView,
} from '../../plugins/faults/grammar/packet-faults.js';
export type {
  ReceiveAction,
  ReceiveFaultRule,
  ReceiveMatch,
  ReceiveView,
} from '../../plugins/faults/grammar/receive-faults.js';
export type {
  SendAction,
  SendFaultRule,
  SendMatch,
} from '../../plugins/faults/grammar/send-faults.js';
export { defaultLink } from './link.js';
export type { LinkOptions } from './link.js';
export { MemoryPort } from './memory-port.js';
export type { MemoryPortOptions } from './memory-port.js';
export { MockNode } from './node.js';
export type { MockNodeOptions } from './node.js';
export type {
  IcmpReport,
  PortAction,
  PortFaultRule,
  PortFaults,
  PortMatch,
} from './port-faults.js';
export type { RunOptions } from './runner.js';
export { SeededRandom } from '../../plugins/faults/grammar/seeded-random.js';
export { VirtualClock, VirtualTimer } from './virtual-clock.js';
export type { TappedPacket } from './wire-packet.js';

export interface MockOptions {
  readonly fabric: Fabric;
  /** IP address in text: a device of that fabric, which the first opening makes. */
  readonly address: string;
  /**
   * Name of a pretended process: those of one address with different names share it, as programs
   * do with softroce's `shared`, and each can be killed (docs/mock.md). Opening takes virtual time.
   */
  readonly process?: string;
  /** Upper bound of the path MTU: 256, 512, 1024, 2048 or 4096; default the fabric's. */
  readonly mtuBytes?: number;
  /** Limits and timers of the software HCA; docs/softroce.md has their ranges. */
  readonly parameters?: Partial<HcaParameters>;
}

interface MockInstance extends ProviderInstance {
  readonly fabric: Fabric;
}

const OPTIONS = {
  fabric: instanceOf(Fabric, 'a Fabric: new Fabric({ seed, autoRun: true })'),
  address: TEXT,
  process: optional(TEXT),
  mtuBytes: PORT_OPTIONS.mtuBytes,
  parameters: PARAMETERS,
};
const NODE = token<MockNode>('mock/node');

/** A device on a simulated fabric; `fabric.node(address)` is its other side, where faults are. */
export const mock = definePlugin(
  {
    name: 'mock',
    kind: 'provider',
    sdkVersion: '2.0',
    requires: [],
    provides: [...HCA_PROVIDES, 'multicast'],
    options: OPTIONS,
  },
  ({ fabric, address, process, mtuBytes, parameters: given }: MockOptions): MockInstance => {
    const addresses = [address];
    gidsOf(addresses);
    const parameters = parametersOf(given);
    return {
      deviceKey: `mock:${fabric.id}:${address}${process === undefined ? '' : `:${process}`}`,
      fabric,
      // All nodes of a fabric reach the same peers.
      relatedTo: (other) => (other as Partial<MockInstance>).fabric === fabric,
      async open(registrar, logger): Promise<void> {
        const group =
          process === undefined
            ? undefined
            : await joinGroup(fabric.systemOf(addresses), process, logger);
        const portOptions = { addresses, ...(mtuBytes !== undefined && { mtuBytes }) };
        const port = group
          ? fabric.openPortOver(group.sockets, portOptions)
          : fabric.openPort(portOptions);
        const options = { addresses, port, logger, parameters, ...(group && { group }) };
        bindHca(registrar, {
          port,
          node: NODE,
          makeNode: (through) => new MockNode(fabric, { ...options, through }),
          clock: fabric.clock,
          onOpen: (node, cm) => group?.serve({ node, cm, logger }),
        });
      },
    };
  },
);

// Lines of dat.conf: `"10.0.0.1"`, `"10.0.0.1 fabric=lab seed=42 mtuBytes=4096"`.

const PARAMS = ['fabric', 'seed', 'mtuBytes'];
const SEED = optional(integer(0, Number.MAX_SAFE_INTEGER));
const DEFAULT_FABRIC = 'default';

interface NamedFabric {
  readonly fabric: Fabric;
  readonly seed: number;
}
const fabrics = new Map<string, NamedFabric>();

/**
 * The fabric of this process that lines of dat.conf call by a name. It runs by itself
 * (`autoRun: true`) and is made by the first line that asks.
 * @param seed of its making; default 1
 * @throws SpiError('EINVAL') for a seed that is none, and when it has been made with another seed
 */
export function namedFabric(name: string, seed?: number): Fabric {
  checkValue('name', name, TEXT, einval);
  checkValue('seed', seed, SEED, einval);
  const present = fabrics.get(name);
  if (present === undefined) {
    const made = { fabric: new Fabric({ seed: seed ?? 1, autoRun: true }), seed: seed ?? 1 };
    fabrics.set(name, made);
    return made.fabric;
  }
  if (seed === undefined || seed === present.seed) return present.fabric;
  throw new SpiError(
    'EINVAL',
    `fabric ${show(name)} was made with seed ${present.seed}, not ${seed}`,
  );
}

/**
 * The options that an ia_params field stands for: an address, perhaps a port number (0 or 1), then
 * options.
 * @throws SpiError('EINVAL')
 */
function optionsOf(iaParams: string): MockOptions {
  const params = readIaParams(iaParams, PARAMS);
  const [address, portNumber = '0', ...rest] = params.words;
  if (address === undefined || rest.length > 0 || !['0', '1'].includes(portNumber)) {
    const expected = 'an address and perhaps port number 0 or 1, such as "10.0.0.1 fabric=lab"';
    throw einval('ia_params', iaParams, expected);
  }
  const mtuBytes = integerOption(params, 'mtuBytes');
  const seed = integerOption(params, 'seed');
  return {
    fabric: namedFabric(params.options.fabric ?? DEFAULT_FABRIC, seed),
    address,
    ...(mtuBytes !== undefined && { mtuBytes }),
  };
}

/** Opened by a line of dat.conf (docs/registry.md). */
export const datProviderInit: DatProviderInit = (_info, iaParams) => mock(optionsOf(iaParams));
