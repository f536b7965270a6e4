/**
 * The conformance suites (`dapl/testing`) for providers, devices and packet ports, one behaviour a
 * test. Call `describeProvider`, `describeDevice` or `describePacketPort` from a test file of
 * mocha, or of another runner with global `describe` and `it`. Without one, call `runProvider`,
 * `runDevice` or `runPacketPort`, and print the results by `reportOf` and `tableOf`.
 */
import { devicePlan } from './device/plan.js';
import type { DeviceFixture } from './device/fixture.js';
import type { PacketPortFixture } from './port/fixture.js';
import { portPlan } from './port/plan.js';
import type { ProviderFixture } from './suite/fixture.js';
import { behaviourGroups } from './suite/transfers/groups.js';
import { planOf } from './suite/plan.js';
import { PROVIDER_PAIRS } from './suite/capabilities.js';
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
 * @throws Error if the fixture names an unknown capability or deviation
 */
export function describeProvider(name: string, fixture: ProviderFixture): void {
  const plan = planOf(fixture, behaviourGroups, PROVIDER_PAIRS);
  registerPlan(`${name} behaves as DAT says`, plan, fixture.deviations);
}

/**
 * Registers the suite of devices: the parts of docs/spi.md that core relies on. Every behaviour
 * runs with a check of the contract around the device (`strict` of `dapl/spi/decorators`).
 * @param fixture opens a fresh pair of devices for each behaviour
 * @throws Error as `describeProvider`
 */
export function describeDevice(name: string, fixture: DeviceFixture): void {
  registerPlan(`${name} is a device`, devicePlan(fixture), fixture.deviations);
}

/**
 * Registers the suite of packet ports, the lower interface of the software HCA.
 * @param fixture opens a fresh pair of ports for each behaviour
 * @throws Error if the fixture names an unknown capability
 */
export function describePacketPort(name: string, fixture: PacketPortFixture): void {
  registerPlan(`${name} is a packet port`, portPlan(fixture));
}

/**
 * Runs the suite of `describeProvider`, or the part that a filter selects, without a test runner.
 * @returns a result for each behaviour, in the order of the suite
 * @throws Error as `describeProvider`; an error of a behaviour goes into its result
 */
export async function runProvider(
  fixture: ProviderFixture,
  options: RunOptions = {},
): Promise<BehaviourResult[]> {
  return runPlan(planOf(fixture, behaviourGroups, PROVIDER_PAIRS), options);
}

/** As `runProvider`, for the suite of `describeDevice`. @throws Error as `describeDevice` */
export async function runDevice(
  fixture: DeviceFixture,
  options: RunOptions = {},
): Promise<BehaviourResult[]> {
  return runPlan(devicePlan(fixture), options);
}

/** As `runProvider`, for the suite of `describePacketPort`. @throws Error as that */
export async function runPacketPort(
  fixture: PacketPortFixture,
  options: RunOptions = {},
): Promise<BehaviourResult[]> {
  return runPlan(portPlan(fixture), options);
}
