/** The suite of devices: docs/spi.md as core relies on it. */
import { type PlannedBehaviour, planOf } from '../suite/plan.js';
import { completing } from './completing.js';
import { DEVICE_CAPABILITIES, type DeviceFixture } from './fixture.js';
import { objects } from './objects.js';
import { protecting } from './protecting.js';
import { failing } from './failing.js';
import { sharing } from './sharing.js';
import { states } from './states.js';
import { transferring } from './transferring.js';
import { unreliable } from './unreliable.js';
import { windows } from './windows.js';
import { openWorld, type World } from './world.js';

export const DEVICE_GROUPS = [
  objects,
  states,
  transferring,
  protecting,
  windows,
  failing,
  completing,
  sharing,
  unreliable,
];

/** @throws Error for a fixture that names a capability or a deviation which there is not */
export function devicePlan(fixture: DeviceFixture): PlannedBehaviour[] {
  const openPair = async (): Promise<World> => openWorld(await fixture.openPair());
  return planOf({ ...fixture, openPair }, DEVICE_GROUPS, {
    capabilities: DEVICE_CAPABILITIES,
    parts: {},
  });
}
