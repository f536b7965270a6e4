/** A softroce provider that shows its port, its device's counters, and the packets it receives. */
import { PACKET_PORT, DEVICE, RX, type PacketPort } from 'dapl/spi';
import { softroce, type SoftroceOptions } from 'dapl/providers/softroce';
import type { HcaDevice } from 'dapl/providers/hca';

const SEEN = 512;

export interface Tap {
  readonly plugin: ReturnType<typeof softroce>;
  readonly port: PacketPort;
  readonly device: HcaDevice;
  /** The last packets that came in, from the BTH to the pad, if the filter takes them. */
  readonly seen: Uint8Array[];
  filter: (packet: Uint8Array) => boolean;
}

export function tappedSoftroce(options: SoftroceOptions): Tap {
  const provider = softroce(options);
  const made = new Map<unknown, () => unknown>();
  const seen: Uint8Array[] = [];
  const tap = {
    plugin: {
      ...provider,
      instance: {
        ...provider.instance,
        open: async (registrar, resolver) => {
          const bind: typeof registrar.bind = (token, factory) => {
            made.set(token, () => factory(resolver));
            registrar.bind(token, factory);
          };
          await provider.instance.open({ bind }, resolver);
          listenIn(tap);
        },
      },
    } satisfies ReturnType<typeof softroce>,
    get port() {
      return made.get(PACKET_PORT)?.() as PacketPort;
    },
    get device() {
      return made.get(DEVICE)?.() as HcaDevice;
    },
    seen,
    filter: () => false,
  } as Tap;
  return tap;
}

function listenIn(tap: Tap): void {
  const { port, seen } = tap;
  const receive = port.receive.bind(port);
  let next = 0;
  port.receive = () => {
    const count = receive();
    for (let i = 0; i < count; i++) {
      const at = i * RX.WORDS;
      const offset = port.rxPackets[at + RX.OFFSET] ?? 0;
      const packet = port.rxArena.subarray(offset, offset + (port.rxPackets[at + RX.LENGTH] ?? 0));
      if (tap.filter(packet)) seen[next++ % SEEN] = packet.slice();
    }
    return count;
  };
}
