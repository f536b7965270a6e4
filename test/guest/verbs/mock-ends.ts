/** Two devices of ours on a simulated network whose time passes by itself. */
import { Fabric, type FabricTap, MockNode } from 'dapl/providers/mock';

import { DeviceEnd } from './device-end.js';
import type { ManualEnd } from './end.js';

interface MockEnds {
  readonly fabric: Fabric;
  readonly requester: ManualEnd;
  readonly responder: ManualEnd;
  close(): Promise<void>;
}

export function openMockEnds(seed: number, tap?: FabricTap): MockEnds {
  const fabric = new Fabric({ seed, autoRun: true, mtuBytes: 4096 });
  fabric.tap = tap;
  const open = (address: string): DeviceEnd => {
    const { device } = new MockNode(fabric, { addresses: [address] });
    return new DeviceEnd('hca', device, address);
  };
  const [requester, responder] = [open('10.0.0.1'), open('10.0.0.2')];
  return {
    fabric,
    requester,
    responder,
    close: async () => {
      await requester.close();
      await responder.close();
    },
  };
}
