/** Registrations and the reservation of a logical unit (SPC-4 5.13): state and transitions. */
import type { ConditionName } from '../common/conditions.js';
import {
  type Access,
  concernsRegistrants,
  isAllowed,
  registrantsHold,
  type ReservationType,
} from './types.js';

export interface Reservation {
  readonly type: ReservationType;
  /** The nexus that made it; of types that all registrants hold, no one's in particular. */
  readonly holder: string;
}

/** Effects of a service action on other nexuses. */
export interface Consequences {
  /** Unit attentions for other nexuses. */
  readonly attentions: ReadonlyMap<string, ConditionName>;
  /** Nexuses whose commands PREEMPT AND ABORT ends. */
  readonly preempted: readonly string[];
}

/** The nexus may not do that: RESERVATION CONFLICT, and nothing has changed. */
export type Conflict = 'conflict';

const NONE: Consequences = { attentions: new Map(), preempted: [] };

/** Registrations that one unit keeps. */
const MAX_REGISTRATIONS = 1024;

export class PersistentReservations {
  private readonly keys = new Map<string, bigint>();
  private reservation: Reservation | undefined;
  private changes = 0;

  /** PRgeneration: counts what changes registrations, modulo 2^32. */
  get generation(): number {
    return this.changes >>> 0;
  }

  /** Nexuses with their keys, in the order of registration. */
  get registrations(): ReadonlyMap<string, bigint> {
    return this.keys;
  }

  get current(): Reservation | undefined {
    return this.reservation;
  }

  /** Nexuses that may yet register. */
  get room(): number {
    return MAX_REGISTRATIONS - this.keys.size;
  }

  holds(nexus: string): boolean {
    if (this.reservation === undefined) return false;
    if (registrantsHold(this.reservation.type)) return this.keys.has(nexus);
    return this.reservation.holder === nexus;
  }

  allows(nexus: string, access: Access): boolean {
    if (this.reservation === undefined || this.holds(nexus)) return true;
    return isAllowed(this.reservation.type, access, this.keys.has(nexus));
  }

  /** REGISTER: a key of 0 unregisters. The reservation key has to be that of the nexus, if any. */
  register(nexus: string, key: bigint, newKey: bigint): Consequences | Conflict {
    if ((this.keys.get(nexus) ?? 0n) !== key) return 'conflict';
    return this.registerAnyway(nexus, newKey);
  }

  /** REGISTER AND IGNORE EXISTING KEY. */
  registerAnyway(nexus: string, newKey: bigint): Consequences {
    if (newKey !== 0n) {
      this.keys.set(nexus, newKey);
      this.changes++;
      return NONE;
    }
    if (!this.keys.has(nexus)) return NONE;
    this.changes++;
    const heldIt = this.holds(nexus);
    this.keys.delete(nexus);
    return heldIt ? this.holderLeft(nexus) : NONE;
  }

  reserve(nexus: string, key: bigint, type: ReservationType): Consequences | Conflict {
    if (!this.isKeyOf(nexus, key)) return 'conflict';
    if (this.reservation === undefined) this.reservation = { type, holder: nexus };
    else if (!this.holds(nexus) || this.reservation.type !== type) return 'conflict';
    return NONE;
  }

  /** @returns `wrong type` for a reservation of another type that the nexus holds */
  release(
    nexus: string,
    key: bigint,
    type: ReservationType,
  ): Consequences | Conflict | 'wrong type' {
    if (!this.isKeyOf(nexus, key)) return 'conflict';
    if (this.reservation === undefined || !this.holds(nexus)) return NONE;
    if (this.reservation.type !== type) return 'wrong type';
    return this.dropReservation(nexus);
  }

  clear(nexus: string, key: bigint): Consequences | Conflict {
    if (!this.isKeyOf(nexus, key)) return 'conflict';
    const others = [...this.keys.keys()].filter((other) => other !== nexus);
    this.keys.clear();
    this.reservation = undefined;
    this.changes++;
    return { attentions: attention(others, 'RESERVATIONS_PREEMPTED'), preempted: [] };
  }

