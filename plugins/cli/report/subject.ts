/** The subject of `dapl test`: one device of a provider, or two that reach each other. */
import { basename, join } from 'node:path';
import { cwd } from 'node:process';
import { type Ia, openIa, type OpenIaOptions } from 'dapl';
import { Fabric, mock } from 'dapl/providers/mock';
import { softroce } from 'dapl/providers/softroce';
import { type InspectedDevice, inspectVerbs, verbs, type VerbsOptions } from 'dapl/providers/verbs';
import type { DeviceCapability } from 'dapl/spi';
import { decorate } from 'dapl/spi/decorators';
import type { Capability, CompliancePair, ProviderFixture } from 'dapl/testing';
import { pairOf } from './pair.js';

// `dapl test` with the provider of a package, opened by name.

/** Capabilities of the suite that a device reports under the same name. */
const OF_DEVICES = [
  'ud',
  'multicast',
  'atomic',
  'send-with-invalidate',
  'shared-receive-queue',
  'memory-window',
] as const satisfies readonly (Capability & DeviceCapability)[];

/**
 * The device of a package's provider. A package is resolved from this package's location, a path
 * from the working directory.
 * @throws Error if an end is not named; DatError as `openIa`
 */
async function packageSubject({
  provider,
  device,
  peer,
}: {
  readonly provider: string;
  readonly device?: string;
  readonly peer?: string;
}): Promise<{ readonly provider: string; readonly fixture: ProviderFixture }> {
  if (device === undefined || peer === undefined) {
    throw new Error(`${provider} needs --device and --peer: its parameters, as in dat.conf`);
  }
  const isPath = /^\.{0,2}[/\\]/.test(provider);
  const from = isPath ? join(cwd(), 'here.js') : import.meta.url;
  const open = (iaParams: string, more: OpenIaOptions = {}): Promise<Ia> =>
    openIa(provider, { ...more, from, iaParams });
  const openPair = async (): Promise<CompliancePair> => {
    const active = await open(device);
    try {
      return pairOf(active, await open(peer), (more) => open(peer, more));
    } catch (error) {
      await active.close();
      throw error;
    }
  };
  const fixture = { capabilities: await capabilitiesOf(open, device), openPair };
  return { provider: isPath ? basename(provider) : provider, fixture };
}

async function capabilitiesOf(
  open: (iaParams: string, more: OpenIaOptions) => Promise<Ia>,
  device: string,
): Promise<readonly Capability[]> {
  let capable: ReadonlySet<DeviceCapability> = new Set();
  let hasXrc = false;
  const ia = await open(device, {
    decorate: (provider) => {
      hasXrc = provider.meta.provides.includes('xrc');
      return decorate(provider, {
        device: (inner) => {
          capable = inner.capabilities;
          return {};
        },
      });
    },
  });
  const reads = ia.query().ia.maxRdmaReadPerEpOut > 0;
  await ia.close();
  return [
    'second-adapter',
    ...OF_DEVICES.filter((capability) => capable.has(capability)),
    ...(reads ? (['rdma-read'] as const) : []),
    ...(hasXrc && capable.has('xrc') ? (['xrc', 'xrc-connections'] as const) : []),
  ];
}

export interface SubjectOptions {
  /** One of PROVIDERS, the name of a package, or the path of a module that starts with a dot. */
  readonly provider: string;
  /**
   * verbs: an RDMA device or interface; softroce and mock: a local address; a package's: its
   * `iaParams`.
   */
  readonly device?: string;
  /**
   * The device of the other end, in the same form. Default: for verbs the same device, otherwise
   * another address. A package has no default.
   */
  readonly peer?: string;
  readonly libraries?: VerbsOptions['libraries'];
}

export interface Subject {
  readonly provider: string;
  readonly fixture: ProviderFixture;
  /** Devices of verbs, as the library and sysfs describe them; the peer's is the second. */
  readonly devices: readonly InspectedDevice[];
  /** True if time is real, so that measurements mean something. */
  readonly isTimed: boolean;
}

/** Capabilities of a software device, without those that only a fixture can provide. */
const SOFTWARE: readonly Capability[] = [
  'latency',
  'refusal-reasons',
  'service-id',
  'second-adapter',
  'loopback',
  'rdma-read',
  'shared-receive-queue',
  'atomic',
  'send-with-invalidate',
  'xrc',
  'xrc-connections',
  'memory-window',
  'ud',
  'multicast',
];

