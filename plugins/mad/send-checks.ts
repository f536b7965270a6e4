/** Checks a MAD to be sent, and decides between one MAD and an RMPP transfer. */
import { checkInteger, checkValue, kindOf } from '../../core/spi/checks/index.js';
import { einval } from '../../core/spi/errors/einval.js';
import { MAD_BYTES, type MadAgentOptions, type MadSend, SpiError } from '../../core/spi/index.js';
import { MAX_RMPP_BYTES } from './rmpp-segments.js';
import {
  classHeaderLength,
  headerOfAnyLength,
  isRmppClass,
  type MadHeader,
  METHOD_RESPONSE_BIT,
} from '../../core/spi/modules/mad-header.js';
import { isRmppActive } from './wire/rmpp-header.js';

export interface CheckedSend {
  /** Undefined if the base version is not 1: then no response is expected. */
  readonly header: MadHeader | undefined;
  /** Set if the MAD is sent as an RMPP transfer. */
  readonly transferHeader: MadHeader | undefined;
}

const TIMEOUT = kindOf<number>(
  'a finite number from 0 (no response expected) on',
  (value) => Number.isFinite(value) && (value as number) >= 0,
);

export function checkSend(
  { data, timeoutUs, retries }: MadSend,
  agent: MadAgentOptions,
  hiTid: number,
): CheckedSend {
  checkValue('timeoutUs', timeoutUs, TIMEOUT, einval);
  checkInteger('retries', retries, 0, Infinity, einval);
  const asTransfer = agent.rmpp === true && (data.length !== MAD_BYTES || isRmppActive(data));
  if (!asTransfer && data.length !== MAD_BYTES) {
    const hint = 'an agent with RMPP sends other lengths';
    throw invalid(`MAD of ${data.length} bytes: must be ${MAD_BYTES} (${hint})`);
  }
  const header = headerOfAnyLength(data);
  if (timeoutUs > 0 && header?.transactionIdHi !== hiTid) throw foreignTransaction(hiTid);
  if (!asTransfer) return { header, transferHeader: undefined };
  checkTransfer(data, header, agent, hiTid);
  return { header, transferHeader: header };
}

function checkTransfer(
  data: Uint8Array,
  header: MadHeader | undefined,
  agent: MadAgentOptions,
  hiTid: number,
): asserts header is MadHeader {
  if (!header) throw invalid(`a transfer of ${data.length} bytes without a MAD header`);
  const { managementClass, method, transactionIdHi } = header;
  if (!isRmppClass(managementClass)) throw invalid(`class ${managementClass} has no RMPP`);
  const least = classHeaderLength(managementClass, true);
  if (data.length < least || data.length > MAX_RMPP_BYTES) {
    throw invalid(`transfer of ${data.length} bytes: ${least} to ${MAX_RMPP_BYTES}`);
  }
  if ((method & METHOD_RESPONSE_BIT) === 0) {
    if (transactionIdHi !== hiTid) throw foreignTransaction(hiTid);
    return;
  }
  const acks = method & ~METHOD_RESPONSE_BIT;
  const classes =
    managementClass === agent.managementClass && header.classVersion === agent.classVersion;
  if (classes && agent.methods.includes(acks)) return;
  throw invalid(
    `a transfer of class ${managementClass}, method ${method}: its ACKs are of method ${acks}, ` +
      'which this agent has not registered',
  );
}

function foreignTransaction(hiTid: number): SpiError {
  return invalid(`a request of this agent has ${hiTid} in its transaction id's upper half`);
}

function invalid(message: string): SpiError {
  return new SpiError('EINVAL', message);
}
