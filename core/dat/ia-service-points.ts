/** The calls of an interface adapter that make service points. */
import { EvdFlags } from '../evd/index.js';
import { DatError } from '../errors/index.js';
import { PspFlags } from './constants.js';
import { checkConnQual } from './ep-connect-options.js';
import { checkOneOf, checkOptions } from './guards.js';
import { IaEndpoints } from './ia-endpoints.js';
import { Psp, type PspOptions } from './psp.js';

const REQUESTS_QLEN = 64;

export abstract class IaServicePoints extends IaEndpoints {
  /**
   * Listens on a connection qualifier (dat_psp_create).
   * @throws DatError DAT_CONN_QUAL_IN_USE; DAT_INVALID_PARAMETER; DAT_INVALID_HANDLE;
   * DAT_MODEL_NOT_SUPPORTED for PspFlags.PROVIDER: the provider attribute `epCreator` is NEVER
   */
  createPsp(options: PspOptions): Psp {
    const operation = 'ia.createPsp';
    this.begin(operation, { connQual: options?.connQual });
    checkOptions(operation, 1, options, ['connQual', 'evd', 'flags']);
    checkConnQual(operation, 2, options.connQual);
    this.checkEvdOption(operation, 'cr', options.evd);
    const flags = options.flags ?? PspFlags.CONSUMER;
    checkOneOf(operation, 4, 'flags', flags, Object.values(PspFlags));
    if (flags === PspFlags.PROVIDER) {
      throw new DatError('DAT_MODEL_NOT_SUPPORTED', {
        operation,
        message: 'this provider makes no endpoints for requests (ep_creator is NEVER)',
        hint: 'use PspFlags.CONSUMER and pass an endpoint to cr.accept()',
        value: flags,
      });
    }
    const evd = options.evd ?? this.newEvd(REQUESTS_QLEN, EvdFlags.CR);
    try {
      return this.adopt(new Psp(this.self, options.connQual, evd, options.evd === undefined));
    } catch (error) {
      if (options.evd === undefined) this.freePrivateEvd(evd);
      throw error;
    }
  }
}
