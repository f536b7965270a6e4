/** What a provider's author supplies to run the suite. */
import type { Ia, OpenIaOptions } from 'dapl';
import type { Capability } from './capabilities.js';

/** What is to happen to packets of one side, on their way to the other. */
export interface PacketFault {
  readonly from: 'active' | 'passive';
  /** Shown each packet of that side, BTH first, when it is sent; true for those that count. */
  readonly match: (packet: Uint8Array) => boolean;
  /** `delayUs`: later ones overtake it. `repeatAfterUs`: it comes in time, and again then. */
  readonly action:
    'drop' | 'spoil' | { readonly delayUs: number } | { readonly repeatAfterUs: readonly number[] };
  /** The first match that is hit, from 1 (default), and how many in a row: default 1. */
  readonly nth?: number;
  readonly count?: number;
}

/** A fault at work. */
export interface ActivePacketFault {
  readonly hits: number;
  remove(): void;
}

/** Two open interface adapters that reach each other. */
export interface CompliancePair {
  /** Connects. */
  readonly active: Ia;
  /** Listens. */
  readonly passive: Ia;
  /** Where `active` finds `passive`: an IP address in text. */
  readonly passiveAddress: string;
  readonly unreachableAddress?: string;
  /** Opens the device of `passive` once more; `close` need not close what it returned. */
  openPassiveAgain?(options?: OpenIaOptions): Promise<Ia>;
  /** Nothing passes between the two any more, in either direction. */
  cut?(): void;
  /** Has `xrc` without `xrc-connections`. */
  readonly xrcByNumbers?: boolean;
  /**
   * Key of the XRC domain that the receivers have in common; default one of this process. Where
   * processes share the domain, its memory is `named` if it has to have a name.
   */
  readonly xrcDomain?: { readonly key: string; readonly named: boolean };
  /**
   * How private data arrives. `padded` (default): as long as the field of its message, 56 bytes in
   * a request, 196 in an accept and 148 in a refusal, zeros behind what was sent; the messages of
   * the InfiniBand CM do not carry its length. `exact`: as long as it was sent.
   */
  readonly privateData?: 'padded' | 'exact';
  /** For `scripted-faults`; of several, the first one that takes a packet decides. */
  addFault?(fault: PacketFault): ActivePacketFault;
  /**
   * Resolves when what was under way has happened. Absent: the suite waits twice as long as the
   * slowest of the last connections took, from 5 ms to 2 s of real time, which fits the machine.
   */
  settle?(): Promise<void>;
  /**
   * For `usage`: how many things of each kind the devices of the pair hold at this moment: regions,
   * paths to peers, queue pairs, descriptors, whatever a provider must give back. What is freed is
   * gone from it while the adapters are open, and all of it is 0 after `close`.
   */
  usage?(): Readonly<Record<string, number>>;
  /** Closes both adapters. */
  close(): Promise<void>;
}

/** How the suite gets at a provider. */
export interface ProviderFixture {
  /** Behaviours that need another one are reported as not applicable. */
  readonly capabilities: readonly Capability[];
  /**
   * What the provider cannot help, by `group: behaviour`: a device or driver that is not its own.
   * Such a behaviour is run, must fail as said, and is printed with the reason at the end.
   */
  readonly deviations?: Readonly<Record<string, Deviation>>;
  /** A fresh pair for every behaviour. */
  openPair(): Promise<CompliancePair>;
}

/** A behaviour that fails in one way. */
export interface Deviation {
  readonly why: string;
  /** Found in the message of the failure. */
  readonly failsWith: RegExp;
  /** Now and then it does not fail. */
  readonly mayHold?: boolean;
}
