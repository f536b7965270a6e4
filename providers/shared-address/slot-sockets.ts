/**
 * Sockets of all slots of a group. Every process has duplicates of all of them: as long as one
 * process lives, none is closed, so none moves into the place of another (the system puts the last
 * one there).
 */
import type { GroupHost } from './group-host.js';
import { MAX_DESCRIPTORS } from './messages.js';
import type { Outbox } from './outbox.js';

export class Places {
  /** By slot; a hole for an address whose message has not come. */
  private readonly sockets = new Map<number, (number | undefined)[]>();

  constructor(private readonly host: Pick<GroupHost, 'addresses' | 'closeDescriptors'>) {}

  /** @returns undefined unless a socket is there for every address */
  of(slot: number): readonly number[] | undefined {
    const found = this.sockets.get(slot);
    if (found === undefined) return undefined;
    const whole = found.filter((descriptor) => descriptor !== undefined);
    return whole.length === this.host.addresses ? whole : undefined;
  }

  /** The number of slots in the group, as far as this process knows. */
  get count(): number {
    return Math.max(-1, ...this.sockets.keys()) + 1;
  }

  /** Keeps sockets that are there already, and closes descriptors that are not needed. */
  put(slot: number, first: number, descriptors: readonly number[]): void {
    const { addresses } = this.host;
    const found =
      this.sockets.get(slot) ?? new Array<number | undefined>(addresses).fill(undefined);
    const spare: number[] = [];
    descriptors.forEach((descriptor, i) => {
      const index = first + i;
      if (index < addresses && found[index] === undefined) found[index] = descriptor;
      else spare.push(descriptor);
    });
    this.sockets.set(slot, found);
    if (spare.length > 0) this.host.closeDescriptors(spare);
  }

  sendTo(outbox: Outbox, slot: number): void {
    const sockets = this.of(slot) ?? [];
    for (let first = 0; first < sockets.length; first += MAX_DESCRIPTORS) {
      const some = sockets.slice(first, first + MAX_DESCRIPTORS);
      outbox.send({ kind: 'PLACE', slot, first }, some);
    }
  }

  sendAllTo(outbox: Outbox): void {
    for (const slot of this.sockets.keys()) this.sendTo(outbox, slot);
  }

  close(): void {
    for (const sockets of this.sockets.values()) {
      this.host.closeDescriptors(sockets.filter((each) => each !== undefined));
    }
    this.sockets.clear();
  }
}
