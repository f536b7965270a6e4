/**
 * Scripted faults for any provider (`dapl/plugins/faults`): packets that are lost, late, repeated
 * or corrupted, and send requests that fail. The rules are those of the mock's fabric
 * (docs/mock.md); here they apply to one adapter's traffic, over any network.
 */
import { checkOptions, checkValue, integer, optional } from '../../core/spi/checks/index.js';
import { refusing } from '../../core/spi/errors/consumer-errors.js';
import {
  CLOCK,
  type ConfiguredProvider,
  definePlugin,
  DEVICE,
  optional as ifThere,
  PACKET_PORT,
  PROVIDER,
  SpiError,
  TIMERS,
  withModules,
} from '../../core/spi/index.js';
import { observedDevice, over } from '../../core/spi/decorators/index.js';
import { type Fault, FaultScript, refuseUnhit } from './grammar/fault-script.js';
import {
  PACKET_FAULTS,
  type PacketAction,
  type PacketFaultRule,
  type PacketMatch,
  type PacketView,
} from './grammar/packet-faults.js';
import { SeededRandom } from './grammar/seeded-random.js';
import {
  SEND_FAULTS,
  type SendAction,
  type SendMatch,
  type SendView,
} from './grammar/send-faults.js';
import { FaultyPort, type PortTimers } from './faulty-port.js';

export type { Fault, FaultRule, FaultScript, Occurrence } from './grammar/fault-script.js';
export {
  OPCODE_NAMES,
  type PacketAction,
  type PacketFaultRule,
  type PacketMatch,
  type PacketView,
} from './grammar/packet-faults.js';
export type { SendAction, SendFaultRule, SendMatch, SendView } from './grammar/send-faults.js';

export interface FaultsOptions {
  /** Seed of randomness, an integer from 0 to 2^53 - 1; default 1. */
  readonly seed?: number;
}

export interface Faulty {
  /** The wrapped provider, to be opened in place of the original. */
  readonly provider: ConfiguredProvider;
  /**
   * Rules for packets that the adapter sends and receives. Without a packet port (verbs) `add`
   * throws DAT_MODEL_NOT_SUPPORTED; so does openIa, if the rule was added before.
   */
  readonly packets: FaultScript<PacketView, PacketMatch, PacketAction>;
  /** Rules for send requests, which fail unsent, and their queue pair with them. */
  readonly sends: FaultScript<SendView, SendMatch, SendAction>;
  /**
   * Call this at the end of a test.
   * @throws Error that names each active rule that has hit nothing
   */
  assertFaultsHit(): void;
}

const OPTIONS = { seed: optional(integer(0, Number.MAX_SAFE_INTEGER)) };

/**
 * Wraps a provider with faults. Rules can be added and removed at any time.
 * @throws DatError DAT_INVALID_PARAMETER for invalid options
 */
export function faults(provider: ConfiguredProvider, options: FaultsOptions = {}): Faulty {
  const refuse = refusing('faults');
  checkValue('the provider', provider, PROVIDER, refuse);
  checkOptions(options, OPTIONS, refuse);
  const { seed = 1 } = options;
  const packets = new PacketScript(seed);
  const sends = new FaultScript(SEND_FAULTS, seed, chanceOf);
  return {
    provider: withModules(provider, ofPort({ packets }), ofDevice({ packets, sends })),
    packets,
    sends,
    assertFaultsHit: () =>
      refuseUnhit([
        ...packets.unhit.map((fault) => `packets: ${fault}`),
        ...sends.unhit.map((fault) => `sends: ${fault}`),
      ]),
  };
}

function chanceOf(seed: number): SeededRandom {
  return new SeededRandom(seed);
}

/** Rules for packets; `add` throws if the device has no packet port. */
class PacketScript extends FaultScript<PacketView, PacketMatch, PacketAction> {
  /** Name of an open device without a packet port, whose packets cannot be reached. */
  portless: string | undefined = undefined;
  /** The port under the device, once it is open. */
  port: FaultyPort | undefined = undefined;

  constructor(seed: number) {
    super(PACKET_FAULTS, seed, chanceOf);
  }

  override add(rule: PacketFaultRule): Fault {
    if (this.portless !== undefined) throw noPort(this.portless);
    return super.add(rule);
  }
}

function noPort(device: string): SpiError {
  return new SpiError('EOPNOTSUPP', `${device} has no packet port: no rule can reach its packets`);
}

const ofPort = definePlugin(
  {
    name: 'faults',
    kind: 'port',
    sdkVersion: '2.0',
    requires: [],
    provides: [],
    inject: { port: PACKET_PORT },
  },
  ({ port }, { packets }: { readonly packets: PacketScript }) => {
    packets.port = new FaultyPort(port, packets);
    return packets.port;
  },
);

const ofDevice = definePlugin(
  {
    name: 'faults',
    kind: 'device',
    sdkVersion: '2.0',
    requires: [],
    provides: [],
    // Timers need the device, and the device its port: so the port gets its timers here.
    inject: { device: DEVICE, port: ifThere(PACKET_PORT), timers: TIMERS, clock: CLOCK },
  },
  (
    { device, port, timers, clock },
    { packets, sends }: { readonly packets: PacketScript } & Pick<Faulty, 'sends'>,
  ) => {
    packets.portless = port === undefined ? device.name : undefined;
    if (port === undefined && packets.any) throw noPort(device.name);
    const given: PortTimers = { timers, clock };
    packets.port?.useTimers(given);
    const members = observedDevice(device, clock, {
      fail: ({ qpn, opcode = 0 }) =>
        sends.any ? sends.decide({ qpn, opcode })?.status : undefined,
    });
    return over(device, members);
  },
);
