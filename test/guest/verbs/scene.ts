/** Opens both ends of a case, whichever of them is to ask and to answer. */
import { openIa } from 'dapl';
import { softroce } from 'dapl/providers/softroce';
import { silentLogger } from '../../../core/spi/index.js';
import { softroceNode } from '../../../providers/softroce/instance.js';
import { openSocketPort } from '../../../providers/softroce/socket-port.js';
import type { Guest } from '../guest.js';
import type { Lab } from '../lab.js';
import { DatEnd } from './dat-end.js';
import { DeviceEnd } from './device-end.js';
import { KernelEnd } from './kernel-end.js';
import type { ManualEnd, Pair, VerbsEnd } from './end.js';

export type Family = 'IPv4' | 'IPv6';
export const FAMILIES = ['IPv4', 'IPv6'] as const;
/** Who sends the requests. */
export type Requester = 'softroce' | 'rxe';
export const REQUESTERS = ['softroce', 'rxe'] as const;

/** An end, and what it is connected with. */
export interface Party<End extends VerbsEnd = VerbsEnd> {
  readonly end: End;
  readonly pair: Pair;
}

export function addressOf(machine: { ipv4: string; ipv6: string }, family: Family): string {
  return family === 'IPv4' ? machine.ipv4 : machine.ipv6;
}

/** Runs `body` over ends that are closed afterwards, whatever happens. */
export async function withEnds<Ours extends VerbsEnd>(
  open: () => Promise<Ours>,
  kernel: () => Promise<KernelEnd>,
  body: (ours: Ours, theirs: KernelEnd) => Promise<void>,
): Promise<void> {
  const ours = await open();
  try {
    const theirs = await kernel();
    try {
      await body(ours, theirs);
    } finally {
      await theirs.close();
    }
  } finally {
    await ours.close();
  }
}

export const kernelEnd = (guest: Guest, family: Family) => (): Promise<KernelEnd> =>
  KernelEnd.start(guest, addressOf(guest, family));

export const datEnd = (lab: Lab, family: Family) => async (): Promise<DatEnd> =>
  new DatEnd(await openIa(softroce({ addresses: [addressOf(lab.host, family)] })));

/** A softroce device without DAT. */
export async function openDeviceEnd(address: string): Promise<ManualEnd> {
  const name = `softroce ${address}`;
  const port = await openSocketPort({ addresses: [address] });
  const node = softroceNode({ name, port, logger: silentLogger, parameters: {} });
  return new DeviceEnd('softroce', node.device, address);
}

export const deviceEnd = (lab: Lab, family: Family) => (): Promise<ManualEnd> =>
  openDeviceEnd(addressOf(lab.host, family));
