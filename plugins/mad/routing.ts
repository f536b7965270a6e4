/** Which received MADs are taken at all, and which are answered although nobody takes them. */
import { CLASS_PORT_INFO_ATTRIBUTE, MAD_CLASS, MAD_METHOD } from '../../core/spi/mad-header.js';
import type { MadHeader } from '../../core/spi/mad-header.js';

/**
 * SMI classes are QP0's, and the CM asks nothing but ClassPortInfo (IBTA 13.5.1, 16.7.1). Which
 * version of a class exists is the business of its agents.
 */
export function isAcceptable(header: MadHeader): boolean {
  const { managementClass, method, attributeId } = header;
  if (managementClass === MAD_CLASS.SUBN_LID) return false;
  if (managementClass === MAD_CLASS.SUBN_DIRECTED_ROUTE) return false;
  if (managementClass !== MAD_CLASS.CM) return true;
  return method === MAD_METHOD.SEND || attributeId === CLASS_PORT_INFO_ATTRIBUTE;
}

/** Get and Set are answered even where no agent takes them (IBTA 13.4.7). */
export function wantsAnswer({ method }: MadHeader): boolean {
  return method === MAD_METHOD.GET || method === MAD_METHOD.SET;
}
