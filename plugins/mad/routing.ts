/** Where a received MAD goes, by its header alone (IBTA 13.4.5, 13.4.7). */
import {
  METHOD_RESPONSE_BIT,
  attributeIdOf,
  attributeModifierOf,
  baseVersionOf,
  classOf,
  methodOf,
} from './header.js';

const BASE_VERSION = 1;
const CLASS = { SMI: 0x01, BM: 0x05, CM: 0x07, SMI_DIRECTED: 0x81 } as const;
const METHOD = { GET: 0x01, SET: 0x02, SEND: 0x03, TRAP_REPRESS: 0x07 } as const;
const CLASS_PORT_INFO = 0x0001;

export const STATUS_UNSUPPORTED = 0x000c;
export const METHOD_GET_RESPONSE = 0x81;

/** SMI classes are QP0's, and the CM asks nothing but ClassPortInfo: everything else is not for us. */
export function isAcceptable(mad: DataView): boolean {
  if (baseVersionOf(mad) !== BASE_VERSION) return false;
  const managementClass = classOf(mad);
  if (managementClass === CLASS.SMI || managementClass === CLASS.SMI_DIRECTED) return false;
  if (managementClass !== CLASS.CM) return true;
  return methodOf(mad) === METHOD.SEND || attributeIdOf(mad) === CLASS_PORT_INFO;
}

export function isResponse(mad: DataView): boolean {
  const method = methodOf(mad);
  if ((method & METHOD_RESPONSE_BIT) !== 0 || method === METHOD.TRAP_REPRESS) return true;
  return classOf(mad) === CLASS.BM && (attributeModifierOf(mad) & 1) === 1;
}

/** Get and Set are answered even where no agent takes them. */
export function wantsAnswer(mad: DataView): boolean {
  const method = methodOf(mad);
  return method === METHOD.GET || method === METHOD.SET;
}
