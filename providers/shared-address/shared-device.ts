/** The parts of a shared device for the HCA, CM and MAD of one process. */
import type { ConnectionRecord, DeviceShare, HandedPacket } from '../../core/spi/index.js';
import { Claims, classOwnerOf, listenerOf, type TableLock } from './claims.js';
import { ConnectionRecords } from './connections.js';
import type { GroupMember, Membership } from './member.js';
import { type Directory, ownerOf } from './steering.js';

export class SharedDevice implements DeviceShare {
  readonly slot: number;
  readonly nodeGuid: bigint;
  private readonly claims: Claims;
  private readonly records: ConnectionRecords;
  private readonly directory: Directory;

  constructor(
    { slot, table }: Membership,
    private readonly member: GroupMember,
    lock: TableLock,
  ) {
    this.slot = slot;
    this.nodeGuid = table.nodeGuid;
    this.claims = new Claims(table, lock, slot);
    this.records = new ConnectionRecords(table, slot);
    this.directory = {
      listenerOf: (serviceId) => listenerOf(table, serviceId),
      classOwnerOf: (mgmtClass) => classOwnerOf(table, mgmtClass),
    };
  }

  claimService(serviceId: bigint): void {
    this.claims.claimService(serviceId, ALL_BITS);
  }

  releaseService(serviceId: bigint): void {
    this.claims.releaseService(serviceId, ALL_BITS);
  }

  claimClass(managementClass: number): void {
    this.claims.claimClass(managementClass);
  }

  releaseClass(managementClass: number): void {
    this.claims.releaseClass(managementClass);
  }

  noteConnection(record: ConnectionRecord): void {
    this.records.note(record);
  }

  forgetConnection(localCommId: number): void {
    this.records.forget(localCommId);
  }

  ownerOf(packet: Uint8Array): number {
    return ownerOf(packet, this.directory, this.slot);
  }

  handOver(slot: number, packet: HandedPacket): boolean {
    return this.member.handOver(slot, packet);
  }
}

const ALL_BITS = (1n << 64n) - 1n;
