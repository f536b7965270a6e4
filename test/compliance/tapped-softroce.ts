/** A softroce provider that shows its port, its device's counters, and the packets it receives. */
import {
  definePlugin,
  DEVICE,
  ForwardingPort,
  PACKET_PORT,
  type PacketPort,
  RX,
  withModules,
} from 'dapl/spi';
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

const META = { name: 'tap', sdkVersion: '2.0', requires: [], provides: [] } as const;

export function tappedSoftroce(options: SoftroceOptions): Tap {
  const seen: Uint8Array[] = [];
  const made: { port?: PacketPort; device?: HcaDevice } = {};
  const port = definePlugin({ ...META, kind: 'port', inject: { own: PACKET_PORT } }, ({ own }) => {
    made.port = own;
    return new ListenedPort(own, tap);
  });
  const device = definePlugin({ ...META, kind: 'device', inject: { own: DEVICE } }, ({ own }) => {
    made.device = own as HcaDevice;
    return own;
  });
  const tap = {
    plugin: withModules(softroce(options), port({}), device({})),
    get port() {
      return made.port as PacketPort;
    },
    get device() {
      return made.device as HcaDevice;
    },
    seen,
    filter: () => false,
  } as Tap;
  return tap;
}

class ListenedPort extends ForwardingPort {
  private next = 0;

  constructor(
    port: PacketPort,
    private readonly tap: Tap,
  ) {
    super(port);
  }

  override receive(): number {
    const { rxPackets, rxArena, tap } = this;
    const count = super.receive();
    for (let i = 0; i < count; i++) {
      const at = i * RX.WORDS;
      const offset = rxPackets[at + RX.OFFSET] ?? 0;
      const packet = rxArena.subarray(offset, offset + (rxPackets[at + RX.LENGTH] ?? 0));
      if (tap.filter(packet)) tap.seen[this.next++ % SEEN] = packet.slice();
    }
    return count;
  }
}
