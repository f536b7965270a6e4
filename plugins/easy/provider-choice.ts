/**
 * Chooses the adapter of a connection if the caller gives none. Four places are tried in order; the
 * first that names one wins, and errors say which place it was.
 */
import { networkInterfaces } from 'node:os';
import { isIP } from 'node:net';
import { DatError, type Ia, openIa, systemRegistry } from 'dapl';
import { FlowError } from 'dapl/flow';
import type { ConfiguredProvider } from 'dapl/spi';
import { isLeased, type Lease, leaseOf } from './adapters.js';
import type { Route } from './route.js';

/**
 * A configured provider; `softroce` or `verbs`; or the name of an adapter, as `openIa` knows it.
 */
export type ProviderChoice = ConfiguredProvider | string;

interface Wanted {
  /** The `provider` option. */
  readonly provider: ProviderChoice | undefined;
  readonly route: () => Promise<Route>;
  /** True if the caller has given a local address. */
  readonly isAddressed: boolean;
}

/** Returns undefined if the source names no adapter. */
type Find = (wanted: Wanted) => Promise<Lease | undefined>;

const ENVIRONMENT = 'DAPL_PROVIDER';

/** The sources in their order, each with its name in errors. */
const SOURCES: readonly (readonly [name: string, find: Find])[] = [
  ['the option provider', async (wanted) => named(wanted.provider, wanted)],
  [
    `the environment variable ${ENVIRONMENT}`,
    async (wanted) => named(process.env[ENVIRONMENT] || undefined, wanted),
  ],
  ['dat.conf', fromDatConf],
  ['softroce, the default', async ({ route }) => softroceOn(await route())],
];

/**
 * Finds the adapter, and opens it if necessary.
 * @throws FlowError with the code of the failure; the message names the source that chose the
 * adapter
 */
export async function chosenAdapter(operation: string, wanted: Wanted): Promise<Lease> {
  for (const [source, find] of SOURCES) {
    try {
      const lease = await find(wanted);
      if (lease !== undefined) return lease;
    } catch (cause) {
      // The host has no address: the adapter is not the cause.
      if (FlowError.isFlowError(cause)) throw cause;
      const text = cause instanceof Error ? cause.message : String(cause);
      throw new FlowError(DatError.isDatError(cause) ? cause.code : 'DAT_INTERNAL_ERROR', {
        operation,
        // The code stands at the end of this message, too.
        message: `the adapter that ${source} chooses: ${text.replace(/ \[DAT_\w+\]$/, '')}`,
        cause,
      });
    }
  }
  throw new FlowError('DAT_INTERNAL_ERROR', { operation, message: 'no source chooses an adapter' });
}

/** True if this process has a softroce adapter on that address. */
export async function isSoftroceOn(address: string): Promise<boolean> {
  return isLeased(keyOf(await softroceProvider(address)));
}

async function named(
  choice: ProviderChoice | undefined,
  { route, isAddressed }: Wanted,
): Promise<Lease | undefined> {
  if (choice === undefined) return undefined;
  if (choice === 'softroce') return softroceOn(await route());
  if (choice === 'verbs') return verbsOn(await route());
  const lease = await (typeof choice === 'string' ? byName(choice) : opened(choice));
  if (isAddressed) await checkAddress(lease, await route());
  return lease;
}

/**
 * Rejects an adapter on another address: a program that asked for one address must not be reachable
 * on another.
 */
async function checkAddress(lease: Lease, { own: [wanted], suits }: Route): Promise<void> {
  const { address } = lease.ia;
  if (suits(address)) return;
  await lease.release();
  throw new DatError('DAT_INVALID_ADDRESS', {
    subtype: 'DAT_INVALID_ADDRESS_UNSUPPORTED',
    operation: 'openIa',
    message: `it is on ${address}, not on ${wanted}`,
    value: wanted,
  });
}

function byName(name: string): Promise<Lease> {
  return leaseOf(`name ${name}`, () => openIa(name));
}

function opened(provider: ConfiguredProvider): Promise<Lease> {
  return leaseOf(keyOf(provider), (): Promise<Ia> => openIa(provider));
}

function keyOf({ meta, instance }: ConfiguredProvider): string {
  return `provider ${meta.name} ${instance.deviceKey}`;
}

/** The first adapter with a route to the peer, in the file or registered by the program. */
async function fromDatConf({ route }: Wanted): Promise<Lease | undefined> {
  const registry = await systemRegistry();
  const adapters = registry.listProviders().filter(({ libPath }) => !isSharedObject(libPath));
  if (adapters.length === 0) return undefined;
  const { suits } = await route();
  for (const { iaName, iaParams } of adapters) {
    const addresses = addressesIn(iaParams ?? '');
    if (addresses !== undefined && !addresses.some(suits)) continue;
    const lease = await byName(iaName);
    if (addresses !== undefined || suits(lease.ia.address)) return lease;
    await lease.release();
  }
  return undefined;
}

/** True for lines of other DAT libraries, which the file may contain. */
function isSharedObject(libPath: string | undefined): boolean {
  return libPath !== undefined && /\.(?:so|dll|dylib)(?:\.|$)/.test(libPath);
}

/** Addresses in the parameters of an adapter; undefined if they name a device. */
function addressesIn(iaParams: string): readonly string[] | undefined {
  const [first = ''] = iaParams.trim().split(/\s+/);
  const interfaces = networkInterfaces();
  const found = first.split(',').flatMap((word) => {
    if (isIP(word) !== 0) return [word];
    const present = Object.hasOwn(interfaces, word) ? interfaces[word] : undefined;
    return (present ?? []).map(({ address }) => address);
  });
  return found.length > 0 ? found : undefined;
}

async function softroceOn({ own }: Route): Promise<Lease> {
  for (const [i, address] of own.entries()) {
    try {
      return await opened(await softroceProvider(address));
    } catch (error) {
      const isTaken = DatError.isDatError(error) && error.code === 'DAT_PORT_IN_USE';
      if (!isTaken || i === own.length - 1) throw error;
    }
  }
  throw new Error('no address to open an adapter on');
}

async function softroceProvider(address: string): Promise<ConfiguredProvider> {
  const { softroce } = await import('dapl/providers/softroce');
  return softroce({ addresses: [address] });
}

async function verbsOn({ own: [address = ''] }: Route): Promise<Lease> {
  const { verbs } = await import('dapl/providers/verbs');
  return opened(verbs({ address }));
}
