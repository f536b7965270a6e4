/**
 * How two of ours on one host agree on longer packets than IBTA knows: by the vendor id of REQ and
 * REP, whose place in enhanced connection establishment is just that. REQ names the agreement, and a
 * peer that keeps it says so in its REP; any other one ignores an id that is not its own, and the
 * path MTU of REQ holds. Offered on loopback only.
 */
import { LOCAL_MTU_BYTES, PATH_MTU_BYTES } from '../../core/spi/index.js';
import type { DeviceAttributes } from '../../core/spi/index.js';
import { transportOf } from './transport.js';
import type { CmTransport } from './transport.js';
import type { CmReq } from './wire/req.js';

/** Locally administered: it stands for LOCAL_MTU_BYTES, and a change of that asks for another. */
const LOCAL_MTU_VENDOR_ID = 0x0a000e;
const NONE = 0;
const FULL_MTU = 4096;

/** What REQ offers: only a consumer that asked for no less than the whole MTU is offered more. */
export function offeredVendorId(
  transport: CmTransport,
  pathMtuCode: number,
  { localMtuBytes }: DeviceAttributes,
): number {
  const whole = PATH_MTU_BYTES[pathMtuCode] === FULL_MTU;
  return transport === 'rc' && whole && localMtuBytes === LOCAL_MTU_BYTES
    ? LOCAL_MTU_VENDOR_ID
    : NONE;
}

/** What REP answers. */
export function agreedVendorId(req: CmReq, device: DeviceAttributes): number {
  const transport = transportOf(req);
  const ours = transport && offeredVendorId(transport, req.pathMtu, device);
  return ours === req.vendorId ? req.vendorId : NONE;
}

/** @param vendorId of the REP */
export function agreedMtuBytes(req: CmReq, vendorId: number): number {
  if (vendorId === LOCAL_MTU_VENDOR_ID && req.vendorId === vendorId) return LOCAL_MTU_BYTES;
  return PATH_MTU_BYTES[req.pathMtu] ?? 0;
}
