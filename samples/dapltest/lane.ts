/** The work of a thread of a transaction test on one of its endpoints. */
import { type Cr, type Ia, MemPrivileges, type Pz, RemoteSegment } from 'dapl';

import { allocateMessage, type Message } from '../message.js';
import { OperationBuffer } from './buffers.js';
import {
  accept,
  completed,
  connect,
  createEndpoint,
  type Endpoint,
  leave,
  received,
  tell,
} from '../endpoint.js';
import { MEMORY_INFO_BYTES, readMemoryInfo, writeMemoryInfo } from './memory-info.js';
import type { TransactionCommand } from './messages.js';
import { MAX_OPERATIONS, type Operation, type Role } from './operations.js';

/** Private data of the connection request; a server only reports another text. */
const GREETING = Buffer.from('DAPL and RDMA rule! Test 4321.');
const ALL_MEMORY_BYTES = MAX_OPERATIONS * MEMORY_INFO_BYTES;
const SYNC_BYTES = 64;
/** Messages besides those of operations: memory, first and last "go". */
const OTHER_MESSAGES = 3;
/** Cookies of other messages; an operation has its index. */
const MEMORY = MAX_OPERATIONS;
const SYNC = MAX_OPERATIONS + 1;

export interface Peer {
  /** The byte order in which the peer expects addresses. */
  readonly littleEndian: boolean;
}

export class Lane {
  readonly endpoint: Endpoint;
  private readonly buffers: readonly OperationBuffer[];
  private readonly ownMemory: Message;
  private readonly peerMemory: Message;
  private readonly syncOut: Message;
  private readonly syncIn: Message;
  /** The peer's memory, by operation of ours. */
  private readonly remotes: (RemoteSegment | undefined)[] = [];

  /** Posts the receives, so that the peer may connect. */
  constructor(
    ia: Ia,
    pz: Pz,
    private readonly role: Role,
    private readonly command: TransactionCommand,
  ) {
    const { operations, poll } = command;
    const depth = operations.length + OTHER_MESSAGES;
    const segments = Math.max(...operations.map((op) => op.segments));
    const queues = { receives: depth, requests: depth, segments };
    this.endpoint = createEndpoint(ia, pz, { ...queues, polls: poll });
    this.buffers = operations.map((op) => this.bufferFor(ia, pz, op));
    this.ownMemory = allocateMessage(ia, pz, ALL_MEMORY_BYTES);
    this.peerMemory = allocateMessage(ia, pz, ALL_MEMORY_BYTES);
    this.syncOut = allocateMessage(ia, pz, SYNC_BYTES);
    this.syncIn = allocateMessage(ia, pz, SYNC_BYTES);
    this.endpoint.ep.postRecv(this.peerMemory.segment, MEMORY);
    this.expectSync();
  }

  /**
   * The buffer of an operation, laid out as in the C program: segments where it posts, one run of
   * bytes where the peer does.
   */
  private bufferFor(ia: Ia, pz: Pz, op: Operation): OperationBuffer {
    const { LOCAL_READ, LOCAL_WRITE, REMOTE_READ, REMOTE_WRITE } = MemPrivileges;
    const local = LOCAL_READ | LOCAL_WRITE;
    if (op.transfer === 'SR' || this.isOurs(op)) {
      return new OperationBuffer(ia, pz, op, local, 'segments');
    }
    const remote = op.transfer === 'RR' ? REMOTE_READ : REMOTE_WRITE;
    return new OperationBuffer(ia, pz, op, local | remote, 'run');
  }

  isOurs({ initiator }: Operation): boolean {
    return initiator === this.role;
  }

  /** Connects as a client, sends the location of its memory, then waits for the peer's. */
  async connect(address: string, connQual: number, peer: Peer): Promise<void> {
    await connect(this.endpoint, address, connQual, GREETING);
    await this.tellMemory(peer);
    await this.learnMemory();
  }

