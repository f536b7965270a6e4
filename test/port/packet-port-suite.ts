/** What every PacketPort must do, whatever carries its packets. */
import { checkPort } from '../../providers/hca/common/port-arrays.js';
import { type Bench, gidOf, nothing, type PortPair } from './bench-pair.js';
import { pattern } from './harness.js';
import { describeDelivery } from './suite-delivery.js';
import { describeClosing, describeHandlers, describePaths } from './suite-lifecycle.js';
import { describeMemory } from './suite-memory.js';

/** The most that its parameter may be. */
const MAX_SGE = 255;

export type Family = 'ipv4' | 'ipv6';

export interface PortCapabilities {
  readonly families: readonly Family[];
  /** An address of each family where nobody listens, if the port hears of that. */
  readonly silentAddresses?: Readonly<Partial<Record<Family, string>>>;
}

export interface PortSuite {
  readonly capabilities: PortCapabilities;
  createPair(family: Family): Promise<PortPair>;
  teardown?(pair: PortPair): Promise<void>;
}

export function describePacketPort(name: string, suite: PortSuite): void {
  for (const family of suite.capabilities.families) {
    describe(`${name}, ${family}`, () => {
      let bench: Bench;

      beforeEach(async () => {
        const pair = await suite.createPair(family);
        const memory = pattern(1 << 19);
        const region = pair.a.addRegion(memory.buffer, 0, memory.length);
        bench = { ...pair, memory, region, path: pair.a.addPath(gidOf(pair.b), 0, pair.pathBytes) };
        pair.a.watch(nothing);
        pair.b.watch(nothing);
      });

      afterEach(async () => {
        await bench.a.close();
        await bench.b.close();
        await suite.teardown?.(bench);
      });

      it('has arrays that hold what the software HCA needs, of whatever parameters', () => {
        for (const port of [bench.a, bench.b]) checkPort(port, { maxSge: MAX_SGE });
      });

      describeDelivery(() => bench);
      describeMemory(() => bench);
      describePaths(() => bench);
      describeHandlers(() => bench, suite.capabilities.silentAddresses?.[family]);
      describeClosing(() => bench);
    });
  }
}
