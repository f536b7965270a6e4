/** Builds a REQ. Fields that RoCE does not use have the values of Linux. */
import {
  type CmConnectOptions,
  CmPrivateData,
  DEFAULT_PKEY,
  type DeviceAttributes,
  type Gid,
  isPortServiceId,
  PATH_MTU_BYTES,
} from '../../../core/spi/index.js';
import { checkPrivateData } from '../common/checks.js';
import { cmaHeaderOf } from './cma-contents.js';
import {
  DEFAULT_ACK_TIMEOUT,
  LOCAL_CM_RESPONSE_TIMEOUT,
  MAX_CM_RETRIES,
  REMOTE_CM_RESPONSE_TIMEOUT,
} from '../common/timing.js';
import { joinCmaPrivateData } from '../wire/cma-header.js';
import { transportFields, transportOfAsker } from '../common/transport.js';
import { type CmReq, NO_ALTERNATE_PATH, reqCodec, ROCE_LID } from '../wire/req.js';

const HOP_LIMIT = 64;
const REQ_PRIVATE_DATA_BYTES = reqCodec.layout.privateData.length;

export interface ReqIdentity {
  readonly localCommId: number;
  readonly localGid: Gid;
  readonly startingPsn: number;
  /** For rdma_cm's header. */
  readonly sourcePort: number;
}

/** @throws SpiError('EINVAL') when the private data is too long */
export function reqOf(
  options: CmConnectOptions,
  identity: ReqIdentity,
  device: DeviceAttributes,
): CmReq {
  const transport = transportOfAsker(options.qp);
  const pathMtu = pathMtuCode(options, device);
  return {
    ...transportFields(transport, {
      responderResources: Math.min(options.responderResources, device.maxResponderResources),
      retryCount: options.retryCount,
      rnrRetryCount: options.rnrRetryCount,
      srq: options.qp.receiveRing ? 0 : 1,
    }),
    localCommId: identity.localCommId,
    vendorId: 0,
    serviceId: options.serviceId,
    localCaGuid: device.nodeGuid,
    localQkey: 0,
    localQpn: options.qp.qpn,
    localEecn: 0,
    initiatorDepth: Math.min(options.initiatorDepth, device.maxInitiatorDepth),
    remoteEecn: 0,
    remoteCmResponseTimeout: REMOTE_CM_RESPONSE_TIMEOUT,
    endToEndFlowControl: 0,
    startingPsn: identity.startingPsn,
    localCmResponseTimeout: LOCAL_CM_RESPONSE_TIMEOUT,
    partitionKey: DEFAULT_PKEY,
    pathMtu,
    rdcExists: 0,
    maxCmRetries: MAX_CM_RETRIES,
    primaryLocalLid: ROCE_LID,
    primaryRemoteLid: ROCE_LID,
    primaryLocalGid: identity.localGid,
    primaryRemoteGid: options.remoteGid.slice(),
    primaryFlowLabel: 0,
    primaryPacketRate: 0,
    primaryTrafficClass: 0,
    primaryHopLimit: HOP_LIMIT,
    primarySl: 0,
    primarySubnetLocal: 0,
    primaryLocalAckTimeout: options.ackTimeout ?? DEFAULT_ACK_TIMEOUT,
    ...NO_ALTERNATE_PATH,
    sapSupported: 0,
    privateData: privateDataOf(options, identity),
  };
}

function pathMtuCode({ pathMtuBytes }: CmConnectOptions, device: DeviceAttributes): number {
  const bytes = Math.min(pathMtuBytes ?? device.activeMtuBytes, device.activeMtuBytes);
  return PATH_MTU_BYTES.indexOf(bytes);
}

function privateDataOf(options: CmConnectOptions, identity: ReqIdentity): Uint8Array {
  const { serviceId, privateData, remoteGid } = options;
  if (!isPortServiceId(serviceId)) {
    checkPrivateData('REQ', privateData, REQ_PRIVATE_DATA_BYTES);
    return privateData.slice();
  }
  checkPrivateData('REQ', privateData, CmPrivateData.REQ);
  const header = cmaHeaderOf(identity.localGid, remoteGid, identity.sourcePort);
  return joinCmaPrivateData(header, privateData, CmPrivateData.REQ);
}
