/** Sense data: the reason that a command failed (SPC-4 4.5). */
import { bits, flag, format, uint, uint64 } from './field-table.js';
import { WireError } from './wire-error.js';

export const SENSE_KEY = {
  NO_SENSE: 0x0,
  RECOVERED_ERROR: 0x1,
  NOT_READY: 0x2,
  MEDIUM_ERROR: 0x3,
  HARDWARE_ERROR: 0x4,
  ILLEGAL_REQUEST: 0x5,
  UNIT_ATTENTION: 0x6,
  DATA_PROTECT: 0x7,
  BLANK_CHECK: 0x8,
  VENDOR_SPECIFIC: 0x9,
  COPY_ABORTED: 0xa,
  ABORTED_COMMAND: 0xb,
  VOLUME_OVERFLOW: 0xd,
  MISCOMPARE: 0xe,
} as const;

/** The field that is at fault (SPC-4 4.5.2.4.2). */
export interface FieldPointer {
  /** True for a field of the CDB; false for one of the parameter list. */
  readonly inCdb: boolean;
  /** Its first byte, 0 to 65,535. */
  readonly byte: number;
}

/** Sense data of either format. */
export interface Sense {
  /** `SENSE_KEY`. */
  readonly key: number;
  /** Additional sense code, and its qualifier. */
  readonly asc: number;
  readonly ascq: number;
  /** The logical block, or what else the code says. */
  readonly information?: bigint;
  /** True if it belongs to an earlier command. */
  readonly isDeferred?: boolean;
  /** The field that makes a request illegal. */
  readonly field?: FieldPointer;
}

const FIXED = 0x70;
const DESCRIPTOR = 0x72;
const FIXED_BYTES = 18;

const responseCode = bits(0, 0x7f);

const fixedSense = format(
  'fixed format sense data',
  FIXED_BYTES,
  {
    responseCode,
    /** `information` means something. */
    valid: flag(0, 0x80),
    key: bits(2, 0x0f),
    information: uint(3, 4),
    additionalLength: uint(7, 1),
    asc: uint(12, 1),
    ascq: uint(13, 1),
    /** `fieldPointer` means something. */
    fieldValid: flag(15, 0x80),
    fieldInCdb: flag(15, 0x40),
    fieldPointer: uint(16, 2),
  },
  { responseCode: FIXED, additionalLength: FIXED_BYTES - 8 },
);

const descriptorSense = format(
  'descriptor format sense data',
  8,
  {
    responseCode,
    key: bits(1, 0x0f),
    asc: uint(2, 1),
    ascq: uint(3, 1),
    additionalLength: uint(7, 1),
  },
  { responseCode: DESCRIPTOR },
);

const INFORMATION_TYPE = 0;
const informationDescriptor = format(
  'information sense data descriptor',
  12,
  {
    type: uint(0, 1),
    additionalLength: uint(1, 1),
    valid: flag(2, 0x80),
    information: uint64(4),
  },
  { additionalLength: 0x0a, valid: true },
);

const FIELD_TYPE = 2;
/** Sense key specific: for an illegal request, a field pointer. */
const fieldDescriptor = format(
  'sense key specific descriptor',
  8,
  {
    type: uint(0, 1),
    additionalLength: uint(1, 1),
    valid: flag(4, 0x80),
    inCdb: flag(4, 0x40),
    fieldPointer: uint(5, 2),
  },
  { type: FIELD_TYPE, additionalLength: 6, valid: true },
);

/** In 18 bytes; information that does not fit into 32 bits is left out, as SPC-4 4.5.3 says. */
export function emitFixedSense(sense: Sense): Uint8Array {
  const { key, asc, ascq, information, isDeferred, field } = sense;
  const fits = information !== undefined && information <= 0xffff_ffffn;
  return fixedSense.make({
    responseCode: isDeferred ? FIXED + 1 : FIXED,
    key,
    asc,
    ascq,
    valid: fits,
    information: fits ? Number(information) : 0,
    ...(field !== undefined && {
      fieldValid: true,
      fieldInCdb: field.inCdb,
      fieldPointer: field.byte,
    }),
  }).bytes;
}

