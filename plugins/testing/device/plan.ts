/** The suite of devices: the parts of docs/spi.md that core relies on. */
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

/** @throws Error if the fixture names an unknown capability or deviation */
export function devicePlan(fixture: DeviceFixture): PlannedBehaviour[] {
  const openPair = async (): Promise<World> => openWorld(await fixture.openPair());
  return planOf({ ...fixture, openPair }, DEVICE_GROUPS, {
    capabilities: DEVICE_CAPABILITIES,
    parts: {},
  });
}
