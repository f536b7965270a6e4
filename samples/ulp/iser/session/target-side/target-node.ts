/**
 * A target: its name, its portals and its sessions. An initiator port has one session at most: a
 * new one replaces the old one (RFC 7143, 6.3.5), which ends first.
 */
import type { Wishes } from './login/operational.js';
import type { TargetConnection } from './connection.js';
import type { DeviceServer } from './device-server.js';
import type { LoginIdentity, LoginRules } from './login/login.js';
import type { Authentication, Secrets } from './login/security.js';

export interface TargetNodeOptions {
  /** `iqn.`, `eui.` or `naa.` name. */
  readonly name: string;
  readonly alias?: string;
  readonly device: DeviceServer;
  readonly authentication?: Authentication;
  readonly secrets: Secrets;
  /** Commands of a session in flight: 1 to 65535. */
  readonly commandDepth: number;
  /** Sessions at a time. */
  readonly maxSessions: number;
  /** Silence in milliseconds after which an initiator is probed; 0 for never. */
  readonly keepAliveMs: number;
  /** Milliseconds after which a transfer without progress ends its session. */
  readonly transferTimeoutMs: number;
  readonly wishes: { readonly rdma: Wishes; readonly tcp: Wishes };
  /** An initiator has violated the protocol, or was lost. */
  readonly onFault: (connection: TargetConnection, fault: Error) => void;
  /** The device server has failed: a bug of this program. */
  readonly onFailure: (error: unknown) => void;
}

/** The one portal group. */
export const PORTAL_GROUP_TAG = 1;
const HIGHEST_TSIH = 0xffff;
/** The zone in `[fe80::1%eth0]:3260`. */
const ZONE = /%([^\]]*)\]/;
/** Connections without a login at a time from one address. */
export const LOGINS_PER_ADDRESS = 32;

function zoneOf(portal: string): string | undefined {
  return ZONE.exec(portal)?.[1];
}

export class TargetNode {
  /** Sessions that are logged in, by initiator port and session type. */
  private readonly sessions = new Map<string, TargetConnection>();
  private readonly connections = new Set<TargetConnection>();
  private readonly addresses = { rdma: new Set<string>(), tcp: new Set<string>() };
  /** Addresses that were told that they have too many. */
  private readonly crowded = new Set<string>();
  private lastTsih = 0;
  private isClosed = false;

  constructor(readonly options: TargetNodeOptions) {}

  /** Number of connections in any state. */
  get connectionCount(): number {
    return this.connections.size;
  }

  /** Number of sessions that are logged in. */
  get sessionCount(): number {
    return this.sessions.size;
  }

  /** @param portal `address:port`, an IPv6 address in brackets */
  addPortal(portal: string, isRdma: boolean): void {
    this.addresses[isRdma ? 'rdma' : 'tcp'].add(portal);
  }

  /**
   * Portals for SendTargets: those of the same transport. That of the asking session is the first,
   * because initiators try them in order and this one works. A link-local portal is only listed for
   * initiators on its link, without the zone, which names a link of this host (RFC 4007, 11.2).
   */
  portals(own: string, isRdma: boolean): string[] {
    const zone = zoneOf(own);
    const others = [...this.addresses[isRdma ? 'rdma' : 'tcp']].filter(
      (each) => each !== own && (zoneOf(each) ?? zone) === zone,
    );
    return [own, ...others].map((portal) => `${portal.replace(ZONE, ']')},${PORTAL_GROUP_TAG}`);
  }

  loginRules(isRdma: boolean): LoginRules {
    const { name, alias, authentication, secrets, wishes } = this.options;
    return {
      targetName: name,
      ...(alias !== undefined && { targetAlias: alias }),
      portalGroupTag: PORTAL_GROUP_TAG,
      ...(authentication !== undefined && { authentication }),
      secrets,
      wishes: isRdma ? wishes.rdma : wishes.tcp,
      isRdma,
      hasSession: (tsih) => [...this.sessions.values()].some((each) => each.tsih === tsih),
    };
  }

  /** The name of an initiator port in SCSI (RFC 7143, 4.4.1). */
  portOf({ initiatorName, isid }: LoginIdentity): string {
    const hex = Array.from(isid, (byte) => byte.toString(16).padStart(2, '0')).join('');
    return `${initiatorName},i,0x${hex}`;
  }

  /** Adds a new connection. */
  enter(connection: TargetConnection): void {
    this.connections.add(connection);
    if (this.isClosed) return connection.close('the target is closed');
    const { address } = connection;
    const pending = [...this.connections].filter((each) => each.isLoggingIn(address)).length;
    if (pending <= LOGINS_PER_ADDRESS) return;
    const why = `more than ${LOGINS_PER_ADDRESS} connections of ${address} have not logged in`;
    // Once, until there is room again: who connects in a loop must not fill the log.
    if (!this.crowded.has(address)) this.options.onFault(connection, new Error(why));
    this.crowded.add(address);
    connection.close(why);
  }

  /**
   * Handles a successful login. It resolves when the session that it replaces has ended: none of
   * its tasks writes any more.
   * @returns the handle, 1 to 65535; undefined if there are too many sessions
   */
  async admit(connection: TargetConnection, identity: LoginIdentity): Promise<number | undefined> {
    const key = `${identity.sessionType} ${this.portOf(identity)}`;
    for (;;) {
      const older = this.sessions.get(key);
      if (older === undefined) break;
      older.close('another session of the same initiator port has taken its place');
      await older.ended;
    }
    if (this.sessions.size >= this.options.maxSessions || this.isClosed) return undefined;
    if (connection.state !== 'IN_LOGIN') return undefined;
    this.sessions.set(key, connection);
    return this.nextTsih();
  }

  /** Removes a connection that has ended. */
  leave(connection: TargetConnection): void {
    this.connections.delete(connection);
    const { address } = connection;
    if (![...this.connections].some((each) => each.isLoggingIn(address))) {
      this.crowded.delete(address);
    }
    for (const [key, each] of this.sessions) if (each === connection) this.sessions.delete(key);
  }

  /**
   * Asks every initiator to log out, and closes sessions that have not done so in time; resolves
   * when all have ended. New connections are refused from now on.
   */
  async close(timeoutSeconds: number): Promise<void> {
    this.isClosed = true;
    const all = [...this.connections];
    for (const connection of all) connection.requestLogout(timeoutSeconds);
    if (timeoutSeconds === 0) this.drop();
    await Promise.all(all.map((connection) => connection.ended));
  }

  /** Ends all sessions immediately. */
  drop(): void {
    for (const connection of [...this.connections]) connection.close('the target is closed');
  }

  private nextTsih(): number {
    const used = new Set([...this.sessions.values()].map(({ tsih }) => tsih));
    do this.lastTsih = (this.lastTsih % HIGHEST_TSIH) + 1;
    while (used.has(this.lastTsih));
    return this.lastTsih;
  }
}
