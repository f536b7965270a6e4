/**
 * What is wrong with a REQ, before a listener sees it: the reason to reject it with, or what its
 * listener is told (Linux, drivers/infiniband/core/cm.c and cma.c).
 */
import {
  DEFAULT_PKEY,
  type Device,
  type Gid,
  gidEquals,
  isPortServiceId,
  PATH_MTU_BYTES,
} from '../../../core/spi/index.js';
import { type CmaContents, cmaContentsOf } from './cma-contents.js';
import { type CmTransport, transportOf } from '../common/transport.js';
import { REJECT_REASON } from '../wire/reject-reason.js';
import type { CmReq } from '../wire/req.js';

export interface ReqRejection {
  readonly reason: number;
  readonly info?: Uint8Array;
}

export interface ReqContents extends CmaContents {
  /** Undefined for one that no queue pair of the device has: no listener takes it. */
  readonly transport: CmTransport | undefined;
  readonly localGidIndex: number;
}

/** Contents of a REQ that its listener takes. */
export interface TakenContents extends ReqContents {
  readonly transport: CmTransport;
}

/** @param source the address that the REQ came from: its connection is to be with no other */
export function checkReq(req: CmReq, source: Gid, device: Device): ReqContents | ReqRejection {
  const localGidIndex = device.gids.findIndex((gid) => gidEquals(gid, req.primaryRemoteGid));
  if (localGidIndex < 0 || !gidEquals(req.primaryLocalGid, source)) {
    const reason = REJECT_REASON.PRIMARY_REMOTE_PORT_GID_REJECTED;
    const [ours] = device.gids;
    return ours ? { reason, info: ours } : { reason };
  }
  return checkPath(req, device) ?? contentsOf(req, transportFor(req, device), localGidIndex);
}

/** The reason that Linux gives for a transport which is not the listener's: rdma_cm refuses it. */
export function wrongTransportReason({ serviceId }: CmReq): number {
  const { CONSUMER_REJECT, INVALID_TRANSPORT_SERVICE_TYPE } = REJECT_REASON;
  return isPortServiceId(serviceId) ? CONSUMER_REJECT : INVALID_TRANSPORT_SERVICE_TYPE;
}

export function isRejection(checked: ReqContents | ReqRejection): checked is ReqRejection {
  return 'reason' in checked;
}

/** @param wanted what the listener takes; without one, any that the device has */
export function isTaken(
  contents: ReqContents,
  wanted = contents.transport,
): contents is TakenContents {
  return wanted !== undefined && contents.transport === wanted;
}

function checkPath(req: CmReq, device: Device): ReqRejection | undefined {
  const { activeMtuBytes } = device.attributes;
  const mtuBytes = PATH_MTU_BYTES[req.pathMtu] ?? 0;
  if (req.localQpn < 2 || (req.partitionKey & 0x7fff) !== (DEFAULT_PKEY & 0x7fff)) {
    return { reason: REJECT_REASON.UNSUPPORTED_REQUEST };
  }
  // Both sides cut messages by the MTU of REQ: what we cannot take, we cannot shorten either.
  if (mtuBytes === 0 || mtuBytes > activeMtuBytes) {
    const code = PATH_MTU_BYTES.indexOf(activeMtuBytes);
    return { reason: REJECT_REASON.INVALID_PATH_MTU, info: Uint8Array.of(code << 4) };
  }
  if (req.alternateLocalLid !== 0) {
    return { reason: REJECT_REASON.ALTERNATE_REMOTE_PORT_GID_REJECTED };
  }
  return undefined;
}

function transportFor(req: CmReq, device: Device): CmTransport | undefined {
  const transport = transportOf(req);
  return transport !== undefined && device.capabilities.has(transport) ? transport : undefined;
}

function contentsOf(
  req: CmReq,
  transport: CmTransport | undefined,
  localGidIndex: number,
): ReqContents | ReqRejection {
  const contents = cmaContentsOf(req.serviceId, req.privateData, req.primaryRemoteGid);
  if (!contents) return { reason: REJECT_REASON.CONSUMER_REJECT };
  return { transport, localGidIndex, ...contents };
}
