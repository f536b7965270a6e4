/** Where the rows of docs/dat-map.md are called: two adapters of one simulated network. */
import assert from 'node:assert/strict';
import { DatError, type Ep, EvdFlags, type Ia, openIa, type Psp } from 'dapl';
import { Fabric, mock } from 'dapl/providers/mock';
import type { CompliancePair } from '../../plugins/testing/suite/fixture.js';
import { ask, connected, meet, type Peer, type Peers } from '../../plugins/testing/suite/peer.js';

const [ACTIVE, PASSIVE] = ['192.0.2.1', '192.0.2.2'] as const;

/** One row's world; what a row makes goes with it. */
export class DatScene {
  /** Types and subtypes of the refusals that the row has seen. */
  readonly refusals = new Set<string>();
  readonly fabric = new Fabric({ seed: 1, autoRun: true });

  private constructor(readonly pair: CompliancePair) {}

  static async open(): Promise<DatScene> {
    const pair = {} as { -readonly [K in keyof CompliancePair]: CompliancePair[K] };
    const scene = new DatScene(pair);
    const { fabric } = scene;
    pair.active = await openIa(mock({ fabric, address: ACTIVE }));
    pair.passive = await openIa(mock({ fabric, address: PASSIVE }));
    pair.passiveAddress = PASSIVE;
    pair.settle = () => fabric.run({ forUs: 100_000 });
    pair.close = async () => void (await Promise.all([pair.active.close(), pair.passive.close()]));
    return scene;
  }

  get ia(): Ia {
    return this.pair.active;
  }

  /** One of everything at each end, nothing between them. */
  get apart(): Peers {
    return meet(this.pair);
  }

  connected(): Promise<Peers> {
    return connected(this.pair);
  }

  /** A request has come to the passive side; its peer waits. */
  async asked(): Promise<Peers & { readonly cr: Awaited<ReturnType<typeof ask>> }> {
    const peers = this.apart;
    return { ...peers, cr: await ask(peers) };
  }

  /** An endpoint with a shared receive queue, and that. */
  sharing(peer: Peer): { readonly srq: ReturnType<Ia['createSrq']>; readonly ep: Ep } {
    const srq = peer.ia.createSrq({ pz: peer.pz, maxRecvDtos: 4, maxRecvIov: 2 });
    return { srq, ep: peer.endpoint(peer.evd, { srq }) };
  }

  listen(peer: Peer, connQual: number): Psp {
    return peer.ia.createPsp({ connQual, evd: peer.evd });
  }

  software(ia = this.ia, qlen = 4): ReturnType<Ia['createEvd']> {
    return ia.createEvd({ qlen, streams: EvdFlags.SOFTWARE });
  }

  /** A call that is refused with this type or subtype, at once or by its promise. */
  async refuses(call: () => unknown, code: string): Promise<DatError> {
    let error: unknown;
    try {
      await call();
    } catch (caught) {
      error = caught;
    }
    assert.ok(DatError.isDatError(error), `${code} expected: ${String(error)}`);
    assert.ok(error.code === code || error.subtype === code, `${code} expected: ${String(error)}`);
    this.refusals.add(error.code);
    if (error.subtype !== undefined) this.refusals.add(error.subtype);
    return error;
  }
}

/** A row's call. */
export type RowCall = (scene: DatScene) => unknown;
export type RowCalls = Readonly<Record<string, RowCall>>;
