/**
 * Attributes of a queue pair as words of the addon (native/qp_attributes.h) and bits of the verbs
 * mask (`ibv_qp_attr_mask`).
 */
import { checkInteger, checkValue, oneOf } from '../../../core/spi/checks/index.js';
import { einval } from '../../../core/spi/errors/einval.js';
import {
  type AddressVector,
  PATH_MTU_BYTES,
  type QpState,
  QpType,
  type QueuePairAttributes,
  SpiError,
} from '../../../core/spi/index.js';

const WORD = {
  STATE: 0,
  SQD_NOTIFY: 2,
  PATH_MTU: 7,
  GID: 17,
  /** Five words: `pathWordsOf`. */
  GID_INDEX: 21,
  HOP_LIMIT: 22,
  TRAFFIC_CLASS: 23,
  FLOW_LABEL: 24,
  DESTINATION_LID: 27,
  SERVICE_LEVEL: 28,
  SOURCE_PATH_BITS: 29,
} as const;
/** Words of an attribute array. */
export const ATTRIBUTE_WORDS = 30;

const MASK = { SQD_NOTIFY: 1 << 2, AV: 1 << 7, PATH_MTU: 1 << 8 } as const;
const DEFAULT_HOP_LIMIT = 64;

const RELIABLE: readonly QpType[] = [QpType.RC, QpType.XRC_INI, QpType.XRC_TGT];
const CONNECTED: readonly QpType[] = [...RELIABLE, QpType.UC];
const ALL: readonly QpType[] = [...CONNECTED, QpType.UD];

/** Attribute, its word, the bit of the mask, its largest value, and what a query tells it of. */
const NUMBERS = [
  ['state', WORD.STATE, 0, 6, []],
  ['currentState', 1, 1, 6, []],
  ['accessFlags', 3, 3, 0xf, CONNECTED],
  ['pkeyIndex', 4, 4, 0xffff, ALL],
  ['portNumber', 5, 5, 0xff, ALL],
  ['qkey', 6, 6, 0xffffffff, [QpType.UD]],
  ['destinationQpn', 8, 20, 0xffffff, CONNECTED],
  ['receivePsn', 9, 12, 0xffffff, CONNECTED],
  ['sendPsn', 10, 16, 0xffffff, ALL],
  ['maxDestRdAtomic', 11, 17, 0xff, RELIABLE],
  ['maxRdAtomic', 12, 13, 0xff, RELIABLE],
  ['minRnrTimer', 13, 15, 31, RELIABLE],
  ['timeout', 14, 9, 31, RELIABLE],
  ['retryCount', 15, 10, 7, RELIABLE],
  ['rnrRetryCount', 16, 11, 7, RELIABLE],
] as const;

/** Parts of an InfiniBand path beside GIDs, known to the CM. 0 on Ethernet. */
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
    words[WORD.SQD_NOTIFY] = enableSqdAsyncNotify ? 1 : 0;
    mask |= MASK.SQD_NOTIFY;
  }
  if (pathMtuBytes !== undefined) {
    words[WORD.PATH_MTU] = mtuCode(pathMtuBytes);
    mask |= MASK.PATH_MTU;
  }
  if (addressVector === undefined) return mask;
  writeAddressVector(addressVector, words, gids, attributes.portNumber ?? portNumber);
  return mask | MASK.AV;
}

const PATH_MTU_KIND = oneOf(PATH_MTU_BYTES.slice(1));

function mtuCode(bytes: number): number {
  checkValue('pathMtuBytes', bytes, PATH_MTU_KIND, einval);
  return PATH_MTU_BYTES.indexOf(bytes);
}

/**
 * A path as five words: index of the local GID, hop limit, traffic class, flow label, port.
 * @throws SpiError('EINVAL')
 */
export function pathWordsOf(
  { gid, localGidIndex, hopLimit, trafficClass, flowLabel }: AddressVector,
  gids: GidIndices,
  portNumber: number,
): Uint32Array {
  if (gid.length !== 16) throw new SpiError('EINVAL', `a GID of ${gid.length} bytes: 16`);
  return Uint32Array.of(
    gids.hardwareGidIndex(localGidIndex),
    hopLimit ?? DEFAULT_HOP_LIMIT,
    trafficClass ?? 0,
    flowLabel ?? 0,
    portNumber,
  );
}

function writeAddressVector(
  addressVector: AddressVector & Partial<InfiniBandPath>,
  words: Uint32Array,
  gids: GidIndices,
  portNumber: number,
): void {
  words.set(pathWordsOf(addressVector, gids, portNumber), WORD.GID_INDEX);
  new Uint8Array(words.buffer, words.byteOffset).set(addressVector.gid, WORD.GID * 4);
  words[WORD.DESTINATION_LID] = addressVector.destinationLid ?? 0;
  words[WORD.SERVICE_LEVEL] = addressVector.serviceLevel ?? 0;
  words[WORD.SOURCE_PATH_BITS] = addressVector.sourcePathBits ?? 0;
}

/** Attributes of a queue pair, as the kernel reports them; a path is there once it has been set. */
export function readAttributes(
  words: Uint32Array,
  type: QpType,
  gids: GidIndices,
): QueuePairAttributes {
  const state = (words[WORD.STATE] ?? 0) as QpState;
  const numbers: Record<string, number> = { state, currentState: state };
  for (const [name, word, , , types] of NUMBERS) {
    if (types.some((each) => each === type)) numbers[name] = words[word] ?? 0;
  }
  const pathMtuBytes = PATH_MTU_BYTES[words[WORD.PATH_MTU] ?? 0] ?? 0;
  if (type === QpType.UD || pathMtuBytes === 0) return numbers;
  return { ...numbers, pathMtuBytes, addressVector: addressVectorOf(words, gids) };
}

function addressVectorOf(words: Uint32Array, gids: GidIndices): AddressVector {
  const bytes = new Uint8Array(words.buffer, words.byteOffset);
  return {
    gid: bytes.slice(WORD.GID * 4, WORD.GID * 4 + 16),
    localGidIndex: gids.localGidIndex(words[WORD.GID_INDEX] ?? 0),
    hopLimit: words[WORD.HOP_LIMIT] ?? 0,
    trafficClass: words[WORD.TRAFFIC_CLASS] ?? 0,
    flowLabel: words[WORD.FLOW_LABEL] ?? 0,
  };
}
