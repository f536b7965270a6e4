/** Creates reserved service points. */
import { checkOptions } from '../../errors/guards.js';
import { checkHandle } from '../common/handle.js';
import { checkService } from '../endpoint/connect-options.js';
import { Ep } from '../endpoint/ep.js';
import type { IaCore } from '../common/adapter-state.js';
import { listen } from './listen.js';
import { Rsp, type RspOptions } from './rsp.js';

export function createRsp(core: IaCore, options: RspOptions): Rsp {
  const operation = core.begin('ia.createRsp', {
    connQual: options?.connQual,
    serviceId: options?.serviceId,
    ep: options?.ep,
  });
  checkOptions(operation, options, ['connQual', 'serviceId', 'ep', 'evd']);
  const service = checkService(operation, options);
  const { ep, evd } = options;
  checkHandle(operation, Ep, 'EP', ep, core);
  core.checkEvdOption(operation, 'cr', evd);
  const { record } = ep;
  record.checkLegal(operation, 'reserve');
  record.connection.hold('reserve');
  try {
    return listen(core, service, evd, (init) => new Rsp(core, operation, init, ep));
  } catch (error) {
    record.connection.hold('unreserve');
    throw error;
  }
}
