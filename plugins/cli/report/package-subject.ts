/** `dapl test` over the provider of a package, which is opened by name. */
import { basename, join } from 'node:path';
import { cwd } from 'node:process';
import { type Ia, openIa, type OpenIaOptions } from 'dapl';
import type { DeviceCapability } from 'dapl/spi';
import { decorate } from 'dapl/spi/decorators';
import type { Capability, CompliancePair, ProviderFixture } from 'dapl/testing';
import { pairOf } from './pair.js';

/** Of the suite, what a device says of itself by the same name. */
const OF_DEVICES = [
  'ud',
  'atomic',
  'send-with-invalidate',
  'shared-receive-queue',
  'memory-window',
] as const satisfies readonly (Capability & DeviceCapability)[];

/**
 * A package is looked for where this one is installed, a path from the working directory.
 * @throws Error where either end is unnamed; DatError as `openIa`
 */
export async function packageSubject({
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
