/** Creates common service points. */
import { checkOptions } from '../../errors/guards.js';
import type { IaCore } from '../common/adapter-state.js';
import { checkCspAddress, Csp, type CspOptions } from './csp.js';
import { listen } from './listen.js';

export function createCsp(core: IaCore, options: CspOptions): Csp {
  const operation = core.begin('ia.createCsp', { address: options?.address });
  checkOptions(operation, options, ['address', 'comm', 'evd']);
  const { gids } = core.context.device;
  const { remoteGid, service, comm } = checkCspAddress(operation, options, gids);
  core.checkEvdOption(operation, 'cr', options.evd);
  return listen(
    core,
    service,
    options.evd,
    (init) => new Csp(core, operation, init, remoteGid, comm),
  );
}
