/** Which received MADs are taken at all, and which are answered although no agent takes them. */
import {
  CLASS_PORT_INFO_ATTRIBUTE,
  isRmppClass,
  MadClass,
  type MadHeader,
  MadMethod,
} from '../../core/spi/modules/mad-header.js';
import { RMPP_TYPE, isRmppActive, parseRmppHeader } from './wire/rmpp-header.js';

/**
 * SMI classes are QP0's, and the CM asks nothing but ClassPortInfo (IBTA 13.5.1, 16.7.1). Which
 * version of a class exists is the business of its agents.
 */
export function isAcceptable(header: MadHeader): boolean {
  const { managementClass, method, attributeId } = header;
  if (managementClass === MadClass.SUBN_LID) return false;
  if (managementClass === MadClass.SUBN_DIRECTED_ROUTE) return false;
  if (managementClass !== MadClass.CM) return true;
  return method === MadMethod.SEND || attributeId === CLASS_PORT_INFO_ATTRIBUTE;
}

/**
 * Get and Set are answered even where no agent takes them (IBTA 13.4.7); not so what only speaks of
 * an RMPP transfer that is none of ours.
 */
export function wantsAnswer({ method, managementClass }: MadHeader, mad: Uint8Array): boolean {
  if (method !== MadMethod.GET && method !== MadMethod.SET) return false;
  const rmpp = isRmppClass(managementClass) && isRmppActive(mad) ? parseRmppHeader(mad) : undefined;
  return rmpp === undefined || rmpp.type === RMPP_TYPE.DATA;
}
