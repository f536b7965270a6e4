/** Options of `connect`, `listen` and `datagrams` beyond those of `dapl/flow`. */
import { Ia } from 'dapl';
import {
  type ConnectOptions as FlowConnectOptions,
  type DatagramOptions as FlowDatagramOptions,
  FlowError,
  type ListenOptions as FlowListenOptions,
  type ResolveDatagramOptions as FlowResolveOptions,
  type WaitOptions,
} from 'dapl/flow';
import { checkOptions, type Kinds, kinds, mustBe, type Refuse } from 'dapl/spi';
import type { ProviderChoice } from './provider-choice.js';

/** The adapter to use: one of these, or none. */
export interface AdapterOptions {
  /** An adapter of your own. It stays open. */
  readonly ia?: Ia;
  /**
   * The provider to open an adapter with: a provider (`mock({ fabric, address })`), `softroce` or
   * `verbs`, or the name of an adapter that dat.conf or `systemRegistry().register` knows. Default:
   * the one that the environment variable DAPL_PROVIDER names; else the first adapter of dat.conf
   * with a route to the peer; else softroce.
   */
  readonly provider?: ProviderChoice;
  /** The family of the address to use, 4 or 6. Default: the first IPv4 address, or else IPv6. */
  readonly family?: 4 | 6;
}

/**
 * Options of `connect`. `timeoutMs` and `signal` limit the whole call, name resolution included.
 */
export interface ConnectOptions extends Omit<FlowConnectOptions, 'address'>, AdapterOptions {
  /** The peer: an IP address in text, or a host name. */
  readonly address: string;
  /**
   * The local address to connect from, or a host name. Default: by the routing table. For 127.x.y.z
   * the default is another address of 127.x.0.0/16, unless this process has an adapter on
   * 127.x.y.z.
   */
  readonly localAddress?: string;
}

/** Options of `listen`. */
export interface ListenOptions extends FlowListenOptions, AdapterOptions {
  /**
   * The local address to listen on: an IP address in text, or a host name. Optional with `ia`, or
   * with a `provider` that has an address.
   */
  readonly address?: string;
}

/**
 * Options of `datagrams`. `timeoutMs` and `signal` limit name resolution and opening the adapter.
 */
export interface DatagramOptions extends FlowDatagramOptions, AdapterOptions, WaitOptions {
  /** The local address, or a host name: peers send to it. */
  readonly address?: string;
  /** Instead of `address`, a peer: the local address is one with a route to it, as in `connect`. */
  readonly peer?: string;
}

/** Options of `resolve`. `timeoutMs` and `signal` limit name resolution, too. */
export interface ResolveOptions extends FlowResolveOptions {
  /** The family of the address to use, 4 or 6. Default: the first IPv4 address, or else IPv6. */
  readonly family?: 4 | 6;
}

const HOST = kinds.kindOf<string>(
  'an IP address in text, or the name of a host: 1 to 253 characters',
  (value) => typeof value === 'string' && value.length >= 1 && value.length <= 253,
);
const CHOICE = kinds.kindOf<ProviderChoice>(
  'a provider, as mock({ fabric, address }) is; softroce or verbs; or the name of an adapter',
  (value) =>
    (typeof value === 'string' && value !== '') ||
    (typeof value === 'object' && value !== null && 'instance' in value && 'meta' in value),
);
const { ANYTHING, instanceOf, numberFrom, oneOf, optional, SIGNAL } = kinds;

