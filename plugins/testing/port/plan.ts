/** The suite of packet ports: each behaviour over IPv4 and over IPv6. */
import type { BehaviourGroup } from '../suite/behaviour.js';
import { type PairKind, type PlannedBehaviour, planOf } from '../suite/plan.js';
import { arrays } from './arrays.js';
import { type Bench, gidOf, nothing } from './bench-pair.js';
import { delivering } from './delivery.js';
import {
  FAMILIES,
  type Family,
  type PacketPortFixture,
  PORT_CAPABILITIES,
  type PortCapability,
} from './fixture.js';
import { groups } from './groups.js';
import { pattern } from './harness.js';
import { closing, handlers, paths } from './lifecycle.js';
import { placing } from './memory.js';

const GROUPS = [arrays, delivering, placing, paths, handlers, groups, closing];
const TITLES: Readonly<Record<Family, string>> = { ipv4: 'IPv4', ipv6: 'IPv6' };
const MEMORY_BYTES = 1 << 19;

interface OpenBench extends Bench {
  close(): Promise<void>;
}

const PORT_PAIRS: PairKind<OpenBench, PortCapability> = {
  capabilities: PORT_CAPABILITIES,
  parts: { 'unreachable-ipv4': 'silentAddress', 'unreachable-ipv6': 'silentAddress' },
};

/** @throws Error for a fixture that names a capability which there is not */
export function portPlan(fixture: PacketPortFixture): PlannedBehaviour[] {
  return FAMILIES.flatMap((family) => {
    const other = FAMILIES.find((each) => each !== family)!;
    const capabilities = fixture.capabilities.filter((name) => !name.endsWith(other));
    const openPair = (): Promise<OpenBench> => openBench(fixture, family);
    return planOf({ capabilities, openPair }, groupsOver(family), PORT_PAIRS);
  });
}

function groupsOver(family: Family): BehaviourGroup<OpenBench, PortCapability>[] {
  return GROUPS.map(({ name, behaviours }) => ({
    name: `${TITLES[family]}: ${name}`,
    behaviours: behaviours.map((each) => ({
      ...each,
      needs: [family, ...each.needs.map((need) => `${need}-${family}` as const)],
    })),
  }));
}

async function openBench(fixture: PacketPortFixture, family: Family): Promise<OpenBench> {
  const pair = await fixture.openPair(family);
  const { a, b } = pair;
  const memory = pattern(MEMORY_BYTES);
  const region = a.addRegion(memory.buffer, 0, memory.length);
  a.watch(nothing);
  b.watch(nothing);
  return {
    ...pair,
    memory,
    region,
    path: a.addPath(gidOf(b), 0, pair.pathBytes),
    close: async () => {
      await a.close();
      await b.close();
      await pair.close?.();
    },
  };
}
