/** A CM message in its MAD: 24 bytes of header, 232 of message (IBTA 12.6, 13.4.3). */
import { MAD_BYTES } from '../../../core/spi/modules/mad.js';
import { aprCodec, lapCodec } from './lap.js';
import {
  CM_ATTRIBUTE,
  CM_CLASS,
  CM_CLASS_VERSION,
  CM_MESSAGE_LENGTH,
  CM_METHOD_SEND,
  type CmMessageName,
} from './cm-codec.js';
import { drepCodec, dreqCodec, rtuCodec } from './dreq.js';
import { type Layout, type MessageOf, uint, wireCodec, type WireCodec } from './field-table.js';
import { mraCodec } from './mra.js';
import { rejCodec } from './rej.js';
import { repCodec } from './rep.js';
import { reqCodec } from './req.js';
import { sidrRepCodec, sidrReqCodec } from './sidr.js';

/** The codec of each message, by its name. */
export const CM_CODECS = {
  REQ: reqCodec,
  MRA: mraCodec,
  REJ: rejCodec,
  REP: repCodec,
  RTU: rtuCodec,
  DREQ: dreqCodec,
  DREP: drepCodec,
  SIDR_REQ: sidrReqCodec,
  SIDR_REP: sidrRepCodec,
  LAP: lapCodec,
  APR: aprCodec,
} as const;

/** One of the eleven messages: switch on `name`, then `body` has its type. */
export type CmMessage = {
  [N in CmMessageName]: { readonly name: N; readonly body: MessageOf<(typeof CM_CODECS)[N]> };
}[CmMessageName];

const MAD_HEADER_LENGTH = MAD_BYTES - CM_MESSAGE_LENGTH;

const madHeaderCodec = wireCodec('MAD header', MAD_HEADER_LENGTH, {
  baseVersion: uint(0, 0, 8),
  managementClass: uint(1, 0, 8),
  classVersion: uint(2, 0, 8),
  method: uint(3, 0, 8),
  /** Upper 32 bits of the transaction id: the requesting agent. */
  transactionIdHi: uint(8, 0, 32),
  transactionIdLo: uint(12, 0, 32),
  attributeId: uint(16, 0, 16),
  /** Vendor options in REQ, REP and SIDR_REP; else 0. */
  attributeModifier: uint(20, 0, 32),
});
type MadHeader = MessageOf<typeof madHeaderCodec>;

/** A CM message, and the fields of its MAD header that vary. */
export interface CmMad extends Pick<
  MadHeader,
  'transactionIdHi' | 'transactionIdLo' | 'attributeModifier'
> {
  readonly message: CmMessage;
}

const NAME_OF_ATTRIBUTE = new Map<number, CmMessageName>(
  Object.entries(CM_ATTRIBUTE).map(([name, id]) => [id, name as CmMessageName]),
);

/** Undefined unless it is a well-formed CM message of class version 2; the caller drops it. */
export function parseCmMad(mad: Uint8Array): CmMad | undefined {
  if (mad.length !== MAD_BYTES) return undefined;
  const header = madHeaderCodec.parse(mad.subarray(0, MAD_HEADER_LENGTH));
  if (header === undefined || !isCmHeader(header)) return undefined;
  const name = NAME_OF_ATTRIBUTE.get(header.attributeId);
  if (name === undefined) return undefined;
  const body = CM_CODECS[name].parse(mad.subarray(MAD_HEADER_LENGTH));
  if (body === undefined) return undefined;
  const { transactionIdHi, transactionIdLo, attributeModifier } = header;
  // The codec was chosen by the name, which the type system does not follow.
  const message = { name, body } as CmMessage;
  return { transactionIdHi, transactionIdLo, attributeModifier, message };
}

function isCmHeader(header: MadHeader): boolean {
  return (
    header.baseVersion === 1 &&
    header.managementClass === CM_CLASS &&
    header.classVersion === CM_CLASS_VERSION &&
    header.method === CM_METHOD_SEND
  );
}

/**
 * Writes the whole MAD for QP1.
 * @param mad 256 bytes to write; a new array when left out
 * @throws RangeError naming field, value and limit
 */
export function emitCmMad(cm: CmMad, mad: Uint8Array = new Uint8Array(MAD_BYTES)): Uint8Array {
  const { message, transactionIdHi, transactionIdLo, attributeModifier } = cm;
  const codec = CM_CODECS[message.name] as WireCodec<Layout, typeof message.body>;
  codec.emit(message.body, mad.subarray(MAD_HEADER_LENGTH));
  madHeaderCodec.emit(
    {
      baseVersion: 1,
      managementClass: CM_CLASS,
      classVersion: CM_CLASS_VERSION,
      method: CM_METHOD_SEND,
      transactionIdHi,
      transactionIdLo,
      attributeId: CM_ATTRIBUTE[message.name],
      attributeModifier,
    },
    mad.subarray(0, MAD_HEADER_LENGTH),
  );
  return mad;
}
