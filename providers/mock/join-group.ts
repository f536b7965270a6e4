/** Joins a simulated process to those that share its addresses; it may be the first of them. */
import { type DeviceShare, type Logger, SpiError } from '../../core/spi/index.js';
import { GroupMember, type Membership } from '../shared-address/member.js';
import { type DeviceOfGroup, groupDevice } from '../shared-address/group-device.js';
import { SharedDevice } from '../shared-address/shared-device.js';
import type { GroupSystem } from './group-system.js';
import { ProcessHost } from './process-host.js';
import type { SteeredSocket } from './steered-address.js';

export interface JoinedGroup {
  /** Name of the process. */
  readonly process: string;
  readonly share: DeviceShare;
  /** One for each address, in order. */
  readonly sockets: readonly SteeredSocket[];
  readonly host: ProcessHost;
  /** The device is there. */
  serve(device: DeviceOfGroup): void;
  /** Gives its slot back. Idempotent. */
  leave(): void;
}

/**
 * Takes virtual time.
 * @throws SpiError EADDRINUSE an address is not shared; ENOMEM no slot is left; ETIMEDOUT
 */
export async function joinGroup(
  system: GroupSystem,
  process: string,
  logger: Logger,
): Promise<JoinedGroup> {
  const { fabric } = system;
  const host = new ProcessHost(system, process, fabric.random.fork(), logger);
  system.processes.set(process, host);
  fabric.holdProcess(1);
  try {
    const { member, membership } = await join(host);
    return joined(host, member, membership);
  } finally {
    fabric.holdProcess(-1);
  }
}

function join(host: ProcessHost): Promise<{ member: GroupMember; membership: Membership }> {
  return new Promise((resolve, reject) => {
    const member = new GroupMember(host, (membership, error) => {
      if (membership) resolve({ member, membership });
      else reject(error ?? new SpiError('EIO', 'a shared device could not be opened'));
    });
    host.onKilled = () => reject(new SpiError('EIO', `process ${host.process} is killed`));
    host.enter(() => member.start());
  });
}

function joined(host: ProcessHost, member: GroupMember, membership: Membership): JoinedGroup {
  // Nothing else runs between two calls of a process here: the table needs no lock.
  const device = new SharedDevice(membership, member, { withLock: (body) => body() });
  return {
    process: host.process,
    share: new LivingShare(host, device),
    sockets: host.socketsOf(membership.descriptors),
    host,
    serve: (device) => {
      host.device = groupDevice(device);
    },
    leave: () => host.enter(() => member.close()),
  };
}

/** Drops the messages and writes of a process after it has been killed. */
class LivingShare implements DeviceShare {
  readonly slot: number;
  readonly nodeGuid: bigint;

  constructor(
    private readonly host: ProcessHost,
    private readonly device: DeviceShare,
  ) {
    this.slot = device.slot;
    this.nodeGuid = device.nodeGuid;
  }

  claimService(serviceId: bigint): void {
    this.host.enter(() => this.device.claimService(serviceId));
  }

  releaseService(serviceId: bigint): void {
    this.host.enter(() => this.device.releaseService(serviceId));
  }

  claimClass(managementClass: number): void {
    this.host.enter(() => this.device.claimClass(managementClass));
  }

  releaseClass(managementClass: number): void {
    this.host.enter(() => this.device.releaseClass(managementClass));
  }

  noteConnection(record: Parameters<DeviceShare['noteConnection']>[0]): void {
    this.host.enter(() => this.device.noteConnection(record));
  }

  forgetConnection(localCommId: number): void {
    this.host.enter(() => this.device.forgetConnection(localCommId));
  }

  ownerOf(packet: Uint8Array): number {
    return this.device.ownerOf(packet);
  }

  handOver(...given: Parameters<DeviceShare['handOver']>): boolean {
    let done = false;
    this.host.enter(() => {
      done = this.device.handOver(...given);
    });
    return done;
  }
}
