/** A node of the fake network: device, MAD module and CM module, as a provider wires them. */
import { type DeviceAttributes, gidFromIp, silentLogger } from '../../core/spi/index.js';
import { Cm, type CmOptions } from '../../plugins/cm/index.js';
import { Mad, type MadDependencies, type MadOptions } from '../../plugins/mad/index.js';
import { SeededRandom } from '../../providers/mock/index.js';
import { FakeDevice } from './fake-gsi-device.js';
import type { FakeNetwork } from './fake-network.js';

export interface FakeNodeOptions {
  readonly seed?: number;
  readonly mad?: MadOptions;
  readonly cm?: CmOptions;
  readonly attributes?: Partial<DeviceAttributes>;
  /** What else the device is to have, before the modules see it. */
  readonly prepare?: (device: FakeDevice) => void;
}

export class FakeNode {
  readonly device: FakeDevice;
  readonly mad: Mad;
  readonly cm: Cm;

  constructor(network: FakeNetwork, ip: string, options: FakeNodeOptions = {}) {
    const { world } = network;
    const random = new SeededRandom(options.seed ?? network.devices.length + 1);
    const nodeGuid = (BigInt(random.u32()) << 32n) | BigInt(random.u32());
    this.device = new FakeDevice(network, [gidFromIp(ip)], { nodeGuid, ...options.attributes });
    options.prepare?.(this.device);
    const dependencies: MadDependencies = {
      device: this.device,
      timers: world,
      clock: world,
      scheduler: world,
      random,
      logger: silentLogger,
    };
    this.mad = new Mad(dependencies, options.mad);
    this.cm = new Cm({ ...dependencies, mad: this.mad }, options.cm);
  }

  async close(): Promise<void> {
    await this.cm.close();
    await this.mad.close();
  }
}
