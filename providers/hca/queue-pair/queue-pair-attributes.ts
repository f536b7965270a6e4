/** Ranges of queue pair attributes; which of them a transition takes is in qp-transitions.ts. */
import {
  checkInteger,
  checkValue,
  checkValues,
  integer,
  isBitSet,
  kindOf,
  OBJECT,
  oneOf,
  optional,
} from '../../../core/spi/checks/index.js';
import { einval } from '../../../core/spi/errors/einval.js';
import {
  Access,
  ipFromGid,
  isMulticastGid,
  type PacketPort,
  PATH_MTU_BYTES,
  type QueuePairAttributes,
} from '../../../core/spi/index.js';
import type { HcaParameters } from '../common/parameters.js';

/** Limits of the device for attributes. */
export interface AttributeLimits {
  readonly mtuBytes: number;
  readonly localMtuBytes: number | undefined;
  readonly channelMtuBytes: number | undefined;
  readonly gidCount: number;
  readonly parameters: HcaParameters;
}

export function limitsOf(port: PacketPort, parameters: HcaParameters): AttributeLimits {
  const { mtuBytes, localMtuBytes, channelMtuBytes, gids } = port;
  return { mtuBytes, localMtuBytes, channelMtuBytes, gidCount: gids.length, parameters };
}

const QP_ACCESS =
  Access.LOCAL_WRITE | Access.REMOTE_WRITE | Access.REMOTE_READ | Access.REMOTE_ATOMIC;

const WORD = optional(integer(0, 0xffffffff));
const TIME_CODE = optional(integer(0, 31));
const COUNT = optional(integer(0, 7));
const ATTRIBUTES = {
  pkeyIndex: optional(integer(0, 0)),
  portNumber: optional(integer(1, 1)),
  qkey: WORD,
  destinationQpn: optional(integer(0, 0xffffff)),
  receivePsn: WORD,
  sendPsn: WORD,
  minRnrTimer: TIME_CODE,
  timeout: TIME_CODE,
  retryCount: COUNT,
  rnrRetryCount: COUNT,
  accessFlags: optional(
    kindOf<number>('a bit set of Access', (flags) => isBitSet(flags, QP_ACCESS)),
  ),
};
const GID = kindOf<Uint8Array>('a Uint8Array', (gid) => gid instanceof Uint8Array);
const PATH_MTU = oneOf(PATH_MTU_BYTES.slice(1));

/** @throws SpiError('EINVAL') that names the attribute, its value and the limit */
export function checkAttributeValues(a: QueuePairAttributes, limits: AttributeLimits): void {
  const { maxResponderResources, maxInitiatorDepth } = limits.parameters;
  checkValues(a, ATTRIBUTES, einval);
  range('maxDestRdAtomic', a.maxDestRdAtomic, 0, maxResponderResources);
  range('maxRdAtomic', a.maxRdAtomic, 0, maxInitiatorDepth);
  const { localMtuBytes, channelMtuBytes, mtuBytes } = limits;
  if (a.pathMtuBytes !== undefined && ![localMtuBytes, channelMtuBytes].includes(a.pathMtuBytes)) {
    checkMtu(a.pathMtuBytes, mtuBytes);
  }
  checkValue('addressVector', a.addressVector, optional(OBJECT), einval);
  if (a.addressVector !== undefined) {
    const { gid, localGidIndex, peer } = a.addressVector;
    checkValue('addressVector.peer', peer, optional(OBJECT), einval);
    range('addressVector.peer.sourcePort', peer?.sourcePort, 1, 65535);
    checkInteger('addressVector.localGidIndex', localGidIndex, 0, limits.gidCount - 1, einval);
    checkValue('addressVector.gid', gid, GID, einval);
    if (gid.length !== 16) throw einval('the length of addressVector.gid', gid.length, '16');
    if (isMulticastGid(gid)) throw einval('addressVector.gid', ipFromGid(gid), 'that of one port');
  }
}

function checkMtu(pathMtuBytes: number, mtuBytes: number): void {
  checkValue('pathMtuBytes', pathMtuBytes, PATH_MTU, einval);
  if (pathMtuBytes > mtuBytes) {
    throw einval('pathMtuBytes', pathMtuBytes, `at most ${mtuBytes}, as the port has it`);
  }
}

function range(name: string, value: number | undefined, min: number, max: number): void {
  if (value !== undefined) checkInteger(name, value, min, max, einval);
}
