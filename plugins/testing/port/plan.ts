/** The suite of packet ports: each behaviour over IPv4 and over IPv6. */
import type { BehaviourGroup } from '../suite/behaviour.js';
import { type PairKind, type PlannedBehaviour, planOf } from '../suite/plan.js';
import { gidOf, nothing, type OpenBench, portGroup } from './bench-pair.js';
import { delivering } from './delivery.js';
import {
  FAMILIES,
  type Family,
  type PacketPortFixture,
  PORT_CAPABILITIES,
  type PortCapability,
  type PortNeed,
} from './fixture.js';
import { groups } from './groups.js';
import { PortGuard } from './guard.js';
import { pattern } from './harness.js';
import { closing, handlers, paths, processes } from './lifecycle.js';
import { placing } from './memory.js';
import { assertNoMoreThan, presentResources } from './resources.js';
import { checkPort } from 'dapl/providers/hca';

/** The upper limit of the software HCA's parameter. */
const MAX_SGE = 255;

const arrays = portGroup('Arrays', (claim) => {
  claim('hold what the software HCA needs, of whatever parameters', ({ a, b }) => {
    for (const port of [a, b]) checkPort(port, { maxSge: MAX_SGE });
  });
});

const GROUPS = [arrays, delivering, placing, paths, handlers, groups, closing, processes];
const TITLES: Readonly<Record<Family, string>> = { ipv4: 'IPv4', ipv6: 'IPv6' };
const MEMORY_BYTES = 1 << 19;

interface GuardedBench extends OpenBench {
  readonly guard: PortGuard;
}

const PORT_PAIRS: PairKind<GuardedBench, PortCapability> = {
  capabilities: PORT_CAPABILITIES,
  parts: {
    'unreachable-ipv4': 'silentAddress',
    'unreachable-ipv6': 'silentAddress',
    process: 'module',
  },
  closed: ({ before }) => assertNoMoreThan(before, 'after close'),
};

/** @throws Error if the fixture names an unknown capability */
export function portPlan(fixture: PacketPortFixture): PlannedBehaviour[] {
  return FAMILIES.flatMap((family) => {
    const other = FAMILIES.find((each) => each !== family)!;
    const capabilities = fixture.capabilities.filter((name) => !name.endsWith(other));
    const openPair = (): Promise<GuardedBench> => openBench(fixture, family);
    return planOf({ capabilities, openPair }, groupsOver(family), PORT_PAIRS);
  });
}

function groupsOver(family: Family): BehaviourGroup<GuardedBench, PortCapability>[] {
  return GROUPS.map(({ name, behaviours }) => ({
    name: `${TITLES[family]}: ${name}`,
    behaviours: behaviours.map((each) => ({
      ...each,
      needs: [family, ...each.needs.map((need) => capabilityOf(need, family))],
      run: (bench) => Promise.race([each.run(bench), bench.guard.broken]),
    })),
  }));
}

function capabilityOf(need: PortNeed, family: Family): PortCapability {
  return need === 'process' ? need : `${need}-${family}`;
}

async function openBench(fixture: PacketPortFixture, family: Family): Promise<GuardedBench> {
  const before = await presentResources();
  const pair = await fixture.openPair(family);
  const guard = new PortGuard();
  const a = guard.over(pair.a);
  const b = pair.a === pair.b ? a : guard.over(pair.b);
  const memory = pattern(MEMORY_BYTES);
  const region = a.addRegion(memory.buffer, 0, memory.length);
  a.watch(nothing);
  b.watch(nothing);
  const closeAll = async (): Promise<void> => {
    await a.close();
    await b.close();
    await pair.close?.();
  };
  let closed: Promise<void> | undefined;
  return {
    ...{ ...pair, a, b, before, guard, memory, region },
    path: a.addPath(gidOf(b), 0, pair.pathBytes),
    close: () => (closed ??= closeAll()),
  };
}
