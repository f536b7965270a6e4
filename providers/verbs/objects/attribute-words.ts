/**
 * Attributes of a queue pair as words of the addon (native/qp_attributes.h) and bits of the verbs
 * mask (`ibv_qp_attr_mask`).
 */
import { checkInteger, checkValue, oneOf } from '../../../core/spi/checks/index.js';
import { einval } from '../../../core/spi/einval.js';
import {
  type AddressVector,
  PATH_MTU_BYTES,
  type QpState,
  type QpType,
  type QueuePairAttributes,
  SpiError,
} from '../../../core/spi/index.js';

const STATE = 0;
const SQD_NOTIFY = 2;
const PATH_MTU = 7;
const GID = 17;
const GID_INDEX = 21;
const HOP_LIMIT = 22;
const TRAFFIC_CLASS = 23;
const FLOW_LABEL = 24;
const AV_PORT = 25;
const DESTINATION_LID = 27;
const SERVICE_LEVEL = 28;
const SOURCE_PATH_BITS = 29;
/** Words of an attribute array. */
export const ATTRIBUTE_WORDS = 30;

const AV_MASK = 1 << 7;
const PATH_MTU_MASK = 1 << 8;
const DEFAULT_HOP_LIMIT = 64;

/** Attribute, its word, the bit of the mask, and its largest value. */
const NUMBERS = [
  ['state', STATE, 0, 6],
  ['currentState', 1, 1, 6],
  ['accessFlags', 3, 3, 0xf],
  ['pkeyIndex', 4, 4, 0xffff],
  ['portNumber', 5, 5, 0xff],
  ['qkey', 6, 6, 0xffffffff],
  ['destinationQpn', 8, 20, 0xffffff],
  ['receivePsn', 9, 12, 0xffffff],
  ['sendPsn', 10, 16, 0xffffff],
  ['maxDestRdAtomic', 11, 17, 0xff],
  ['maxRdAtomic', 12, 13, 0xff],
  ['minRnrTimer', 13, 15, 31],
  ['timeout', 14, 9, 31],
  ['retryCount', 15, 10, 7],
  ['rnrRetryCount', 16, 11, 7],
] as const;

/** What each type of queue pair has of its own beside state, P_Key index and port. */
const CONNECTED = ['accessFlags', 'destinationQpn', 'receivePsn', 'sendPsn'] as const;
const RELIABLE = ['maxDestRdAtomic', 'maxRdAtomic', 'minRnrTimer', 'timeout'] as const;
const RETRIES = ['retryCount', 'rnrRetryCount'] as const;
const UD = 4;
const UC = 3;

/** What an InfiniBand path has beside GIDs; the CM knows it. 0 on Ethernet. */
export interface InfiniBandPath {
  readonly destinationLid: number;
  readonly serviceLevel: number;
  readonly sourcePathBits: number;
}

/** GIDs of the SPI to and from those of the port's table. */
export interface GidIndices {
  hardwareGidIndex(localIndex: number): number;
  localGidIndex(hardwareIndex: number): number;
}

/**
 * Writes attributes as words.
 * @returns the mask
 * @throws SpiError('EINVAL') that names the attribute whose value is out of range
 */
export function writeAttributes(
  attributes: QueuePairAttributes,
  words: Uint32Array,
  gids: GidIndices,
  portNumber: number,
): number {
  let mask = 0;
  for (const [name, word, bit, max] of NUMBERS) {
    const value = attributes[name];
    if (value === undefined) continue;
    checkInteger(name, value, 0, max, einval);
    words[word] = value;
    mask |= 1 << bit;
  }
  const { pathMtuBytes, addressVector, enableSqdAsyncNotify } = attributes;
  if (enableSqdAsyncNotify !== undefined) {
    words[SQD_NOTIFY] = enableSqdAsyncNotify ? 1 : 0;
    mask |= 1 << 2;
  }
  if (pathMtuBytes !== undefined) {
    words[PATH_MTU] = mtuCode(pathMtuBytes);
    mask |= PATH_MTU_MASK;
  }
  if (addressVector === undefined) return mask;
  writeAddressVector(addressVector, words, gids, attributes.portNumber ?? portNumber);
  return mask | AV_MASK;
}

const PATH_MTU_KIND = oneOf(PATH_MTU_BYTES.slice(1));

function mtuCode(bytes: number): number {
  checkValue('pathMtuBytes', bytes, PATH_MTU_KIND, einval);
  return PATH_MTU_BYTES.indexOf(bytes);
}

function writeAddressVector(
  addressVector: AddressVector & Partial<InfiniBandPath>,
  words: Uint32Array,
  gids: GidIndices,
  portNumber: number,
): void {
  const { gid, localGidIndex, hopLimit, trafficClass, flowLabel } = addressVector;
  if (gid.length !== 16)
    throw new SpiError('EINVAL', `addressVector.gid of ${gid.length} bytes: 16`);
  new Uint8Array(words.buffer, words.byteOffset).set(gid, GID * 4);
  words[GID_INDEX] = gids.hardwareGidIndex(localGidIndex);
  words[HOP_LIMIT] = hopLimit ?? DEFAULT_HOP_LIMIT;
  words[TRAFFIC_CLASS] = trafficClass ?? 0;
  words[FLOW_LABEL] = flowLabel ?? 0;
  words[AV_PORT] = portNumber;
  words[DESTINATION_LID] = addressVector.destinationLid ?? 0;
  words[SERVICE_LEVEL] = addressVector.serviceLevel ?? 0;
  words[SOURCE_PATH_BITS] = addressVector.sourcePathBits ?? 0;
}

/** What the kernel says of a queue pair; a path is there once it has been given one. */
export function readAttributes(
  words: Uint32Array,
  type: QpType,
  gids: GidIndices,
): QueuePairAttributes {
  const state = (words[STATE] ?? 0) as QpState;
  const numbers: Record<string, number> = { state, currentState: state };
  for (const [name, word] of NUMBERS) {
    if (has(name, type)) numbers[name] = words[word] ?? 0;
  }
  const pathMtuBytes = PATH_MTU_BYTES[words[PATH_MTU] ?? 0] ?? 0;
  if (type === UD || pathMtuBytes === 0) return numbers;
  return { ...numbers, pathMtuBytes, addressVector: addressVectorOf(words, gids) };
}

function has(name: string, type: QpType): boolean {
  const within = (names: readonly string[]): boolean => names.includes(name);
  if (name === 'pkeyIndex' || name === 'portNumber') return true;
  if (type === UD) return name === 'qkey' || name === 'sendPsn';
  if (within(CONNECTED)) return true;
  return type !== UC && (within(RELIABLE) || within(RETRIES));
}

function addressVectorOf(words: Uint32Array, gids: GidIndices): AddressVector {
  const bytes = new Uint8Array(words.buffer, words.byteOffset);
  return {
    gid: bytes.slice(GID * 4, GID * 4 + 16),
    localGidIndex: gids.localGidIndex(words[GID_INDEX] ?? 0),
    hopLimit: words[HOP_LIMIT] ?? 0,
    trafficClass: words[TRAFFIC_CLASS] ?? 0,
    flowLabel: words[FLOW_LABEL] ?? 0,
  };
}
