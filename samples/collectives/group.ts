/**
 * A group of ranks, each connected to each by a channel (`dapl/flow/channel`): what the collectives
 * stand on. Messages between two ranks arrive in the order in which they were sent, and a rank that
 * is late holds up those that send to it.
 *
 * Collectives are a library here and not calls of `dapl`: DAT knows them as an extension that
 * hands them to a switch or a special device (dat_ib_collective_*), which RoCE has not. What is
 * left is an algorithm over connected endpoints; which one is best depends on the application, so
 * it belongs where it can be changed.
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
  /** The same for all; default 7600. */
  readonly port?: number;
}

/** One rank's part of the group. Made by `joinGroup`. */
export interface Group {
  readonly rank: number;
  readonly size: number;
  /** By rank; none at the own. */
  readonly channels: readonly (Channel | undefined)[];
}

/** There are as many channels as pairs: each has little memory, and messages of any length. */
const LIMITS = { buffers: 16, bufferBytes: 4096, maxMessageBytes: 2 ** 30 };
const RANK_BYTES = 4;
/** A rank that does not listen yet. */
const NOT_YET: ReadonlySet<string> = new Set(['DAT_CONN_REFUSED', 'DAT_CONN_UNREACHABLE']);
const DIAL_AGAIN_MS = 50;

/** Connects this rank with all others; resolves when every connection is there. */
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

/** Leaves the group: others learn of it when they want something of this rank. */
export async function leaveGroup(group: Group): Promise<void> {
  await Promise.all(group.channels.map(async (each) => each?.close()));
}

/** Resolves when the bytes are at the other rank. */
export async function send(group: Group, to: number, data: Numbers): Promise<void> {
  const peer = channelOf(group, to);
  await about(to, peer.send(bytesOf(data)));
}

/** Resolves when the next message of that rank is here. It is as long as the array. */
export async function receive(group: Group, from: number, into: Numbers): Promise<void> {
  const message = await about(from, channelOf(group, from).receive());
  const bytes = bytesOf(into);
  if (message.length !== bytes.length) {
    throw new RangeError(`${message.length} bytes of rank ${from}: the array has ${bytes.length}`);
  }
  bytes.set(message);
}

/** Both at once, so that ranks that do the same never wait for each other. */
export async function exchange(
  group: Group,
  [to, data]: readonly [number, Numbers],
  [from, into]: readonly [number, Numbers],
): Promise<void> {
  await Promise.all([receive(group, from, into), send(group, to, data)]);
}

/** The rank at a distance, around the ring. */
export function neighbour({ rank, size }: Group, distance: number): number {
  return (((rank + distance) % size) + size) % size;
}

/** Ranks start in any order. */
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

/** Each of the ranks above this one, once; what says that it is another one is sent away. */
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
