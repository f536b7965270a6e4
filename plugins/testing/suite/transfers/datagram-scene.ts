/** A datagram endpoint with its adapter, event dispatcher and memory. */
import type { Evd, Ia, Lmr, UdEp, UdEpAttributes } from 'dapl';

export interface Side {
  readonly ep: UdEp;
  readonly evd: Evd;
  readonly lmr: Lmr;
}

export function side(ia: Ia, attributes: Partial<UdEpAttributes> = {}): Side {
  const pz = ia.createPz();
  const evd = ia.createEvd({ qlen: 256 });
  const ep = ia.createUdEndpoint({ pz, recvEvd: evd, requestEvd: evd, attributes });
  return { ep, evd, lmr: ia.allocate(1 << 16, { pz }) };
}
