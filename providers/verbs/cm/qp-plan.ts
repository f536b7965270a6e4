/** Attributes of a connection's queue pair, as found out by the CM. */
import {
  type AddressVector,
  type CmParameters,
  type Gid,
  PATH_MTU_BYTES,
  QpState,
} from '../../../core/spi/index.js';
import type { QpPlan } from '../../../plugins/cm/provider.js';
import type { InfiniBandPath } from '../objects/attribute-words.js';
import type { CmQpAttributes } from './calls.js';
import type { CmServices } from './connection.js';

/** Bits of the mask (enum ibv_qp_attr_mask). */
const MAX_RD_ATOMIC_BIT = 1 << 13;
const MAX_DEST_RD_ATOMIC_BIT = 1 << 17;

/**
 * From rdma_init_qp_attr, for RTR and for RTS: addresses, PSNs, MTU, timeouts; what the consumer
 * wants to serve and to issue limits what the peer offers.
 * @throws SpiError of the call, when the request or the answer is gone
 */
export function qpPlanOf(
  services: CmServices,
  id: number,
  localGid: Gid,
  wanted: CmParameters,
): QpPlan {
  const { calls, addresses } = services;
  const rtr = calls.queuePairAttributes(id, QpState.RTR);
  const rts = calls.queuePairAttributes(id, QpState.RTS);
  const addressVector: AddressVector & InfiniBandPath = {
    gid: rtr.remoteGid,
    localGidIndex: addresses.indexOf(localGid, rtr.word('SOURCE_GID_INDEX')),
    trafficClass: rtr.word('TRAFFIC_CLASS'),
    hopLimit: Math.max(rtr.word('HOP_LIMIT'), 1),
    flowLabel: rtr.word('FLOW_LABEL') & 0xfffff,
    destinationLid: rtr.word('DESTINATION_LID'),
    serviceLevel: rtr.word('SERVICE_LEVEL'),
    sourcePathBits: rtr.word('SOURCE_PATH_BITS'),
  };
  return {
    addressVector,
    pathMtuBytes: PATH_MTU_BYTES[rtr.word('PATH_MTU')] ?? 0,
    accessFlags: wanted.accessFlags,
    destinationQpn: rtr.word('DESTINATION_QPN'),
    receivePsn: rtr.word('RECEIVE_PSN'),
    sendPsn: rts.word('SEND_PSN'),
    responderResources: Math.min(
      wanted.responderResources,
      offered(rtr, 'MAX_DEST_RD_ATOMIC', MAX_DEST_RD_ATOMIC_BIT),
    ),
    initiatorDepth: Math.min(
      wanted.initiatorDepth,
      offered(rts, 'MAX_RD_ATOMIC', MAX_RD_ATOMIC_BIT),
    ),
    minRnrTimer: wanted.minRnrTimer,
    ackTimeout: rts.word('TIMEOUT'),
    retryCount: rts.word('RETRY_COUNT'),
    rnrRetryCount: rts.word('RNR_RETRY_COUNT'),
  };
}

/** iWARP's CM says nothing of it. */
function offered(
  attributes: CmQpAttributes,
  word: 'MAX_DEST_RD_ATOMIC' | 'MAX_RD_ATOMIC',
  bit: number,
): number {
  return (attributes.word('MASK') & bit) === 0 ? Infinity : attributes.word(word);
}
