/** A MAD port alone on a fake device, which moves only as a test says. */
import assert from 'node:assert/strict';
import { gidFromIp, type Logger, type MadAddress, nameOf, WcStatus } from '../../core/spi/index.js';
import { GsiPort, type GsiPortOptions } from '../../plugins/mad/gsi-port.js';
import type { WorkRequest } from '../../plugins/mad/provider.js';
import { FakeDevice } from './fake-gsi-device.js';
import { FakeNetwork } from './fake-network.js';
import type { FakeQueuePair } from './fake-queue-pair.js';
import { headerOf, madOf } from './mad-pair.js';
import { StepWorld } from './step-device.js';

export const OWN = gidFromIp('10.0.0.1');
export const OWN_TOO = gidFromIp('10.0.0.9');
export const PEER = gidFromIp('10.0.0.2');

/** A port whose device and time move one step at a time. */
export class PortScene {
  readonly world = new StepWorld();
  readonly device = new FakeDevice(new FakeNetwork(this.world), [OWN, OWN_TOO], {});
  readonly port: GsiPort;
  /** What has come back, and what the port has said, in order. */
  readonly log: string[] = [];
  readonly received: { readonly id: number; readonly source: MadAddress }[] = [];
  readonly warnings: string[] = [];
  onMad: () => void = () => undefined;

  constructor(options: Partial<GsiPortOptions> = {}) {
    const { world, device } = this;
    const say = (message: string): void => void this.warnings.push(message);
    const logger: Logger = {
      debug: () => undefined,
      info: () => undefined,
      warn: say,
      error: say,
      isDebugEnabled: () => false,
      child: () => logger,
    };
    this.device.network.fate = () => [];
    this.port = new GsiPort({
      device,
      scheduler: world,
      timers: world,
      clock: world,
      logger,
      sendDepth: 4,
      receiveDepth: 64,
      maxIdleAddresses: 8,
      onMad: (data, source) => {
        this.received.push({ id: headerOf(data).transactionIdLo, source });
        this.onMad();
      },
      onTorn: () => void this.log.push('torn'),
      ...options,
    });
  }

  get qp1(): FakeQueuePair {
    assert.ok(this.device.qp1);
    return this.device.qp1;
  }

  /** What the device has been given to send, by transaction id. */
  get carried(): number[] {
    return this.device.network.carried.map(({ data }) => headerOf(data).transactionIdLo);
  }

  request(id: number, mayRepost = true): WorkRequest {
    return {
      data: madOf({ transactionIdLo: id }),
      address: this.port.addresses.acquire(PEER, 0),
      qpn: 0x1234,
      qkey: 0x8765,
      mayRepost: () => mayRepost,
      onComplete: (status) => void this.log.push(`${nameOf(WcStatus, status)} ${id}`),
    };
  }

  post(...ids: number[]): void {
    for (const id of ids) this.port.post(this.request(id));
  }

  arrive(id: number, destination = OWN): void {
    this.device.receive(madOf({ transactionIdLo: id }), PEER, destination);
  }

  /** Runs what is deferred, and timers that are due, until nothing is left. */
  settle(): void {
    while (this.world.hasTasks || this.world.activeTimers > 0) {
      if (this.world.hasTasks) this.world.runTask();
      else this.world.expire(0);
    }
  }
}
