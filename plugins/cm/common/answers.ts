/** Checks of the consumer's answers to a request, shared by all CMs. */
import {
  type CmAcceptOptions,
  CmPrivateData,
  type CmRejectOptions,
  type CmResolveAcceptOptions,
  type CmResolveRejectOptions,
  SpiError,
} from '../../../core/spi/index.js';
import { checkParameters, checkPrivateData, checkRange } from './checks.js';
import { checkConnectable } from './transport.js';
import { REJECT_INFO_LENGTH } from '../wire/rej.js';

/** @throws SpiError('EINVAL') with value and limit, as all of these do */
export function checkAccept(options: CmAcceptOptions): void {
  checkPrivateData('REP', options.privateData, CmPrivateData.REP);
  checkParameters(options);
  checkConnectable(options.qp);
}

export function checkReject({ reason, privateData, info }: CmRejectOptions): void {
  checkPrivateData('REJ', privateData, CmPrivateData.REJ);
  checkRange('additional reject information', info?.length ?? 0, 0, REJECT_INFO_LENGTH);
  checkRange('reject reason', reason, 1, 0xffff);
}

export function checkResolveAccept({ qpn, qkey, privateData }: CmResolveAcceptOptions): void {
  checkPrivateData('SIDR_REP', privateData, CmPrivateData.SIDR_REP);
  checkRange('qpn', qpn, 2, 0xffffff);
  checkRange('qkey', qkey, 0, 0xffffffff);
}

export function checkResolveReject({ status, privateData }: CmResolveRejectOptions): void {
  checkPrivateData('SIDR_REP', privateData, CmPrivateData.SIDR_REP);
  checkRange('status', status, 1, 255);
}

/** The error for a request that cannot be answered any more. */
export function requestGone(
  kind: 'connection' | 'resolution',
  why = 'answered already, or given up by the peer',
): SpiError {
  return new SpiError('ENOTCONN', `the ${kind} request is gone: ${why}`);
}
