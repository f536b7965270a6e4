/** The interface that a provider's author implements to run the suite. */
import type { Ia, OpenIaOptions } from 'dapl';
import type { Capability } from './capabilities.js';

/** A fault for packets from one side to the other. */
export interface PacketFault {
  readonly from: 'active' | 'passive';
  /** Called with each packet of that side, from its BTH on, when it is sent; true to count it. */
  readonly match: (packet: Uint8Array) => boolean;
  /** `delayUs`: later packets overtake it. `repeatAfterUs`: it arrives in time, and once more. */
  readonly action:
    'drop' | 'spoil' | { readonly delayUs: number } | { readonly repeatAfterUs: readonly number[] };
  /** The first match to hit, from 1 (default), and how many in a row: default 1. */
  readonly nth?: number;
  readonly count?: number;
}

/** An active fault. */
export interface ActivePacketFault {
  readonly hits: number;
  remove(): void;
}

/** Two open interface adapters that reach each other. */
export interface CompliancePair {
  /** The side that connects. */
  readonly active: Ia;
  /** The side that listens. */
  readonly passive: Ia;
  /** The IP address at which `active` reaches `passive`. */
  readonly passiveAddress: string;
  readonly unreachableAddress?: string;
  /** Opens the device of `passive` again. The caller closes the result. */
  openPassiveAgain?(options?: OpenIaOptions): Promise<Ia>;
  /** Stops all packets between the two, in both directions. */
  cut?(): void;
  /** True for `xrc` without `xrc-connections`. */
  readonly xrcByNumbers?: boolean;
  /**
   * Key of the XRC domain that the receivers share; by default one of this process. `named`: its
   * memory must have a name, since several processes share the domain.
   */
  readonly xrcDomain?: { readonly key: string; readonly named: boolean };
  /**
   * How private data arrives. `padded` (default): with zeros up to the length of its field, 56
   * bytes in a request, 196 in an accept and 148 in a refusal, since messages of the InfiniBand CM
   * do not carry its length. `exact`: with the length that was sent.
   */
  readonly privateData?: 'padded' | 'exact';
  /** For `scripted-faults`. If several faults match a packet, the first one applies. */
  addFault?(fault: PacketFault): ActivePacketFault;
  /**
   * Resolves when pending work is done. By default the suite waits twice as long as the slowest of
   * the last connections took, from 5 ms to 2 s of real time, to suit the machine.
   */
  settle?(): Promise<void>;
  /**
   * For `usage`: the number of objects of each kind that the pair's devices hold now: regions,
   * paths to peers, queue pairs, descriptors and others that a provider must release. A freed
   * object is not counted, even while the adapters are open; all counts are 0 after `close`.
   */
  usage?(): Readonly<Record<string, number>>;
  /** Closes both adapters. */
  close(): Promise<void>;
}

/** Opens a provider for the suite. */
export interface ProviderFixture {
  /** Behaviours that need other capabilities are reported as not applicable. */
  readonly capabilities: readonly Capability[];
  /**
   * Known failures by `group: behaviour`, for faults of a device or driver that the provider cannot
   * change. Such a behaviour is run, must fail as declared, and is printed with its reason.
   */
  readonly deviations?: Readonly<Record<string, Deviation>>;
  /** Opens a new pair for each behaviour. */
  openPair(): Promise<CompliancePair>;
}

/** A known failure of a behaviour. */
export interface Deviation {
  readonly why: string;
  /** Must match the message of the failure. */
  readonly failsWith: RegExp;
  /** True if the behaviour sometimes passes. */
  readonly mayHold?: boolean;
}
