/**
 * The connections of a device by every key that a message may name: our id; the peer's id and GUID
 * (a repeated REQ); the peer's queue pair and GUID (a stale connection). A peer may send any ids
 * and GUID, but each key includes its address, so it cannot reach connections of others.
 */
import { type Gid, SpiError } from '../../../core/spi/index.js';
import { deviceOf } from '../../../core/spi/internal/index.js';
import type { CmPath, Connection } from './connection.js';

export class ConnectionTable {
  private readonly byLocalId = new Map<number, Connection>();
  private readonly byRemoteId = new PeerIndex();
  private readonly byRemoteQp = new PeerIndex();
  /** Our queue pairs that a peer may still know from an old connection, unusable for a new one. */
  private readonly lingering = new PeerIndex();

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
    return this.byRemoteId.get(nodeKey(guid, peer), remoteCommId);
  }

  findRemoteQp(qpn: number, guid: bigint, peer: Gid): Connection | undefined {
    return this.byRemoteQp.get(nodeKey(guid, peer), qpn);
  }

  /** The path to a peer, shared by its connections to save memory. */
  pathTo(peer: Gid, localGidIndex: number): CmPath {
    const path = this.lingering.any(addressKey(peer))?.path;
    return path?.localGidIndex === localGidIndex ? path : { gid: peer.slice(), localGidIndex };
  }

  /** @throws SpiError('EINVAL') if an earlier connection to the peer used the queue pair */
  checkUnknown(qpn: number, peer: Gid): void {
    if (this.lingering.get(addressKey(peer), qpn) === undefined) return;
    throw new SpiError('EINVAL', `queue pair ${qpn}: the peer may still know it`);
  }

  add(connection: Connection): void {
    this.byLocalId.set(connection.localCommId, connection);
  }

  /** Call it once the peer's id, queue pair and GUID are known. */
  addRemote(connection: Connection): void {
    const { remoteCommId, remoteGuid, remoteQpn, remoteGid } = connection;
    const node = nodeKey(remoteGuid, remoteGid);
    this.byRemoteId.set(node, remoteCommId, connection);
    this.byRemoteQp.set(node, remoteQpn, connection);
  }

  addLingering(connection: Connection): void {
    const { localQpn, remoteGid } = connection;
    if (localQpn !== 0) this.lingering.set(addressKey(remoteGid), localQpn, connection);
  }

  /** Lets the peer reuse its queue pair. Repeated messages still find the connection. */
  forgetRemoteQp(connection: Connection): void {
    const { remoteQpn, remoteGuid, remoteGid } = connection;
    this.byRemoteQp.forget(nodeKey(remoteGuid, remoteGid), remoteQpn, connection);
  }

  remove(connection: Connection): void {
    const { localCommId, remoteCommId, remoteGuid, localQpn, remoteGid } = connection;
    this.byLocalId.delete(localCommId);
    this.byRemoteId.forget(nodeKey(remoteGuid, remoteGid), remoteCommId, connection);
    this.lingering.forget(addressKey(remoteGid), localQpn, connection);
    this.forgetRemoteQp(connection);
  }
}

/** Connections by peer and number. All connections to a peer share one key string. */
class PeerIndex {
  private readonly peers = new Map<string, Map<number, Connection>>();
  size = 0;

  get(peer: string, number: number): Connection | undefined {
    return this.peers.get(peer)?.get(number);
  }

  /** Any connection to the peer. */
  any(peer: string): Connection | undefined {
    for (const connection of this.peers.get(peer)?.values() ?? []) return connection;
    return undefined;
  }

  set(peer: string, number: number, connection: Connection): void {
    let numbers = this.peers.get(peer);
    if (numbers === undefined) this.peers.set(peer, (numbers = new Map<number, Connection>()));
    this.size += numbers.has(number) ? 0 : 1;
    numbers.set(number, connection);
  }

  /** Does nothing if another connection has taken the place. */
  forget(peer: string, number: number, connection: Connection): void {
    const numbers = this.peers.get(peer);
    if (numbers?.get(number) !== connection) return;
    numbers.delete(number);
    this.size -= 1;
    if (numbers.size === 0) this.peers.delete(peer);
  }
}

function nodeKey(guid: bigint, peer: Gid): string {
  return `${deviceOf(guid)}:${peer.join('.')}`;
}

function addressKey(peer: Gid): string {
  return peer.join('.');
}
