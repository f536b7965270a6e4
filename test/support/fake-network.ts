/** Joins fake devices; tests decide here what becomes of each MAD. */
import { type Gid, gidEquals, GSI_QKEY, GSI_QPN } from '../../core/spi/index.js';
import type { FakeDevice } from './fake-gsi-device.js';
import type { VirtualWorld } from './virtual-world.js';

/** A MAD on its way, and what a test may do to it. */
export interface Parcel {
  readonly from: FakeDevice;
  readonly destination: Gid;
  readonly qpn: number;
  readonly qkey: number;
  readonly data: Uint8Array;
}

/** How many copies arrive, and after how long each; none is loss. */
export type Fate = readonly number[];

export class FakeNetwork {
  readonly devices: FakeDevice[] = [];
  readonly carried: Parcel[] = [];
  latencyUs = 10;
  /** What becomes of a parcel: the delays of its copies in microseconds. */
  fate: (parcel: Parcel) => Fate = () => [this.latencyUs];

  constructor(readonly world: VirtualWorld) {}

  carry(parcel: Parcel): void {
    this.carried.push(parcel);
    for (const delayUs of this.fate(parcel)) {
      this.world.after(delayUs, () => this.arrive(parcel));
    }
  }

  private arrive(parcel: Parcel): void {
    // QP1 has one number and one key.
    if (parcel.qpn !== GSI_QPN || parcel.qkey !== GSI_QKEY) return;
    const to = this.devices.find(({ gids }) => gids.some((g) => gidEquals(g, parcel.destination)));
    const source = parcel.from.gids[0];
    if (to && source) to.receive(parcel.data, source, parcel.destination);
  }
}
