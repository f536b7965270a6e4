/**
 * Faults of any provider, by script (`dapl/plugins/faults`): packets that are lost, late, repeated
 * or spoilt, and send requests that fail. The rules are those of the mock's fabric (docs/mock.md);
 * here they are for what one adapter sends and receives, over whatever network it has.
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
  /** In place of the provider. */
  readonly provider: ConfiguredProvider;
  /**
   * Rules for packets that the adapter sends and receives. Without a packet port (verbs) `add`
   * throws DAT_MODEL_NOT_SUPPORTED; so does openIa, if the rule was added before.
   */
  readonly packets: FaultScript<PacketView, PacketMatch, PacketAction>;
  /** Rules for send requests, which fail unsent, and their queue pair with them. */
  readonly sends: FaultScript<SendView, SendMatch, SendAction>;
  /**
   * For the end of a test.
   * @throws Error that names each rule at work that has hit nothing
   */
  assertFaultsHit(): void;
}

const OPTIONS = { seed: optional(integer(0, Number.MAX_SAFE_INTEGER)) };

/**
 * A provider whose faults are rules that can be added and removed at any time.
 * @throws DatError DAT_INVALID_PARAMETER for options that are none
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

/** Rules of packets, and whether there are any to be had. */
class PacketScript extends FaultScript<PacketView, PacketMatch, PacketAction> {
  /** Device without a packet port, whose packets are out of reach. */
  portless: string | undefined = undefined;
  /** The port that the device is made of, once it is open. */
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
    sdkVersion: '1.0',
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
    sdkVersion: '1.0',
    requires: [],
    provides: [],
    // Timers stand on the device, and the device on its port: the port has them from here.
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