const ADAPTER: Kinds<AdapterOptions> = {
  ia: optional(instanceOf(Ia, 'an Ia, from openIa()')),
  provider: optional(CHOICE),
  family: optional(oneOf([4, 6])),
};
/** Options that `dapl/flow` checks. */
const ENDPOINT = {
  pz: ANYTHING,
  receives: ANYTHING,
  requests: ANYTHING,
  polling: ANYTHING,
  attributes: ANYTHING,
};
const CONNECTION = {
  ...ENDPOINT,
  port: ANYTHING,
  maxMessageBytes: ANYTHING,
  keepAliveMs: ANYTHING,
};
/** Kinds of the limits of a wait. */
export const WAIT: Kinds<WaitOptions> = {
  timeoutMs: optional(numberFrom(0, Infinity)),
  signal: optional(SIGNAL),
};
const CONNECT: Kinds<ConnectOptions> = {
  address: HOST,
  localAddress: optional(HOST),
  ...CONNECTION,
  ...ADAPTER,
  privateData: ANYTHING,
  ...WAIT,
};
const DATAGRAMS: Kinds<DatagramOptions> = {
  address: optional(HOST),
  peer: optional(HOST),
  ...ENDPOINT,
  ...ADAPTER,
  ...WAIT,
};
const RESOLVE: Kinds<ResolveOptions> = {
  address: HOST,
  family: ADAPTER.family,
  port: ANYTHING,
  privateData: ANYTHING,
  ...WAIT,
};
const LISTEN: Kinds<ListenOptions> = {
  address: optional(HOST),
  ...CONNECTION,
  ...ADAPTER,
  backlog: ANYTHING,
  answer: ANYTHING,
  signal: optional(SIGNAL),
};

/** @throws FlowError DAT_INVALID_PARAMETER, DAT_INTERRUPTED_CALL */
export function checkConnect(options: ConnectOptions): void {
  checkOptions(options, CONNECT, refusalOf('connect'));
  checkOneAdapter('connect', options);
  const { ia, localAddress } = options;
  if (ia !== undefined && localAddress !== undefined) {
    throw refusalOf('connect')('localAddress', localAddress, LEFT_OUT);
  }
  checkSignal('connect', options.signal);
}

/** @throws FlowError DAT_INVALID_PARAMETER, DAT_INTERRUPTED_CALL */
export function checkListen(options: ListenOptions): void {
  const operation = 'listen';
  checkOptions(options, LISTEN, refusalOf(operation));
  checkOneAdapter(operation, options);
  checkPlace(operation, options, { address: options.address });
  checkSignal(operation, options.signal);
}

/** @throws FlowError DAT_INVALID_PARAMETER, DAT_INTERRUPTED_CALL */
export function checkDatagrams(options: DatagramOptions): void {
  const operation = 'datagrams';
  checkOptions(options, DATAGRAMS, refusalOf(operation));
  checkOneAdapter(operation, options);
  const { address, peer } = options;
  if (address !== undefined && peer !== undefined) {
    throw refusalOf(operation)('peer', peer, 'left out where `address` is given');
  }
  checkPlace(operation, options, peer === undefined ? { address } : { peer });
  checkSignal(operation, options.signal);
}

/** @throws FlowError DAT_INVALID_PARAMETER, DAT_INTERRUPTED_CALL */
export function checkResolve(operation: string, options: ResolveOptions): void {
  checkOptions(options, RESOLVE, refusalOf(operation));
  checkSignal(operation, options.signal);
}

/** The longest timer of Node, in milliseconds; a longer one would fire at once. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;

const LEFT_OUT = 'left out where `ia` is given, which has its own';

/** An adapter has its address; without one, an address is required. */
function checkPlace(
  operation: string,
  { ia, provider }: AdapterOptions,
  place: Readonly<Record<string, string | undefined>>,
): void {
  const [[name = '', value] = []] = Object.entries(place);
  if (value !== undefined && ia !== undefined) throw refusalOf(operation)(name, value, LEFT_OUT);
  if (value === undefined && ia === undefined && provider === undefined) {
    throw refusalOf(operation)(name, value, 'given, or `ia`, or `provider`');
  }
}

function checkOneAdapter(operation: string, { ia, provider }: AdapterOptions): void {
  if (ia === undefined || provider === undefined) return;
  throw refusalOf(operation)('provider', provider, 'left out where `ia` is given');
}

function checkSignal(operation: string, signal: AbortSignal | undefined): void {
  if (signal?.aborted !== true) return;
  const message = 'its AbortSignal was aborted: nothing was done';
  throw new FlowError('DAT_INTERRUPTED_CALL', { operation, message, cause: signal.reason });
}

/** The error for an invalid option. */
export function refusalOf(operation: string): Refuse {
  return (name, value, expected) => {
    const message = mustBe(name, value, expected);
    return new FlowError('DAT_INVALID_PARAMETER', { operation, message, value });
  };
}
