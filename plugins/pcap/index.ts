/**
 * Captures the packets of a device into a file for Wireshark (`dapl/plugins/pcap`): pass
 * `capture(provider, { file })` instead of the provider, or set the environment variable DAPL_PCAP
 * for all devices that the process opens.
 */
import { checkOptions, checkValue, integer, optional, TEXT } from '../../core/spi/checks/index.js';
import { refusing } from '../../core/spi/errors/consumer-errors.js';
import {
  CLOCK,
  type Clock,
  type ConfiguredProvider,
  definePlugin,
  PACKET_PORT,
  PROVIDER,
  SpiError,
  withModules,
} from '../../core/spi/index.js';
import { CaptureFile } from './capture-file.js';
import { TappedPort } from './tapped-port.js';

export { mergeCaptures } from './merge.js';

export interface CaptureOptions {
  /**
   * The capture file (pcapng). Devices that name the same file share it, and an existing capture is
   * continued; a file of another kind is refused.
   */
  readonly file: string;
  /** UDP port of the packets, which the packet port does not report; default 4791. */
  readonly udpPort?: number;
}

const ROCE_UDP_PORT = 4791;
const CAPTURE_OPTIONS = { file: TEXT, udpPort: optional(integer(1, 65535)) };

interface TapOptions {
  readonly file: string;
  readonly udpPort: number;
  /** Name of the interface in the file. */
  readonly name: string;
}

const tap = definePlugin(
  {
    name: 'pcap',
    kind: 'port',
    sdkVersion: '2.0',
    requires: [],
    provides: [],
    inject: { port: PACKET_PORT, clock: CLOCK },
  },
  ({ port, clock }, { file: path, udpPort, name }: TapOptions) => {
    const file = hold(path);
    const interfaceId = file.addInterface(name);
    return new TappedPort(port, { file, interfaceId, clock, epochUs: epochOf(clock), udpPort });
  },
);

/**
 * Wraps a provider so that its device captures packets from opening to close: with IP and UDP
 * headers, inbound and outbound, each with its time (for mock, virtual time). A device that is
 * already open is not captured.
 * @throws DatError DAT_INVALID_PARAMETER for invalid options; on opening, if the file cannot be
 * created, or exists and is no capture that can be continued
 */
export function capture(provider: ConfiguredProvider, options: CaptureOptions): ConfiguredProvider {
  const refuse = refusing('capture');
  checkValue('the provider', provider, PROVIDER, refuse);
  checkOptions(options, CAPTURE_OPTIONS, refuse);
  const { file, udpPort = ROCE_UDP_PORT } = options;
  const name = provider.instance.deviceKey;
  return withModules(provider, tap({ file, udpPort, name }));
}

/** Time at which each clock showed 0, in microseconds since 1970; devices on one clock share it. */
const epochs = new WeakMap<Clock, number>();

function epochOf(clock: Clock): number {
  const epochUs = epochs.get(clock) ?? Date.now() * 1000 - clock.now();
  epochs.set(clock, epochUs);
  return epochUs;
}

function hold(path: string): CaptureFile {
  try {
    return CaptureFile.hold(path);
  } catch (error) {
    throw new SpiError(
      'EIO',
      `capture: ${error instanceof Error ? error.message : String(error)}`,
      {
        cause: error,
      },
    );
  }
}
