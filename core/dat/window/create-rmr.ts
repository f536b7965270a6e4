/** Creates memory windows. */
import { spiCall } from '../../errors/index.js';
import type { MemoryWindow } from '../../spi/index.js';
import { checkHandle } from '../common/handle.js';
import type { IaCore } from '../common/adapter-state.js';
import { notSupported, OUT_OF } from '../common/unsupported.js';
import { Pz } from '../memory/pz.js';
import { Rmr, type RmrScope } from './rmr.js';

export function createRmr(core: IaCore, operation: string, pz: Pz, scope: RmrScope): Rmr {
  core.begin(operation, { pz });
  const { device } = core.context;
  checkHandle(operation, Pz, 'PZ', pz, core);
  if (device.createMemoryWindow === undefined) {
    const hint = 'give peers the rmrContext of a region of its own';
    throw notSupported(operation, 'this provider has no memory windows', hint);
  }
  const type = scope === 'PZ' ? 1 : 2;
  const window = spiCall({ operation, map: OUT_OF.windows }, () =>
    device.createMemoryWindow?.(pz.pd, type),
  );
  return core.adopt(new Rmr(core, pz, scope, window as MemoryWindow));
}
