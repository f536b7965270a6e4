/** A guard over a provider, which names each breach of the contract that it sees. */
import { checkValue, FUNCTION } from '../checks/index.js';
import { refusing } from '../errors/consumer-errors.js';
import type { ConfiguredProvider } from '../plugin/define-plugin.js';
import type { Device } from '../device/device.js';
import { decorate } from './decorate.js';
import type { Over } from './over.js';
import { tapDevice } from './tapped-device.js';
import { type Breach, BREACHES, type Report } from './breaches.js';
import { CallDepth } from './call-depth.js';
import { strictCm } from './connection-rules.js';
import { DeviceRules } from './device-rules.js';
import { strictMad } from './mad-rules.js';

export { type Breach, BREACHES, type BreachRule } from './breaches.js';

/**
 * The provider with a guard over its device and its modules. It is for tests of providers, and for
 * bug reports: it remembers every request that is outstanding.
 * @param onBreach called for each breach, from wherever it was seen; what it throws goes to the
 * consumer's call, or to the provider's pump
 * @throws DatError DAT_INVALID_PARAMETER for what is no provider, or no function
 */
export function strict(
  provider: ConfiguredProvider,
  onBreach: (breach: Breach) => void,
): ConfiguredProvider {
  checkValue('onBreach', onBreach, FUNCTION, refusing('strict'));
  // One device at a time is open of a provider; its parts share what call is under way.
  const depth = new CallDepth();
  const name = provider.instance.deviceKey;
  const report = reporter(name, onBreach);
  depth.report = report;
  const hasMad = provider.meta.provides.includes('mad');
  return decorate(
    provider,
    {
      device: (inner) => tapDevice(inner, new DeviceRules(depth, report)),
      cm: (inner) => strictCm(inner, depth, report),
      ...(hasMad && { mad: (inner) => strictMad(inner, depth, report) }),
    },
    { name: 'strict' },
  );
}

/** The same over a device alone: what stands over its members, for `over`. */
export function strictDevice(device: Device, onBreach: (breach: Breach) => void): Over<Device> {
  const depth = new CallDepth();
  const report = reporter(device.name, onBreach);
  depth.report = report;
  return tapDevice(device, new DeviceRules(depth, report));
}

function reporter(device: string, onBreach: (breach: Breach) => void): Report {
  return (rule, seen) =>
    onBreach({ rule, device, message: `${device}: ${seen}; the contract: ${BREACHES[rule]}` });
}
