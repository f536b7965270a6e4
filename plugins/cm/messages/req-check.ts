/**
 * Checks a REQ before a listener gets it: returns the reason to reject it, or its contents for the
 * listener (Linux, drivers/infiniband/core/cm.c and cma.c).
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
import { REJECT_REASON } from '../wire/rej.js';
import type { CmReq } from '../wire/req.js';

export interface ReqRejection {
  readonly reason: number;
  readonly info?: Uint8Array;
}

export interface ReqContents extends CmaContents {
  /** Undefined if no queue pair of the device has that transport; then no listener takes it. */
  readonly transport: CmTransport | undefined;
  readonly localGidIndex: number;
}

/** Contents of a REQ that a listener may take. */
export interface TakenContents extends ReqContents {
  readonly transport: CmTransport;
}

/** @param source the address that the REQ came from; it must name the same one */
export function checkReq(req: CmReq, source: Gid, device: Device): ReqContents | ReqRejection {
  const localGidIndex = device.gids.findIndex((gid) => gidEquals(gid, req.primaryRemoteGid));
  if (localGidIndex < 0 || !gidEquals(req.primaryLocalGid, source)) {
    const reason = REJECT_REASON.PRIMARY_REMOTE_PORT_GID_REJECTED;
    const [ours] = device.gids;
    return ours ? { reason, info: ours } : { reason };
  }
  return checkPath(req, device) ?? contentsOf(req, transportFor(req, device), localGidIndex);
}

/** The reject reason for a transport that the listener does not take, as in Linux. */
export function wrongTransportReason({ serviceId }: CmReq): number {
  const { CONSUMER_REJECT, INVALID_TRANSPORT_SERVICE_TYPE } = REJECT_REASON;
  return isPortServiceId(serviceId) ? CONSUMER_REJECT : INVALID_TRANSPORT_SERVICE_TYPE;
}

export function isRejection(checked: ReqContents | ReqRejection): checked is ReqRejection {
  return 'reason' in checked;
}

/** @param wanted the transport of the listener; by default any that the device has */
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
  // Both sides split messages by the MTU in REQ. We cannot lower it, so a larger one is rejected.
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