/** In 8 bytes, 12 more with information, and 8 more with a field. */
export function emitDescriptorSense(sense: Sense): Uint8Array {
  const { key, asc, ascq, information, isDeferred, field } = sense;
  const informationBytes = information === undefined ? 0 : informationDescriptor.lengthBytes;
  const fieldBytes = field === undefined ? 0 : fieldDescriptor.lengthBytes;
  const additionalLength = informationBytes + fieldBytes;
  const bytes = new Uint8Array(descriptorSense.lengthBytes + additionalLength);
  const response = isDeferred ? DESCRIPTOR + 1 : DESCRIPTOR;
  descriptorSense.emit({ responseCode: response, key, asc, ascq, additionalLength }, bytes);
  const at = descriptorSense.lengthBytes;
  if (information !== undefined) informationDescriptor.emit({ information }, bytes, at);
  if (field !== undefined) {
    const { inCdb, byte } = field;
    fieldDescriptor.emit({ inCdb, fieldPointer: byte }, bytes, at + informationBytes);
  }
  return bytes;
}

/**
 * Sense data of either format; what is cut off counts as 0, as targets may cut it.
 * @throws WireError for a format that SPC-4 does not have
 */
export function readSense(bytes: Uint8Array): Sense {
  if (bytes.length === 0) throw new WireError('length', 'sense data in bytes', 0, 'at least 1');
  const code = bytes[0]! & 0x7f;
  switch (code) {
    case FIXED:
    case FIXED + 1: {
      const fields = fixedSense.view(padded(bytes, FIXED_BYTES));
      return {
        key: fields.key,
        asc: fields.asc,
        ascq: fields.ascq,
        ...(fields.valid && { information: BigInt(fields.information) }),
        ...(code === FIXED + 1 && { isDeferred: true }),
        ...(fields.fieldValid &&
          fields.key === SENSE_KEY.ILLEGAL_REQUEST && {
            field: { inCdb: fields.fieldInCdb, byte: fields.fieldPointer },
          }),
      };
    }
    case DESCRIPTOR:
    case DESCRIPTOR + 1: {
      const fields = descriptorSense.view(padded(bytes, descriptorSense.lengthBytes));
      const information = findInformation(bytes);
      const field = fields.key === SENSE_KEY.ILLEGAL_REQUEST ? findField(bytes) : undefined;
      return {
        key: fields.key,
        asc: fields.asc,
        ascq: fields.ascq,
        ...(information !== undefined && { information }),
        ...(code === DESCRIPTOR + 1 && { isDeferred: true }),
        ...(field !== undefined && { field }),
      };
    }
    default:
      throw new WireError('field', 'response code of sense data', code, '0x70 to 0x73');
  }
}

function findInformation(bytes: Uint8Array): bigint | undefined {
  const at = findDescriptor(bytes, INFORMATION_TYPE, informationDescriptor.lengthBytes);
  if (at === undefined) return undefined;
  const descriptor = informationDescriptor.view(bytes, at);
  return descriptor.valid ? descriptor.information : undefined;
}

function findField(bytes: Uint8Array): FieldPointer | undefined {
  const at = findDescriptor(bytes, FIELD_TYPE, fieldDescriptor.lengthBytes);
  if (at === undefined) return undefined;
  const descriptor = fieldDescriptor.view(bytes, at);
  if (!descriptor.valid) return undefined;
  return { inCdb: descriptor.inCdb, byte: descriptor.fieldPointer };
}

/** Offset of the first complete descriptor of the type. */
function findDescriptor(bytes: Uint8Array, type: number, lengthBytes: number): number | undefined {
  for (let at = descriptorSense.lengthBytes; at + 2 <= bytes.length;) {
    if (bytes[at] === type && at + lengthBytes <= bytes.length) return at;
    at += 2 + bytes[at + 1]!;
  }
  return undefined;
}

function padded(bytes: Uint8Array, lengthBytes: number): Uint8Array {
  if (bytes.length >= lengthBytes) return bytes;
  const whole = new Uint8Array(lengthBytes);
  whole.set(bytes);
  return whole;
}

/** The data segment of a SCSI Response: a 2-byte length, then the sense (RFC 7143, 11.4.7.2). */
export function emitSenseSegment(sense: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(2 + sense.length);
  bytes[0] = sense.length >>> 8;
  bytes[1] = sense.length;
  bytes.set(sense, 2);
  return bytes;
}

/**
 * Sense data out of the data segment of a SCSI Response; undefined where there is none.
 * @throws WireError for a length that goes beyond the segment, or sense that SPC-4 does not have
 */
export function readSenseSegment(data: Uint8Array): Sense | undefined {
  if (data.length < 2) return undefined;
  const lengthBytes = (data[0]! << 8) | data[1]!;
  if (lengthBytes > data.length - 2) {
    throw new WireError('length', 'SenseLength', lengthBytes, `at most ${data.length - 2}`);
  }
  return lengthBytes === 0 ? undefined : readSense(data.subarray(2, 2 + lengthBytes));
}