/** Capabilities of every verbs device, and below those that it has if it reports them. */
const HARDWARE: readonly Capability[] = ['second-adapter', 'loopback', 'file-mapping'];
const OPTIONAL: readonly Capability[] = [
  'ud',
  'multicast',
  'atomic',
  'send-with-invalidate',
  'shared-receive-queue',
  'memory-window',
  'xrc',
];

/**
 * Opens the device or devices to test.
 * @throws Error if the device cannot be used, with the reason and what to do
 */
export async function subjectOf(options: SubjectOptions): Promise<Subject> {
  switch (options.provider) {
    case 'verbs':
      return verbsSubject(options);
    case 'softroce':
      return softroceSubject(options);
    case 'mock':
      return mockSubject(options);
    default:
      return { ...(await packageSubject(options)), devices: [], isTimed: true };
  }
}

async function verbsSubject({ device, peer, libraries }: SubjectOptions): Promise<Subject> {
  const found = await inspected({ ...of(device), ...(libraries && { libraries }) });
  const other =
    peer === undefined ? found : await inspected({ device: peer, ...(libraries && { libraries }) });
  const options = (name: string): VerbsOptions => ({
    device: name,
    ...(libraries && { libraries }),
  });
  const openPassive = (active: Ia, more?: OpenIaOptions): Promise<Ia> => {
    // Opening by address gives a second adapter on the same device.
    const given = other === found ? { address: active.address } : { device: other.name };
    return openIa(verbs({ ...given, ...(libraries && { libraries }) }), more);
  };
  const capable = new Set<string>(found.capabilities);
  const fixture = {
    capabilities: [
      ...HARDWARE,
      ...OPTIONAL.filter((capability) => capable.has(capability)),
      ...((found.attributes?.maxInitiatorDepth ?? 0) > 0 ? (['rdma-read'] as const) : []),
    ],
    openPair: async (): Promise<CompliancePair> => {
      const active = await openIa(verbs(options(found.name)));
      const passive = await openPassive(active);
      return {
        ...pairOf(active, passive, (more) => openPassive(active, more)),
        xrcByNumbers: true,
      };
    },
  };
  const devices = other === found ? [found] : [found, other];
  return { provider: 'verbs', fixture, devices, isTimed: true };
}

/** @throws Error with a sentence that says why the device cannot be opened */
async function inspected(options: VerbsOptions): Promise<InspectedDevice> {
  const { problem, choice, choiceProblem, devices } = await inspectVerbs(options);
  const device = devices.find(({ name }) => name === choice?.device);
  const trouble = problem ?? choiceProblem ?? device?.problem;
  if (device === undefined || trouble !== undefined) throw new Error(trouble ?? 'no device');
  return device;
}

const of = (device: string | undefined): Pick<VerbsOptions, 'device'> =>
  device === undefined ? {} : { device };

function softroceSubject({ device = '127.0.0.1', peer = '127.0.0.2' }: SubjectOptions): Subject {
  const open = (address: string, more?: OpenIaOptions): Promise<Ia> =>
    openIa(softroce({ addresses: [address] }), more);
  const openPair = async (): Promise<CompliancePair> => {
    const active = await open(device);
    return pairOf(active, await open(peer), (more) => open(peer, more));
  };
  const fixture = { capabilities: SOFTWARE, openPair };
  return { provider: 'softroce', fixture, devices: [], isTimed: true };
}

function mockSubject({ device = '192.0.2.1', peer = '192.0.2.2' }: SubjectOptions): Subject {
  const openPair = async (): Promise<CompliancePair> => {
    const fabric = new Fabric({ seed: 1, autoRun: true });
    const open = (address: string, more?: OpenIaOptions): Promise<Ia> =>
      openIa(mock({ fabric, address }), more);
    const active = await open(device);
    const pair = pairOf(active, await open(peer), (more) => open(peer, more));
    return { ...pair, settle: () => fabric.run({ forUs: 100_000 }) };
  };
  const fixture = { capabilities: SOFTWARE, openPair };
  return { provider: 'mock', fixture, devices: [], isTimed: false };
}
