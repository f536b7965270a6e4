/**
 * Packets of a device into a file that Wireshark opens (`dapl/plugins/pcap`): `capture(provider, {
 * file })` in place of the provider, or the environment variable DAPL_PCAP for all devices that the
 * process opens.
 */
import {
  CLOCK,
  type Clock,
  type ConfiguredPlugin,
  PACKET_PORT,
  type Registrar,
  type Resolver,
  SpiError,
} from '../../core/spi/index.js';
import { CaptureFile } from './capture-file.js';
import { tapPort } from './tap.js';

export { mergeCaptures } from './merge.js';

export interface CaptureOptions {
  /** Where the capture goes (pcapng); made anew. Devices that name one file share it. */
  readonly file: string;
  /** UDP port of the packets, which the packet port does not tell; default 4791. */
  readonly udpPort?: number;
}

const ROCE_UDP_PORT = 4791;

/**
 * A provider whose device writes down its packets, from its opening to its end: with IP and UDP
 * headers, inbound and outbound, each with its time (of mock: the virtual one). A device that is
 * open already is not listened to.
 * @throws SpiError('EINVAL') when there is no file name; at opening, when the file cannot be made
 */
export function capture(
  provider: ConfiguredPlugin<'provider'>,
  options: CaptureOptions,
): ConfiguredPlugin<'provider'> {
  const { file: path, udpPort = ROCE_UDP_PORT } = options;
  if (typeof path !== 'string' || path === '') {
    throw new SpiError('EINVAL', `capture: file is ${String(path)}, it must be a path`);
  }
  const { instance } = provider;
  const open = async (registrar: Registrar, resolver: Resolver): Promise<void> => {
    const file = hold(path);
    try {
      await instance.open(registrar, resolver);
    } catch (error) {
      file.release();
      throw error;
    }
    if (!resolver.has(PACKET_PORT)) {
      // A provider of hardware has no packets to show.
      file.release();
      return;
    }
    const clock = resolver.resolve(CLOCK);
    tapPort(resolver.resolve(PACKET_PORT), {
      file,
      interfaceId: file.addInterface(instance.deviceKey),
      clock,
      epochUs: epochOf(clock),
      udpPort,
    });
  };
  // What else the provider has, such as `relatedTo`, stays as it is.
  const wrapped = Object.assign(Object.create(instance) as typeof instance, { open });
  return Object.freeze({ ...provider, instance: wrapped });
}

/** When each clock showed 0, in microseconds since 1970: one for all devices that share it. */
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
