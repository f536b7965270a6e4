/** What a provider's author supplies to run the suite. */
import type { Ia, OpenIaOptions } from 'dapl';

/** What a fixture, or the provider under it, can do beyond opening a pair of adapters. */
export type Capability =
  /** `CompliancePair.unreachableAddress`: an address where nobody is, and the network says so. */
  | 'unreachable'
  /** `CompliancePair.cut`: the peers lose sight of each other. */
  | 'cut'
  /** `CompliancePair.addFault`: packets are lost, late, repeated or spoilt as a behaviour says. */
  | 'scripted-faults'
  /** `CompliancePair.openPassiveAgain`: another adapter on a device that is open. */
  | 'second-adapter'
  /** An endpoint reaches a service point of its own adapter. */
  | 'loopback'
  /** The device has unreliable datagrams, the CM module resolves their services. */
  | 'ud'
  /**
   * A request is still under way when the call that posted it returns, and until the event loop
   * turns. Simulated and software devices can promise that; one of its own thread may be quicker.
   */
  | 'latency'
  /**
   * The peer learns whether the consumer refused it or the service was not there for it any more:
   * with librdmacm all refusals of a request that has been handed over are the consumer's.
   */
  | 'refusal-reasons'
  /** `ia.createSrq`: the provider attribute `srqSupported`. */
  | 'shared-receive-queue'
  /** Fetch-and-add, compare-and-swap: the provider attribute DAT_IB_FETCH_AND_ADD. */
  | 'atomic'
  /** `ep.postSendWithInvalidate`. */
  | 'send-with-invalidate'
  /** `ia.createRmr` and `ia.createRmrForEp`. */
  | 'memory-window'
  /** `ia.mapFile`. */
  | 'file-mapping'
  /** `ia.openXrcDomain`. */
  | 'xrc'
  /** XRC initiators and targets connect through the CM module; else they attach by numbers. */
  | 'xrc-connections';

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
  /** For `scripted-faults`; of several, the first one that takes a packet decides. */
  addFault?(fault: PacketFault): ActivePacketFault;
  /** Resolves when what was under way has happened; default: 20 ms. */
  settle?(): Promise<void>;
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
