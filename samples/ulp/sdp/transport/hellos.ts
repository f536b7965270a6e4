/** Builds Hello and HelloAck of a connection, and reads the answer to a Hello. */
import { isIPv4, isIPv6 } from 'node:net';
import { type ConnectionEvent, DatEventNumber } from 'dapl';
import { type StreamAddress, StreamError } from '../../socket/index.js';
import { isVersionKnown, refusalOf } from '../session/index.js';
import {
  emitHello,
  emitHelloAck,
  HELLO_ACK_BYTES,
  type HelloAck,
  type IpBytes,
  parseHelloAck,
  VERSION,
} from '../wire/index.js';
import type { SdpPlan } from './options.js';

/** Addresses in Hello: 16 bytes; an IPv4 address is the last 4, after zeros. */
const BYTES = 16;
const GROUPS = 8;

/** @param address numeric, without a zone; other text gives zeros */
export function ipBytes(address: string): IpBytes {
  const bytes = new Uint8Array(BYTES);
  if (isIPv4(address)) {
    bytes.set(address.split('.').map(Number), BYTES - 4);
  } else if (isIPv6(address)) {
    groupsOf(address).forEach((group, i) => {
      bytes[2 * i] = group >> 8;
      bytes[2 * i + 1] = group & 0xff;
    });
  }
  return bytes;
}

/** Eight numbers of 16 bits. */
function groupsOf(address: string): number[] {
  const [head = '', tail] = (address.split('%')[0] ?? '').split('::');
  const front = numbersOf(head);
  if (tail === undefined) return front;
  const back = numbersOf(tail);
  const zeros = new Array<number>(GROUPS - front.length - back.length).fill(0);
  return [...front, ...zeros, ...back];
}

function numbersOf(text: string): number[] {
  if (text === '') return [];
  return text.split(':').flatMap((part) => {
    if (!isIPv4(part)) return [parseInt(part, 16)];
    const [a = 0, b = 0, c = 0, d = 0] = part.split('.').map(Number);
    return [(a << 8) | b, (c << 8) | d];
  });
}

/** Private data of a rejection: a HelloAck without its padding. */
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

/** Private data of a rejection, so that a peer of another version learns the reason. */
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

/** A rejection that has a reason. */
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
    // No HelloAck: a rejection without a reason.
    return undefined;
  }
}

function otherVersion(version: number, remote: Partial<StreamAddress>): StreamError {
  const name = `${version >> 4}.${version & 15}`;
  const detail = `the peer speaks version ${name}: it is ${VERSION >> 4}.${VERSION & 15} here`;
  return new StreamError('EPROTONOSUPPORT', { syscall: 'connect', detail, ...remote });
}
