/** What a receiver has: a queue that senders address by its number, in the domain of the file. */
import { DatDtoStatus, type Ia, MemPrivileges, nameOf, type XrcDomain, type XrcSrq } from 'dapl';

import { MAX_BYTES, readMessage } from './message.js';

const RECEIVES = 64;

export class Receiver {
  readonly srq: XrcSrq;
  verified = 0;
  /** Next sequence number of each sender. */
  private readonly next = new Map<number, number>();

  /**
   * @param domain that the receivers share
   * @param onVerified called for each message, or with what is wrong
   */
  constructor(
    readonly ia: Ia,
    readonly index: number,
    readonly domain: XrcDomain,
    onVerified: (error?: Error) => void,
  ) {
    const pz = ia.createPz();
    const privileges = MemPrivileges.LOCAL_READ | MemPrivileges.LOCAL_WRITE;
    // The process that hosts the domain writes what comes into memory that it has in common.
    const shared = `samples/xrc ${process.pid}`;
    const lmr = ia.allocate(RECEIVES * MAX_BYTES, { pz, privileges, shared });
    this.srq = domain.createSrq({ pz, maxRecvDtos: RECEIVES });
    const places = Array.from({ length: RECEIVES }, (_, i) =>
      lmr.segment(i * MAX_BYTES, MAX_BYTES),
    );
    this.srq.burst(() => {
      for (const [cookie, place] of places.entries()) this.srq.postRecv(place, cookie);
    });
    this.srq.completions$.subscribe(({ cookie, status, transferredLength }) => {
      const place = places[cookie];
      if (place === undefined || status !== DatDtoStatus.SUCCESS) {
        onVerified(new Error(`a receive ended as ${nameOf(DatDtoStatus, status)}`));
        return;
      }
      try {
        this.check(place.bytes.subarray(0, transferredLength));
        this.srq.postRecv(place, cookie);
        onVerified();
      } catch (error) {
        onVerified(error as Error);
      }
    });
  }

  private check(bytes: Uint8Array): void {
    const { sender, receiver, sequence } = readMessage(bytes);
    const expected = this.next.get(sender) ?? 0;
    if (receiver !== this.index || sequence !== expected) {
      throw new Error(
        `receiver ${this.index} got message ${sequence} of sender ${sender} to ${receiver}; ` +
          `message ${expected} was next`,
      );
    }
    this.next.set(sender, expected + 1);
    this.verified++;
  }
}
