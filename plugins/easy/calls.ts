/** Connections, listeners and datagrams over an adapter that is chosen and shared. */
import {
  type Connection,
  connect as flowConnect,
  type ConnectOptions as FlowConnectOptions,
  datagrams as flowDatagrams,
  listen as flowListen,
  type ListenOptions as FlowListenOptions,
} from 'dapl/flow';
import { leaveUnhandled } from 'dapl/spi';
import { borrowed, type Lease } from './adapters.js';
import { Datagrams } from './datagrams.js';
import { Deadline } from './deadline.js';
import { endsWith, Listener } from './listener.js';
import { addressOf } from './names.js';
import {
  checkConnect,
  checkDatagrams,
  checkListen,
  type ConnectOptions,
  type DatagramOptions,
  type ListenOptions,
} from './options.js';
import { chosenAdapter, isSoftroceOn } from './provider-choice.js';
import { type Route, routeOn, routeToward } from './route.js';

/**
 * Connects to a port of a host. The connection is that of `dapl/flow`. Connections of this process
 * on one device share an adapter, which is closed with the last of them.
 * @throws FlowError, as a rejection: DAT_INVALID_PARAMETER; DAT_INVALID_ADDRESS (no such host, no
 * route); errors of opening the adapter, with the place that chose it; DAT_CONN_REFUSED,
 * DAT_CONN_REJECTED, DAT_CONN_UNREACHABLE, DAT_CONN_TIMED_OUT; DAT_TIMEOUT_EXPIRED,
 * DAT_INTERRUPTED_CALL
 */
export async function connect(options: ConnectOptions): Promise<Connection> {
  checkConnect(options);
  const operation = 'connect';
  const { ia, provider, family, address, localAddress, timeoutMs, signal, ...rest } = options;
  const deadline = new Deadline(operation, { timeoutMs, signal });
  const peer = ownHost(await deadline.during(addressOf(operation, address, family), nothing));
  const route = async (): Promise<Route> => {
    if (localAddress !== undefined)
      return routeOn(await addressOf(operation, localAddress, family));
    return routeToward(peer, isSoftroceOn);
  };
  const lease = await leaseFor(deadline, { ia, provider }, route, localAddress !== undefined);
  try {
    const given: FlowConnectOptions = { ...rest, address: peer, ...deadline.left };
    const conn = await flowConnect(lease.ia, given);
    endsWith(conn, lease);
    return conn;
  } catch (error) {
    await lease.release();
    throw deadline.restated(error);
  }
}

/**
 * Listens on a port of an address of this machine.
 * @throws FlowError, as a rejection: DAT_INVALID_PARAMETER; DAT_INVALID_ADDRESS (no such host);
 * DAT_CONN_QUAL_IN_USE (the port is in use); errors of opening the adapter, with the place that
 * chose it; DAT_INTERRUPTED_CALL
 */
export async function listen(options: ListenOptions): Promise<Listener> {
  checkListen(options);
  const operation = 'listen';
  const { ia, provider, family, address, signal, ...rest } = options;
  const deadline = new Deadline(operation, { signal });
  const route = async (): Promise<Route> => {
    return routeOn(await addressOf(operation, address ?? '', family));
  };
  const lease = await leaseFor(deadline, { ia, provider }, route, address !== undefined);
  try {
    const given: FlowListenOptions = signal === undefined ? rest : { ...rest, signal };
    return new Listener(await flowListen(lease.ia, given), lease, signal);
  } catch (error) {
    await lease.release();
    throw error;
  }
}

/**
 * Opens an endpoint for datagrams, on an address of this machine. It is that of `dapl/flow`, with
 * host names. Its adapter is shared with all others of this process on that device.
 * @throws FlowError, as a rejection: DAT_INVALID_PARAMETER; DAT_INVALID_ADDRESS (no such host, no
 * route); DAT_MODEL_NOT_SUPPORTED if the device has no datagrams; errors of opening the adapter,
 * with the place that chose it; DAT_TIMEOUT_EXPIRED, DAT_INTERRUPTED_CALL
 */
export async function datagrams(options: DatagramOptions): Promise<Datagrams> {
  checkDatagrams(options);
  const operation = 'datagrams';
  const { ia, provider, family, address, peer, timeoutMs, signal, ...rest } = options;
  const deadline = new Deadline(operation, { timeoutMs, signal });
  const route = async (): Promise<Route> => {
    const place = await addressOf(operation, peer ?? address ?? '', family);
    return peer === undefined ? routeOn(place) : routeToward(place, isSoftroceOn);
  };
  const lease = await leaseFor(deadline, { ia, provider }, route, address !== undefined);
  try {
    const made = await flowDatagrams(lease.ia, rest);
    endsWith(made, lease);
    return new Datagrams(made);
  } catch (error) {
    await lease.release();
    throw error;
  }
}

interface Chosen {
  readonly ia: ConnectOptions['ia'] | undefined;
  readonly provider: ConnectOptions['provider'] | undefined;
}

/**
 * The caller's adapter, or one with a route to the peer.
 * @param isAddressed true if the caller has given a local address
 */
function leaseFor(
  deadline: Deadline,
  { ia, provider }: Chosen,
  route: () => Promise<Route>,
  isAddressed: boolean,
): Promise<Lease> {
  const { operation } = deadline;
  const wanted = { provider, route, isAddressed };
  const lease = ia === undefined ? chosenAdapter(operation, wanted) : ownAdapter(ia);
  return deadline.during(lease, (late) => leaveUnhandled(late.release()));
}

const nothing = (): void => undefined;

/** The unspecified address means this host, as in node:net. */
function ownHost(address: string): string {
  if (address === '0.0.0.0') return '127.0.0.1';
  return address === '::' ? '::1' : address;
}

async function ownAdapter(ia: NonNullable<ConnectOptions['ia']>): Promise<Lease> {
  return borrowed(ia);
}