  /** Accepts as a server. @returns true if the greeting is the usual one */
  async accept(request: Cr, peer: Peer): Promise<boolean> {
    const greeting = Buffer.from(request.privateData.subarray(0, GREETING.length));
    await accept(this.endpoint, request);
    await this.learnMemory();
    await this.tellMemory(peer);
    return GREETING.equals(greeting);
  }

  private async tellMemory({ littleEndian }: Peer): Promise<void> {
    this.ownMemory.bytes.fill(0);
    for (const [index, op] of this.command.operations.entries()) {
      if (op.transfer === 'SR' || this.isOurs(op)) continue;
      const { address, rmrContext = 0 } = this.buffer(index).lmr;
      const entry = this.ownMemory.bytes.subarray(index * MEMORY_INFO_BYTES);
      writeMemoryInfo(entry, { address, rmrContext }, littleEndian);
    }
    this.endpoint.ep.postSend(this.ownMemory.segment);
    await completed(this.endpoint, 0, ALL_MEMORY_BYTES, 'memory information');
  }

  private async learnMemory(): Promise<void> {
    await received(this.endpoint, MEMORY, ALL_MEMORY_BYTES, "the peer's memory information");
    for (const [index, op] of this.command.operations.entries()) {
      if (op.transfer === 'SR' || !this.isOurs(op)) continue;
      // In our byte order: the peer has converted it.
      const entry = this.peerMemory.bytes.subarray(index * MEMORY_INFO_BYTES);
      this.remotes[index] = new RemoteSegment(readMemoryInfo(entry, true));
    }
  }

  expectSync(): void {
    this.endpoint.ep.postRecv(this.syncIn.segment, SYNC);
  }

  /** Sends a "go". The peer answers with a "go", with messages, or by disconnecting. */
  sendSync(): void {
    tell(this.endpoint, this.syncOut.segment);
  }

  /** Sends the last "go" as a client, and disconnects. */
  async leave(): Promise<void> {
    await leave(this.endpoint, this.syncOut.segment);
  }

  awaitSync(): Promise<void> {
    return received(this.endpoint, SYNC, SYNC_BYTES, "the peer's synchronization");
  }

  postReceive(index: number): void {
    this.endpoint.ep.postRecv(this.buffer(index).segments, index);
  }

  /** Posts an operation of ours. */
  post(index: number): void {
    const { transfer } = this.operation(index);
    const { segments } = this.buffer(index);
    const { ep } = this.endpoint;
    const remote = this.remotes[index];
    if (transfer === 'SR') ep.postSend(segments, index);
    else if (remote === undefined) throw new Error(`operation ${index + 1}: no memory of the peer`);
    else if (transfer === 'RR') ep.postRdmaRead(segments, index, remote);
    else ep.postRdmaWrite(segments, index, remote);
  }

  /** Waits until the operation of ours is done. */
  complete(index: number): Promise<void> {
    const { lengthBytes } = this.buffer(index);
    return completed(this.endpoint, index, lengthBytes, this.nameOf(index));
  }

  /** Waits for the peer's message. */
  receive(index: number): Promise<void> {
    const { lengthBytes } = this.buffer(index);
    return received(this.endpoint, index, lengthBytes, this.nameOf(index));
  }

  fill(index: number, value: number): void {
    this.buffer(index).fill(value);
  }

  check(index: number, value: number): void {
    this.buffer(index).check(value, this.nameOf(index));
  }

  private nameOf(index: number): string {
    const { initiator, transfer } = this.operation(index);
    return `operation ${index + 1} (${initiator} ${transfer})`;
  }

  private operation(index: number): Operation {
    return entry(this.command.operations, index);
  }

  private buffer(index: number): OperationBuffer {
    return entry(this.buffers, index);
  }
}

function entry<T>(list: readonly T[], index: number): T {
  const value = list[index];
  if (value === undefined) throw new RangeError(`entry ${index} of ${list.length}`);
  return value;
}
