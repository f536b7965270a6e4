/** Hello and HelloAck: the negotiation before a connection is established. */
import { type Hello, type HelloAck, VERSION } from '../wire/index.js';
import type { SessionConfig, SessionTimes, ZeroCopyConfig } from './host.js';

/** Limits of this side. */
export interface LocalLimits {
  /** Receives that are posted before Hello or HelloAck is sent. */
  readonly receives: number;
  readonly receiveBytes: number;
  readonly maxReceiveBytes: number;
  readonly wantedPeerBytes: number;
  readonly maxAdverts: number;
  readonly zeroCopy: ZeroCopyConfig;
  readonly times: SessionTimes;
}

/** Receives that a side needs so that data can ever flow. */
export const LEAST_RECEIVES = 3;
/** A receive must have room for the longest head and a byte. */
export const LEAST_RECEIVE_BYTES = 37;

/** True for the same major version. */
export function isVersionKnown(version: number): boolean {
  return version >> 4 === VERSION >> 4;
}

/** @returns the mistake in a peer's limits, or undefined */
export function refusalOf(bufs: number, receiveBytes: number): string | undefined {
  if (bufs < LEAST_RECEIVES) return `bufs is ${bufs}: it must be ${LEAST_RECEIVES} or more`;
  if (receiveBytes >= LEAST_RECEIVE_BYTES) return undefined;
  return `receives of ${receiveBytes} bytes: they must have ${LEAST_RECEIVE_BYTES} or more`;
}

/** Size of the receives of a side that was asked for `desired`. */
export function agreedReceiveBytes(local: LocalLimits, desired: number): number {
  const most = Math.min(desired, local.maxReceiveBytes);
  return Math.max(local.receiveBytes, most);
}

export function configOf(
  local: LocalLimits,
  receiveBytes: number,
  peer: Pick<Hello | HelloAck, 'bufs' | 'maxAdverts'> & { readonly receiveBytes: number },
): SessionConfig {
  const { receives, maxReceiveBytes, wantedPeerBytes, maxAdverts, zeroCopy, times } = local;
  return {
    ...{ receives, receiveBytes, maxReceiveBytes, wantedPeerBytes, maxAdverts, zeroCopy, times },
    peer: { bufs: peer.bufs, receiveBytes: peer.receiveBytes, maxAdverts: peer.maxAdverts },
  };
}
