/**
 * The connections of a device by every key that a message may name: our id; the peer's id and GUID
 * (a repeated REQ); the peer's queue pair and GUID (a stale connection). Ids and GUID are what the
 * peer says; its address, which is part of each key, keeps it out of the way of others.
 */
import { SpiError } from '../../core/spi/index.js';
import type { Gid } from '../../core/spi/index.js';
import type { Connection } from './connection.js';

export class ConnectionTable {
  private readonly byLocalId = new Map<number, Connection>();
  private readonly byRemoteId = new Map<string, Connection>();
  private readonly byRemoteQp = new Map<string, Connection>();
  /** Our queue pairs that the peer at an address may still know: no new connection of them. */
  private readonly lingering = new Map<string, Connection>();

  get size(): number {
    return this.byLocalId.size;
  }

  /** True when every index is empty. */
  get isEmpty(): boolean {
    const { byLocalId, byRemoteId, byRemoteQp, lingering } = this;
    return byLocalId.size + byRemoteId.size + byRemoteQp.size + lingering.size === 0;
  }

  all(): Connection[] {
    return [...this.byLocalId.values()];
  }

  hasLocalId(commId: number): boolean {
    return this.byLocalId.has(commId);
  }

  find(localCommId: number): Connection | undefined {
    return this.byLocalId.get(localCommId);
  }

  findRemote(remoteCommId: number, guid: bigint, peer: Gid): Connection | undefined {
    return this.byRemoteId.get(key(remoteCommId, guid, peer));
  }

  findRemoteQp(qpn: number, guid: bigint, peer: Gid): Connection | undefined {
    return this.byRemoteQp.get(key(qpn, guid, peer));
  }

  /** @throws SpiError('EINVAL') when the peer may still know the queue pair by a connection */
  checkUnknown(qpn: number, peer: Gid): void {
    if (!this.lingering.has(qpKey(qpn, peer))) return;
    throw new SpiError('EINVAL', `queue pair ${qpn}: the peer may still know it`);
  }

  add(connection: Connection): void {
    this.byLocalId.set(connection.localCommId, connection);
  }

  /** The peer's id, queue pair and GUID are known. */
  addRemote(connection: Connection): void {
    const { remoteCommId, remoteGuid, remoteQpn, remoteGid } = connection;
    this.byRemoteId.set(key(remoteCommId, remoteGuid, remoteGid), connection);
    this.byRemoteQp.set(key(remoteQpn, remoteGuid, remoteGid), connection);
  }

  addLingering(connection: Connection): void {
    const { localQpn, remoteGid } = connection;
    if (localQpn !== 0) this.lingering.set(qpKey(localQpn, remoteGid), connection);
  }

  /** The peer may use its queue pair anew; repeated messages still find the connection. */
  forgetRemoteQp(connection: Connection): void {
    const { remoteQpn, remoteGuid, remoteGid } = connection;
    forget(this.byRemoteQp, key(remoteQpn, remoteGuid, remoteGid), connection);
  }

  remove(connection: Connection): void {
    const { localCommId, remoteCommId, remoteGuid, localQpn, remoteGid } = connection;
    this.byLocalId.delete(localCommId);
    forget(this.byRemoteId, key(remoteCommId, remoteGuid, remoteGid), connection);
    forget(this.lingering, qpKey(localQpn, remoteGid), connection);
    this.forgetRemoteQp(connection);
  }
}

function key(number: number, guid: bigint, peer: Gid): string {
  return `${number}:${guid}:${peer.join('.')}`;
}

function qpKey(qpn: number, peer: Gid): string {
  return `${qpn}:${peer.join('.')}`;
}

function forget(map: Map<string, Connection>, at: string, connection: Connection): void {
  if (map.get(at) === connection) map.delete(at);
}