  /**
   * PREEMPT (SPC-4 5.13.11.2): takes the registrations with a key away and, if they hold the
   * reservation, the reservation over.
   * @returns `no key` where 0 means no registration
   */
  preempt(
    nexus: string,
    key: bigint,
    victimKey: bigint,
    type: ReservationType | undefined,
  ): Consequences | Conflict | 'no key' | 'no type' {
    if (!this.isKeyOf(nexus, key)) return 'conflict';
    const { reservation } = this;
    const heldByAll = reservation !== undefined && registrantsHold(reservation.type);
    if (victimKey === 0n && !heldByAll) return 'no key';
    const isVictim = (other: string, itsKey: bigint): boolean =>
      heldByAll && victimKey === 0n ? other !== nexus : itsKey === victimKey;
    const victims = [...this.keys].filter(([other, itsKey]) => isVictim(other, itsKey));
    if (victims.length === 0 && !(heldByAll && victimKey === 0n)) return 'conflict';
    const takesOver =
      reservation !== undefined &&
      (heldByAll ? victimKey === 0n : victims.some(([other]) => other === reservation.holder));
    if (takesOver && type === undefined) return 'no type';
    for (const [victim] of victims) if (victim !== nexus || !takesOver) this.keys.delete(victim);
    this.changes++;
    const preempted = victims.map(([victim]) => victim).filter((victim) => victim !== nexus);
    const attentions = attention(preempted, 'REGISTRATIONS_PREEMPTED');
    if (takesOver) {
      this.reservation = { type: type!, holder: nexus };
      if (type !== reservation.type && concernsRegistrants(reservation.type)) {
        for (const left of this.keys.keys()) {
          if (left !== nexus) attentions.set(left, 'RESERVATIONS_RELEASED');
        }
      }
    } else if (heldByAll && this.keys.size === 0) {
      this.reservation = undefined;
    }
    return { attentions, preempted };
  }

  /** REGISTER AND MOVE (SPC-4 5.13.8): the reservation goes to another nexus. */
  registerAndMove(
    nexus: string,
    key: bigint,
    to: { readonly nexus: string; readonly key: bigint; readonly unregister: boolean },
  ): Consequences | Conflict | 'no key' | 'same nexus' {
    if (!this.isKeyOf(nexus, key)) return 'conflict';
    const { reservation } = this;
    if (reservation === undefined || registrantsHold(reservation.type)) return 'conflict';
    if (reservation.holder !== nexus) return 'conflict';
    if (to.key === 0n) return 'no key';
    if (to.nexus === nexus) return 'same nexus';
    this.keys.set(to.nexus, to.key);
    this.reservation = { type: reservation.type, holder: to.nexus };
    if (to.unregister) this.keys.delete(nexus);
    this.changes++;
    return NONE;
  }

  private isKeyOf(nexus: string, key: bigint): boolean {
    return this.keys.get(nexus) === key;
  }

  /** A holder has unregistered: of types that all registrants hold, the last one ends it. */
  private holderLeft(nexus: string): Consequences {
    const { type } = this.reservation!;
    if (registrantsHold(type) && this.keys.size > 0) return NONE;
    return this.dropReservation(nexus);
  }

  private dropReservation(nexus: string): Consequences {
    const { type } = this.reservation!;
    this.reservation = undefined;
    if (!concernsRegistrants(type)) return NONE;
    const others = [...this.keys.keys()].filter((other) => other !== nexus);
    return { attentions: attention(others, 'RESERVATIONS_RELEASED'), preempted: [] };
  }
}

function attention(nexuses: readonly string[], what: ConditionName): Map<string, ConditionName> {
  return new Map(nexuses.map((nexus) => [nexus, what]));
}
