/** Common steps of the behaviours of service points. */
import { type Ep, PspFlags } from 'dapl';
import { CONN_QUAL, type Peer, type Peers } from '../peer.js';

/** Sends a connection request to a port. */
export function ask({ pair, active }: Peers, connQual: number, ep: Ep = active.ep): void {
  const privateData = Uint8Array.of(1, 2, 3);
  ep.connect({ address: pair.passiveAddress, connQual, privateData });
}

export async function established({ active, passive }: Peers): Promise<void> {
  await active.expect('ESTABLISHED');
  await passive.expect('ESTABLISHED');
}

/** Sends a message from the active side to that endpoint. */
export async function converse(
  { active, passive }: Peers,
  to: Ep,
  from = active.ep,
): Promise<void> {
  to.postRecv(passive.lmr.segment(0, 8), 1);
  from.postSend(active.lmr.segment(0, 8), 2);
  await passive.expect('dto 1 SUCCESS');
  await active.expect('dto 2 SUCCESS');
}

/** Options for endpoints of PspFlags.PROVIDER. */
export function template({ pz, evd }: Peer): object {
  return { pz, recvEvd: evd, requestEvd: evd, connectEvd: evd };
}

export function providerPsp({ ia, evd, ...peer }: Peer): ReturnType<Peer['ia']['createPsp']> {
  const endpoint = { pz: peer.pz, recvEvd: evd, requestEvd: evd, connectEvd: evd };
  return ia.createPsp({ connQual: CONN_QUAL, evd, flags: PspFlags.PROVIDER, endpoint });
}
