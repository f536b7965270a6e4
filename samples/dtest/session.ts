/** One connection of dtest with its memory, and the operations that all steps use. */
import { type Cr, DatEventNumber, type Ia, type Lmr, MemPrivileges, RemoteSegment } from 'dapl';

import {
  accept,
  completed,
  connect,
  ConnectionEnded,
  createEndpoint,
  type Endpoint,
  free,
  nextReceived,
  received,
  tell,
} from '../endpoint.js';
import { allocateMessage, type Message } from '../message.js';
import type { Steps } from './options.js';
import {
  CONN_QUAL,
  greeting,
  isGreeting,
  MESSAGE_ROUNDS,
  PLACE_BYTES,
  PLACE_RECEIVES,
  readPlace,
  READS,
  writePlace,
} from './protocol.js';

export type Role = 'client' | 'server';

export class Session {
  readonly endpoint: Endpoint;
  /** Memory that the peer writes to and reads, and that receives its messages. */
  readonly inbox: Lmr;
  /** Memory that we write and send from, and read into. */
  readonly outbox: Lmr;
  /** The beginning of the peer's inbox. */
  remote: RemoteSegment | undefined = undefined;
  private readonly place: Message;
  private readonly places: readonly Message[];
  private placesTaken = 0;

  /** Posts the receives, so that the peer may connect. */
  constructor(
    ia: Ia,
    readonly role: Role,
    readonly steps: Steps,
  ) {
    const pz = ia.createPz();
    const { mode, lengthBytes, lengths, signalRate, poll } = steps;
    const rounds = mode === 'all' ? MESSAGE_ROUNDS : 0;
    this.endpoint = createEndpoint(ia, pz, {
      receives: PLACE_RECEIVES + rounds,
      requests: PLACE_RECEIVES + READS + Math.max(rounds, signalRate),
      polls: poll,
    });
    const { LOCAL_READ, LOCAL_WRITE, REMOTE_READ, REMOTE_WRITE } = MemPrivileges;
    const privileges = LOCAL_READ | LOCAL_WRITE | REMOTE_READ | REMOTE_WRITE;
    // A power of two, or a neighbour of it, may be longer than the requested length.
    const bytes = Math.max(lengthBytes * rounds, ...lengths);
    this.inbox = ia.allocate(bytes, { pz, privileges });
    this.outbox = ia.allocate(bytes, { pz });
    this.place = allocateMessage(ia, pz, PLACE_BYTES);
    this.places = Array.from({ length: PLACE_RECEIVES }, () =>
      allocateMessage(ia, pz, PLACE_BYTES),
    );
    for (const [index, { segment }] of this.places.entries()) {
      this.endpoint.ep.postRecv(segment, index);
    }
  }

  async connect(address: string): Promise<void> {
    const answer = await connect(this.endpoint, address, CONN_QUAL, greeting(1));
    if (!isGreeting(answer, 2)) throw new Error("the server's answer is not dtest's");
    await this.exchangePlaces();
  }

  async accept(request: Cr): Promise<void> {
    if (!isGreeting(request.privateData, 1)) {
      request.reject();
      throw new Error(`${request.remoteAddress} asks for a connection, and is no dtest`);
    }
    await accept(this.endpoint, request, greeting(2));
    await this.exchangePlaces();
  }

  private async exchangePlaces(): Promise<void> {
    const { address, rmrContext = 0 } = this.inbox;
    const { lengthBytes } = this.steps;
    writePlace(this.place.bytes, { address, rmrContext, lengthBytes });
    this.endpoint.ep.postSend(this.place.segment);
    await completed(this.endpoint, 0, PLACE_BYTES, 'our place');
    const peer = await this.takePlace();
    if (peer.lengthBytes !== lengthBytes) {
      throw new Error(`the peer has ${peer.lengthBytes} bytes, and this ${lengthBytes}: use -b`);
    }
    this.remote = new RemoteSegment(peer);
  }

  /** Tells the peer that a step is done. The content of the message does not matter. */
  tellDone(): void {
    tell(this.endpoint, this.place.segment);
  }

  /** Waits until the peer tells that it is done. */
  async awaitDone(): Promise<void> {
    await this.takePlace();
  }

  private async takePlace(): Promise<ReturnType<typeof readPlace>> {
    const index = this.placesTaken++;
    await received(this.endpoint, index, PLACE_BYTES, "the peer's place");
    const message = this.places[index];
    if (message === undefined) throw new Error(`the peer's message ${index} is one too many`);
    return readPlace(message.bytes);
  }

  /** Waits for the peer's write with an immediate, which takes a receive. @returns the immediate */
  async takeImmediate(): Promise<number | undefined> {
    const index = this.placesTaken++;
    const event = await nextReceived(this.endpoint, "the peer's last write");
    if (event.cookie !== index) throw new Error(`receive ${event.cookie} completed, not ${index}`);
    return event.immediate;
  }

  free(): void {
    free(this.endpoint);
    for (const { segment } of [this.place, ...this.places]) segment.lmr.free();
    this.inbox.free();
    this.outbox.free();
  }

  /** The peer's memory, which must be known by now. */
  theRemote(): RemoteSegment {
    if (this.remote === undefined) throw new Error('the peer has not sent its memory location');
    return this.remote;
  }
}

/** True for the refusal of a server that has announced itself but does not listen yet. */
export function isEarly(error: unknown): boolean {
  if (!(error instanceof ConnectionEnded)) return false;
  const { number } = error.event;
  return number === DatEventNumber.NON_PEER_REJECTED || number === DatEventNumber.UNREACHABLE;
}
