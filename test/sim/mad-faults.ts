/** Management datagrams that get lost, come twice, late, and in another order. */
import { GSI_QPN } from '../../core/spi/index.js';
import type { Fabric, PacketAction, SeededRandom } from '../../providers/mock/index.js';

/** How many there were, and what became of them. */
export interface MadFaultCounts {
  sent: number;
  lost: number;
  repeated: number;
  delayed: number;
}

const LOST_PERCENT = 3;
const REPEATED_PERCENT = 3;
const DELAYED_PERCENT = 5;
/** From behind the next one to behind the CM's own retry. */
const DELAYS_US = [50, 2_000, 100_000, 700_000] as const;

/** Disturbs them until the faults are cleared. */
export function disturbMads(fabric: Fabric, random: SeededRandom): MadFaultCounts {
  const counts = { sent: 0, lost: 0, repeated: 0, delayed: 0 };
  const add = (percent: number, kind: keyof MadFaultCounts, action: PacketAction): void => {
    const where = ({ destinationQpn }: { readonly destinationQpn: number }): boolean => {
      if (destinationQpn !== GSI_QPN || !random.percent(percent)) return false;
      counts[kind]++;
      return true;
    };
    fabric.faults.add({ match: { where, count: Infinity }, action });
  };
  fabric.faults.add({
    match: {
      where: ({ destinationQpn }) => destinationQpn === GSI_QPN && counts.sent++ < 0,
      count: Infinity,
    },
    action: { type: 'drop' },
  });
  add(LOST_PERCENT, 'lost', { type: 'drop' });
  for (const delayUs of DELAYS_US) {
    const share = DELAYS_US.length;
    add(REPEATED_PERCENT / share, 'repeated', { type: 'duplicate', afterUs: [delayUs] });
    add(DELAYED_PERCENT / share, 'delayed', { type: 'delay', byUs: delayUs });
  }
  return counts;
}
