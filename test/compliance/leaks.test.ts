// Providers that forget to give something back: the suite finds each, and says what is held.
import assert from 'node:assert/strict';
import { definePlugin, ForwardingPort, PACKET_PORT, type PacketPort, withModules } from 'dapl/spi';
import type { mock } from 'dapl/providers/mock';
import { givingBack } from '../../plugins/testing/suite/transfers/giving-back.js';
import { lifetimes } from '../../plugins/testing/suite/connections/lifetimes.js';
import { runGroups } from './groups-alone.js';
import { mockFixture } from './mock-fixture.js';

type Provider = ReturnType<typeof mock>;

/** Regions that were added stay in the port. */
class KeepsRegions extends ForwardingPort {
  override removeRegion(): void {
    // Forgotten.
  }
}

/** Paths to peers do. */
class KeepsPaths extends ForwardingPort {
  override removePath(): void {
    // Forgotten.
  }
}

/** What it counts is right, and yet it holds on to the memory. */
class KeepsMemory extends ForwardingPort {
  private readonly memories: ArrayBufferLike[] = [];

  override addRegion(memory: ArrayBufferLike, byteOffset: number, byteLength: number): number {
    this.memories.push(memory);
    return super.addRegion(memory, byteOffset, byteLength);
  }
}

/** It forgets the last region, and is never closed. */
class StaysOpen extends ForwardingPort {
  override removeRegion(region: number): void {
    if (region > 0) super.removeRegion(region);
  }

  override close(): Promise<void> {
    return Promise.resolve();
  }
}

/** What fails over the mock with that port, and what it says. */
async function failuresOf(
  Port: new (port: PacketPort) => PacketPort,
  groups = [givingBack],
): Promise<[name: string, message: string | undefined][]> {
  const meta = { name: 'forgetful', kind: 'port', sdkVersion: '2.0', requires: [], provides: [] };
  const port = definePlugin(
    { ...(meta as typeof meta & { kind: 'port' }), inject: { own: PACKET_PORT } },
    ({ own }) => new Port(own),
  );
  const wrap = (provider: Provider): Provider => withModules(provider, port({}));
  const results = await runGroups(mockFixture({ wrap }), groups);
  assert.ok(results.some(({ outcome }) => outcome !== 'not-applicable'));
  return results
    .filter(({ outcome }) => outcome === 'failed')
    .map(({ name, message }) => [name, message]);
}

describe('The conformance suite finds leaks', () => {
  it('of none, where there is none', async () => {
    assert.deepEqual(await failuresOf(ForwardingPort), []);
  });

  it('of memory regions', async () => {
    const failures = await failuresOf(KeepsRegions);
    const names = failures.map(([name]) => name);
    assert.ok(names.includes('regions that are freed'), names.join());
    assert.ok(names.includes('memory of regions that are freed is let go: it can be collected'));
    const [, message] = failures.find(([name]) => name === 'regions that are freed') ?? [];
    assert.match(
      message ?? '',
      /3 times more of the same the provider holds regions \d+, of which/,
    );
  });

  it('of paths to peers', async () => {
    const failures = await failuresOf(KeepsPaths);
    assert.ok(failures.length > 0);
    for (const [, message] of failures) assert.match(message ?? '', /holds paths \d+, of which/);
  });

  it('of memory that nothing counts', async () => {
    const [[, message] = [], ...others] = await failuresOf(KeepsMemory);
    assert.match(message ?? '', /of 8 memories 8 are still held/);
    assert.deepEqual(others, []);
  });

  it('that outlive the adapters', async () => {
    const failures = await failuresOf(StaysOpen, [lifetimes]);
    assert.ok(failures.length > 3);
    for (const [, message] of failures) {
      assert.match(message ?? '', /after both adapters have closed the provider holds regions \d/);
    }
  });
});
