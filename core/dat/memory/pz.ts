/** Protection zone (dat_pz): endpoints only use the memory of their own zone. */
import { showAs } from '../../spi/checks/index.js';
import { DatError, spiCall } from '../../errors/index.js';
import type { ProtectionDomain } from '../../spi/index.js';
import { begin, Handle } from '../common/handle.js';
import type { AdapterState } from '../common/adapter-state.js';
import { OUT_OF } from '../common/unsupported.js';
import type { RmrContexts } from './rmr-contexts.js';
import type { Ia } from '../ia/ia.js';

/** Result of `pz.query()` (DAT_PZ_PARAM). */
export interface PzParameters {
  readonly ia: Ia;
  /** Endpoints, regions, windows and shared receive queues that belong to it. */
  readonly users: number;
}

/** Made by `ia.createPz()`. */
export class Pz extends Handle {
  static {
    showAs(this, 'Pz', ({ id, users, isFreed: freed }) => ({ id, users, freed }));
  }

  readonly handleType = 'PZ';
  /** @internal objects that refer to this zone */
  users = 0;

  /** @internal */
  constructor(
    /** @internal */
    readonly core: AdapterState,
    /** @internal */
    readonly pd: ProtectionDomain,
    /** @internal remote contexts of the adapter; all of its zones share them */
    readonly rmrContexts: RmrContexts,
  ) {
    super();
  }

  get ia(): Ia {
    return this.core.ia;
  }

  /** dat_pz_query. */
  query(): PzParameters {
    this.assertLive('pz.query');
    return { ia: this.ia, users: this.users };
  }

  /**
   * Frees the zone (dat_pz_free).
   * @throws DatError DAT_INVALID_STATE / DAT_INVALID_STATE_PZ_IN_USE while endpoints, memory
   * regions, windows or shared receive queues belong to it
   */
  free(): void {
    begin(this, 'pz.free');
    if (this.users > 0) {
      throw new DatError('DAT_INVALID_STATE', {
        subtype: 'DAT_INVALID_STATE_PZ_IN_USE',
        operation: 'pz.free',
        message: `${this.users} objects belong to protection zone ${this.id}`,
        hint: 'free them first',
        value: this.users,
      });
    }
    this.destroy('pz.free');
  }

  /** @internal */
  destroy(by: string): void {
    spiCall({ operation: by }, () => this.pd.destroy());
    this.markFreed(by);
    this.core.forget(this);
  }

  [Symbol.dispose](): void {
    if (!this.isFreed) this.free();
  }
}

export function createPz(core: AdapterState, rmrContexts: RmrContexts): Pz {
  core.begin('ia.createPz');
  const { device } = core.context;
  const pd = spiCall({ operation: 'ia.createPz', map: OUT_OF.zones }, () =>
    device.createProtectionDomain(),
  );
  return core.adopt(new Pz(core, pd, rmrContexts));
}
