/**
 * The conformance suites (`dapl/testing`): what DAT consumers may expect of every provider, what
 * core may expect of every device, and the software HCA of every packet port, one behaviour a test.
 * An author calls `describeProvider`, `describeDevice` or `describePacketPort` from a test file of
 * mocha, or of another runner with global `describe` and `it`; or `runProvider` and its like, whose
 * results are a document (`reportOf`) and a table (`tableOf`).
 */
import { devicePlan } from './device/plan.js';
import type { DeviceFixture } from './device/fixture.js';
import type { PacketPortFixture } from './port/fixture.js';
import { portPlan } from './port/plan.js';
import type { ProviderFixture } from './suite/fixture.js';
import { behaviourGroups } from './suite/transfers/groups.js';
import { planOf } from './suite/plan.js';
import { PROVIDER_PAIRS } from './suite/provider-pairs.js';
import { registerPlan } from './suite/register.js';
import { type BehaviourResult, runPlan, type RunOptions } from './suite/run-plan.js';

export {
  DEVICE_CAPABILITIES,
  type DeviceFixture,
  type DeviceNeed,
  type DevicePair,
} from './device/fixture.js';
export { type DeviceHolder, openDevice } from './device/open-device.js';
export {
  type Family,
  type PacketPortFixture,
  PORT_CAPABILITIES,
  type PortCapability,
  type PortPair,
} from './port/fixture.js';
export { CAPABILITIES, type Capability } from './suite/capabilities.js';
export type {
  ActivePacketFault,
  CompliancePair,
  Deviation,
  PacketFault,
  ProviderFixture,
} from './suite/fixture.js';
export { type ReportDocument, reportOf, tableOf } from './suite/report.js';
export type { BehaviourResult, RunOptions } from './suite/run-plan.js';

/**
 * Registers the whole suite for a provider.
 * @param name of the provider, in the titles
 * @param fixture opens a fresh pair of adapters for each behaviour
 * @throws Error for a fixture that names a capability or a deviation which there is not
 */
export function describeProvider(name: string, fixture: ProviderFixture): void {
  const plan = planOf(fixture, behaviourGroups, PROVIDER_PAIRS);
  registerPlan(`${name} behaves as DAT says`, plan, fixture.deviations);
}

/**
 * Registers the suite of devices: docs/spi.md, seen from core. Every behaviour runs under the guard
 * of the contract (`strict` of `dapl/spi/decorators`).
 * @param fixture opens a fresh pair of devices for each behaviour
 * @throws Error as `describeProvider`
 */
export function describeDevice(name: string, fixture: DeviceFixture): void {
  registerPlan(`${name} is a device`, devicePlan(fixture), fixture.deviations);
}

/**
 * Registers the suite of packet ports, which stand under the software HCA.
 * @param fixture opens a fresh pair of ports for each behaviour
 * @throws Error for a fixture that names a capability which there is not
 */
export function describePacketPort(name: string, fixture: PacketPortFixture): void {
  registerPlan(`${name} is a packet port`, portPlan(fixture));
}

/**
 * Runs the suite of `describeProvider`, or what a filter takes of it, without a test runner.
 * @returns a result for each behaviour, in the order of the suite
 * @throws Error as `describeProvider`; what a behaviour throws is in its result
 */
export async function runProvider(
  fixture: ProviderFixture,
  options: RunOptions = {},
): Promise<BehaviourResult[]> {
  return runPlan(planOf(fixture, behaviourGroups, PROVIDER_PAIRS), options);
}

/** As `runProvider`, of `describeDevice`. @throws Error as `describeDevice` */
export async function runDevice(
  fixture: DeviceFixture,
  options: RunOptions = {},
): Promise<BehaviourResult[]> {
  return runPlan(devicePlan(fixture), options);
}

/** As `runProvider`, of `describePacketPort`. @throws Error as `describePacketPort` */
export async function runPacketPort(
  fixture: PacketPortFixture,
  options: RunOptions = {},
): Promise<BehaviourResult[]> {
  return runPlan(portPlan(fixture), options);
}
