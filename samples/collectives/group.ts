/**
 * A group of ranks, each connected to each by a channel (`dapl/flow/channel`): the base of the
 * collectives. Messages between two ranks arrive in the order in which they were sent, and a slow
 * rank delays those that send to it.
 *
 * Collectives are a library here, not calls of `dapl`. In DAT they are an extension that hands them
 * to a switch or a special device (dat_ib_collective_*), and RoCE has none. Over connected
 * endpoints they are an algorithm. The best one depends on the application, so it belongs where it
 * can be changed.
 */
import { setTimeout } from 'node:timers/promises';

import type { Ia } from 'dapl';
import { connect, type Connection, FlowError, listen, type Listener } from 'dapl/flow';
import {
  acceptChannel,
  type Channel,
  channel,
  offerChannel,
  peerPrivateDataOf,
} from 'dapl/flow/channel';
import { bytesOf, type Numbers } from './numbers.js';

export interface GroupOptions {
  readonly ia: Ia;
  /** 0 to the number of addresses less one. */
  readonly rank: number;
  /** Address that each rank listens on, by rank: an IP address in text. */
  readonly addresses: readonly string[];
  /** Port of all ranks; default 7600. */
  readonly port?: number;
}

/** One rank's part of the group, made by `joinGroup`. */
export interface Group {
  readonly rank: number;
  readonly size: number;
  /** Channels by rank; undefined for the own rank. */
  readonly channels: readonly (Channel | undefined)[];
}

/**
 * Limits of a channel. There is one for each pair of ranks, so each has little memory; messages may
 * have any length.
 */
const LIMITS = { buffers: 16, bufferBytes: 4096, maxMessageBytes: 2 ** 30 };
const RANK_BYTES = 4;
/** Codes of a rank that does not listen yet. */
const NOT_YET: ReadonlySet<string> = new Set(['DAT_CONN_REFUSED', 'DAT_CONN_UNREACHABLE']);
const DIAL_AGAIN_MS = 50;

/** Connects this rank with all others; resolves when all connections are established. */
export async function joinGroup(options: GroupOptions): Promise<Group> {
  const { ia, rank, addresses, port = 7600 } = options;
  const channels: (Channel | undefined)[] = addresses.map(() => undefined);
  const group = { rank, size: addresses.length, channels };
  await using listener = await listen(ia, { port, ...acceptChannel(LIMITS) });
  const lower = addresses.slice(0, rank).map(async (address, other) => {
    channels[other] = channel(await dial(ia, address, port, rank));
  });
  try {
    await Promise.all([...lower, meetHigher(listener, rank, channels)]);
    return group;
  } catch (error) {
    await leaveGroup(group);
    throw error;
  }
}

/** Leaves the group. Others notice it when they use this rank. */
export async function leaveGroup(group: Group): Promise<void> {
  await Promise.all(group.channels.map(async (each) => each?.close()));
}

/** Sends an array; resolves when the bytes are at the other rank. */
export async function send(group: Group, to: number, data: Numbers): Promise<void> {
  const peer = channelOf(group, to);
  await about(to, peer.send(bytesOf(data)));
}

/** Receives the next message of a rank into an array of the same length. */
export async function receive(group: Group, from: number, into: Numbers): Promise<void> {
  const message = await about(from, channelOf(group, from).receive());
  const bytes = bytesOf(into);
  if (message.length !== bytes.length) {
    throw new RangeError(`${message.length} bytes of rank ${from}: the array has ${bytes.length}`);
  }
  bytes.set(message);
}

/**
 * Sends and receives at the same time, so that ranks that do the same never wait for each other.
 */
export async function exchange(
  group: Group,
  [to, data]: readonly [number, Numbers],
  [from, into]: readonly [number, Numbers],
): Promise<void> {
  await Promise.all([receive(group, from, into), send(group, to, data)]);
}

/** The rank at a distance around the ring. */
export function neighbour({ rank, size }: Group, distance: number): number {
  return (((rank + distance) % size) + size) % size;
}

/** Connects to a rank, with retries: ranks start in any order. */
async function dial(ia: Ia, address: string, port: number, rank: number): Promise<Connection> {
  const introduction = new Uint8Array(RANK_BYTES);
  viewOf(introduction).setUint32(0, rank);
  for (;;) {
    try {
      return await connect(ia, { address, port, ...offerChannel(LIMITS, introduction) });
    } catch (error) {
      if (!FlowError.isFlowError(error) || !NOT_YET.has(error.code)) throw error;
    }
    await setTimeout(DIAL_AGAIN_MS);
  }
}

/** Accepts each rank above this one, once. A connection with any other number is rejected. */
async function meetHigher(
  listener: Listener,
  rank: number,
  channels: (Channel | undefined)[],
): Promise<void> {
  for (let missing = channels.length - 1 - rank; missing > 0;) {
    const conn = await listener.accept();
    const other = viewOf(peerPrivateDataOf(conn)).getUint32(0);
    if (other <= rank || other >= channels.length || channels[other] !== undefined) {
      await conn.close();
      continue;
    }
    channels[other] = channel(conn);
    missing--;
  }
}

function channelOf({ channels, size }: Group, rank: number): Channel {
  const found = channels[rank];
  if (found === undefined) throw new RangeError(`rank ${rank} of ${size} is not another one`);
  return found;
}

/** Names the other rank in errors. */
async function about<T>(rank: number, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (cause) {
    throw new Error(`rank ${rank}: ${(cause as Error).message}`, { cause });
  }
}

function viewOf({ buffer, byteOffset, byteLength }: Uint8Array): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}
