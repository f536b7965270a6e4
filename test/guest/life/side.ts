// One adapter over a device of the guest with one of everything, and bounds that suit emulation.
import assert from 'node:assert/strict';
import {
  type DatEvent,
  DatEventNumber,
  type Ep,
  type Evd,
  type Ia,
  type Lmr,
  MemPrivileges,
  nameOf,
  openIa,
  RemoteSegment,
} from 'dapl';
import { verbs } from 'dapl/providers/verbs';

import { patience } from '../../support/patience.js';

/** Longer than anything takes in an emulated guest. */
export const WAIT_MS = patience(120_000);
export const PORT = 7471;
const QLEN = 4096;
const MEMORY_BYTES = 1 << 20;

export class Side {
  readonly evd: Evd;
  readonly lmr: Lmr;

  private constructor(
    readonly ia: Ia,
    readonly address: string,
  ) {
    const pz = ia.createPz();
    this.evd = ia.createEvd({ qlen: QLEN });
    this.lmr = ia.allocate(MEMORY_BYTES, { pz, privileges: MemPrivileges.ALL });
  }

  /** @param device its name, or an address of it */
  static async open(device: { device: string } | { address: string }): Promise<Side> {
    const ia = await openIa(verbs(device));
    return new Side(ia, 'address' in device ? device.address : '');
  }

  endpoint(): Ep {
    const { evd } = this;
    const attributes = { maxRequestDtos: 64, maxRecvDtos: 64 };
    const evds = { recvEvd: evd, requestEvd: evd, connectEvd: evd };
    return this.ia.createEndpoint({ pz: this.lmr.pz, ...evds, attributes });
  }

  remote(): RemoteSegment {
    const { address, rmrContext } = this.lmr;
    assert.ok(rmrContext !== undefined, 'the region has a remote privilege');
    return new RemoteSegment({ address, rmrContext });
  }

  async next(): Promise<DatEvent> {
    return (await this.evd.wait({ timeoutMs: WAIT_MS })).event;
  }

  /** The next event is this one of a connection. */
  async expect(name: keyof typeof DatEventNumber): Promise<void> {
    const event = await this.next();
    assert.equal(nameOf(DatEventNumber, event.number), name);
  }
}

/** Connects two new endpoints; `listener` listens for that long. */
export async function join(caller: Side, listener: Side, from: Ep, to: Ep): Promise<void> {
  const psp = listener.ia.createPsp({ connQual: PORT, evd: listener.evd });
  from.connect({ address: listener.address, connQual: PORT });
  const event = await listener.next();
  assert.equal(event.type, 'connection-request');
  psp.free();
  event.cr.accept(to);
  await caller.expect('ESTABLISHED');
  await listener.expect('ESTABLISHED');
}
