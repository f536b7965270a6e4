/** Hello and HelloAck of a connection, and how the answer to a Hello is read. */
import { isIPv6 } from 'node:net';
import { type ConnectionEvent, DatEventNumber } from 'dapl';
import { type StreamAddress, StreamError } from '../../socket/index.js';
import { isVersionKnown, refusalOf } from '../session/index.js';
import {
  emitHello,
  emitHelloAck,
  type HelloAck,
  HELLO_ACK_BYTES,
  parseHelloAck,
  VERSION,
} from '../wire/index.js';
import { ipBytes } from './ip-bytes.js';
import type { SdpPlan } from './options.js';

/** Private data of a rejection: what a HelloAck has in front of its filling. */
const REJECT_BYTES = 148;

export function helloOf(plan: SdpPlan, local: StreamAddress, remote: StreamAddress): Uint8Array {
  return emitHello({
    ...{ bufs: plan.receives, version: VERSION, isIpv6: isIPv6(remote.address) },
    maxAdverts: plan.maxAdverts,
    desiredRemoteBytes: plan.desiredPeerBytes,
    localBytes: plan.receiveBytes,
    localPort: local.port,
    source: ipBytes(local.address),
    destination: ipBytes(remote.address),
  });
}

export function helloAckOf(plan: SdpPlan, isIpv6: boolean, actualBytes: number): Uint8Array {
  const { receives: bufs, maxAdverts } = plan;
  return emitHelloAck({ ...{ bufs, isIpv6, maxAdverts, actualBytes }, version: VERSION });
}

/** In a rejection: so a peer of another version knows why. */
export function refusalBytes(plan: SdpPlan, isIpv6: boolean): Uint8Array {
  return helloAckOf(plan, isIpv6, plan.receiveBytes).subarray(0, REJECT_BYTES);
}

/** @throws SdpWireError, StreamError EPROTONOSUPPORT, EPROTO */
export function agreeTo(privateData: Uint8Array): HelloAck {
  const ack = parseHelloAck(privateData);
  const { version, bufs, actualBytes } = ack;
  if (!isVersionKnown(version)) throw otherVersion(version, {});
  const refusal = refusalOf(bufs, actualBytes);
  if (refusal !== undefined)
    throw new StreamError('EPROTO', { syscall: 'connect', detail: refusal });
  return ack;
}

/** A rejection that says more than that there was one. */
export function refusalIn(
  event: ConnectionEvent | undefined,
  remote: StreamAddress,
): StreamError | undefined {
  if (event?.number !== DatEventNumber.PEER_REJECTED) return undefined;
  const padded = new Uint8Array(HELLO_ACK_BYTES);
  padded.set(event.privateData.subarray(0, HELLO_ACK_BYTES));
  try {
    const { version } = parseHelloAck(padded);
    return isVersionKnown(version) ? undefined : otherVersion(version, remote);
  } catch {
    // No HelloAck: a rejection without a word.
    return undefined;
  }
}

function otherVersion(version: number, remote: Partial<StreamAddress>): StreamError {
  const name = `${version >> 4}.${version & 15}`;
  const detail = `the peer speaks version ${name}: it is ${VERSION >> 4}.${VERSION & 15} here`;
  return new StreamError('EPROTONOSUPPORT', { syscall: 'connect', detail, ...remote });
}
