/**
 * Serves disks to other machines: block backends as the logical units of an iSCSI target, over iSER
 * and over TCP.
 */
import { randomBytes } from 'node:crypto';
import type { Ia } from 'dapl';
import { type BlockBackend, BufferPool } from '../block/index.js';
import { alarm as processAlarm, md5, md5Refusal } from './mover/system.js';
import { bracketed, IserPortal } from './mover/target-side/iser-portal.js';
import { TcpPortal } from './mover/target-side/tcp-mover.js';
import { LogicalUnit, ScsiTarget } from './scsi/index.js';
import {
  type DeviceServer,
  type SetAlarm,
  type TargetConnection,
  TargetNode,
  type Wishes,
} from './session/target-side/index.js';
import { checkName, MIN_CHAP_SECRET_BYTES } from './wire/index.js';

/** A name and a secret, in text. */
export interface ChapAccount {
  readonly name: string;
  /** At least 12 bytes of UTF-8. */
  readonly secret: string;
}

export interface IscsiTargetOptions {
  /** The target's name for initiators: an `iqn.`, `eui.` or `naa.` name. */
  readonly name: string;
  /** A readable name; at most 255 bytes. */
  readonly alias?: string;
  /** Disks by LUN, 0 to 16383. The target uses them until it is closed, but does not close them. */
  readonly luns: ReadonlyMap<number, BlockBackend>;
  /** Credentials that an initiator must prove (CHAP). Default: all initiators are admitted. */
  readonly chap?: ChapAccount;
  /** Credentials that the target proves to an initiator on request. */
  readonly mutualChap?: ChapAccount;
  /** Commands of a session in flight: 1 to 1024, default 64. */
  readonly commandDepth?: number;
  /** Sessions at a time: 1 to 65535, default 64. */
  readonly maxSessions?: number;
  /** Bytes of data in flight: a multiple of 128 KiB, default 16 MiB. */
  readonly memoryBytes?: number;
  /** True if a command may include data. Default true. */
  readonly immediateData?: boolean;
  /** Silence after which an initiator is probed, in milliseconds; 0 for never. Default 15000. */
  readonly keepAliveMs?: number;
  /**
   * Time without progress in a transfer after which the initiator loses its session: 100 to 3600000
   * ms, default 3000.
   */
  readonly transferTimeoutMs?: number;
  /** Receives sentences about sessions, for people. */
  readonly onNote?: (note: string) => void;
  /** Timers, for programs with virtual time. */
  readonly alarm?: SetAlarm;
}

/** An address that a target listens on. */
export interface Portal {
  /** `address:port`, an IPv6 address in brackets. */
  readonly name: string;
}

/** iSCSI's port (RFC 7143, 4.2.3). */
export const ISCSI_PORT = 3260;
const CHUNK_BYTES = 128 * 1024;
const DEFAULTS = {
  commandDepth: 64,
  maxSessions: 64,
  memoryBytes: 16 << 20,
  keepAliveMs: 15_000,
  transferTimeoutMs: 3000,
} as const;
const LIMITS = {
  commandDepth: [1, 1024],
  maxSessions: [1, 65_535],
  memoryBytes: [CHUNK_BYTES, 2 ** 30],
  keepAliveMs: [0, 3_600_000],
  transferTimeoutMs: [100, 3_600_000],
} as const;

type Numbers = Readonly<Record<keyof typeof DEFAULTS, number>>;

export class IscsiTarget {
  readonly name: string;
  private readonly node: TargetNode;
  private readonly pool: BufferPool;
  private readonly alarm: SetAlarm;
  private readonly onNote: (note: string) => void;
  private readonly portals = new Set<IserPortal | TcpPortal>();
  private closing: Promise<void> | undefined = undefined;

  /** @throws RangeError, WireError for invalid names, secrets and numbers */
  constructor(options: IscsiTargetOptions) {
    const { name, alias, chap, mutualChap, luns, alarm = processAlarm } = options;
    const { immediateData = true, onNote = () => undefined } = options;
    this.name = checkName('name', name);
    const numbers = checkedNumbers(options);
    checkAccounts(chap, mutualChap);
    this.alarm = alarm;
    this.onNote = onNote;
    const memory = new Uint8Array(new ArrayBuffer(numbers.memoryBytes));
    this.pool = new BufferPool({ memory, chunkBytes: CHUNK_BYTES, borrowers: numbers.maxSessions });
    const fail = (error: unknown): void => onNote(`a mistake of this program: ${String(error)}`);
    this.node = new TargetNode({
      name,
      ...(alias !== undefined && { alias }),
      ...(chap !== undefined && { authentication: authenticationOf(chap, mutualChap) }),
      device: deviceOf(name, luns, this.pool, fail),
      secrets: { md5, random: (bytes) => randomBytes(bytes) },
      commandDepth: numbers.commandDepth,
      maxSessions: numbers.maxSessions,
      keepAliveMs: numbers.keepAliveMs,
      transferTimeoutMs: numbers.transferTimeoutMs,
      wishes: wishesOf(immediateData),
      onFault: ({ peer }: TargetConnection, { message }) => onNote(`${peer}: ${message}`),
      onFailure: fail,
    });
  }

  /** Number of sessions that are logged in. */
  get sessionCount(): number {
    return this.node.sessionCount;
  }

  /**
   * Listens for iSER initiators on an adapter, which is not closed with the target.
   * @param port in rdma_cm's TCP port space, 1 to 65535
   * @throws DatError DAT_CONN_QUAL_IN_USE; errors of creating memory and dispatchers
   */
  listenIser(ia: Ia, port: number = ISCSI_PORT): Portal {
    this.checkOpen();
    const { node: target, alarm, onNote } = this;
    const { memory, chunkBytes } = this.pool;
    const name = `${bracketed(ia.address)}:${port}`;
    const how = { target, ia, port, name, memory, chunkBytes, alarm, onNote };
    const portal = new IserPortal(how);
    this.portals.add(portal);
    return portal;
  }

  /**
   * Listens for iSCSI initiators over TCP.
   * @param port 0 for any free port, which the portal's name contains
   * @throws the system's error if it cannot listen on the address
   */
  async listenTcp(address: string, port: number = ISCSI_PORT): Promise<Portal> {
    this.checkOpen();
    const portal = await TcpPortal.listen(this.node, address, port);
    this.portals.add(portal);
    return portal;
  }

  /**
   * Asks every initiator to log out (an asynchronous message), and ends sessions that have not done
   * so in time. Resolves when no command is in flight; a second call returns the same promise.
   * Backends are flushed by their own `close`.
   * @param timeoutSeconds 0 to 65535: 0 ends all sessions immediately, including those asked before
   */
  close(timeoutSeconds = 10): Promise<void> {
    if (this.closing !== undefined && timeoutSeconds === 0) this.node.drop();
    this.closing ??= this.end(timeoutSeconds);
    return this.closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  private async end(timeoutSeconds: number): Promise<void> {
    await Promise.all([...this.portals].map((portal) => portal.closeListener()));
    await this.node.close(timeoutSeconds);
    for (const portal of this.portals) if (portal instanceof IserPortal) await portal.free();
  }

  private checkOpen(): void {
    if (this.closing !== undefined) throw new RangeError(`${this.name} has been closed`);
  }
}

function checkedNumbers(options: IscsiTargetOptions): Numbers {
  const numbers: Record<string, number> = {};
  for (const [name, [lowest, highest]] of Object.entries(LIMITS)) {
    const key = name as keyof Numbers;
    const value = options[key] ?? DEFAULTS[key];
    if (!Number.isInteger(value) || value < lowest || value > highest) {
      throw new RangeError(`${name} is ${value}, must be an integer, ${lowest} to ${highest}`);
    }
    numbers[key] = value;
  }
  return numbers as Numbers;
}

function checkAccounts(chap: ChapAccount | undefined, mutual: ChapAccount | undefined): void {
  for (const account of [chap, mutual]) {
    if (account === undefined) continue;
    const bytes = Buffer.byteLength(account.secret);
    if (bytes < MIN_CHAP_SECRET_BYTES) {
      const least = `at least ${MIN_CHAP_SECRET_BYTES}`;
      throw new RangeError(`the secret of ${account.name} has ${bytes} bytes, must have ${least}`);
    }
  }
  const refusal = chap === undefined ? undefined : md5Refusal();
  if (refusal !== undefined) throw new RangeError(refusal);
  if (mutual === undefined) return;
  if (chap === undefined) throw new RangeError('mutual CHAP needs an initiator that proves itself');
  if (mutual.secret === chap.secret) {
    throw new RangeError('the secrets of both directions are the same, and must differ');
  }
}

function authenticationOf(
  chap: ChapAccount,
  mutual: ChapAccount | undefined,
): NonNullable<TargetNode['options']['authentication']> {
  const inBytes = ({ name, secret }: ChapAccount): { name: string; secret: Uint8Array } => ({
    name,
    secret: Buffer.from(secret),
  });
  return {
    initiator: inBytes(chap),
    ...(mutual !== undefined && { target: inBytes(mutual) }),
  };
}

/** Values that the target wants, by key; other keys have the default of the RFC. */
function wishesOf(immediateData: boolean): { readonly rdma: Wishes; readonly tcp: Wishes } {
  const both: Wishes = {
    MaxConnections: '1',
    // Data that was not asked for comes with its command, or not at all.
    InitialR2T: 'Yes',
    ImmediateData: immediateData ? 'Yes' : 'No',
    MaxBurstLength: '1048576',
    FirstBurstLength: '65536',
    MaxOutstandingR2T: '1',
    ErrorRecoveryLevel: '0',
    DefaultTime2Wait: '0',
    DefaultTime2Retain: '0',
    MaxRecvDataSegmentLength: '262144',
  };
  return {
    tcp: both,
    rdma: {
      ...both,
      RDMAExtensions: 'Yes',
      InitiatorRecvDataSegmentLength: '262144',
      TargetRecvDataSegmentLength: '8192',
    },
  };
}

/** The device server, whose commands use the memory of this target. */
function deviceOf(
  name: string,
  luns: IscsiTargetOptions['luns'],
  pool: BufferPool,
  onFault: (error: unknown) => void,
): DeviceServer {
  const unitOf = (backend: BlockBackend): LogicalUnit =>
    new LogicalUnit({ backend, identity: { ...PRODUCT, serial: backend.serial }, onFault });
  const units = new Map([...luns].map(([lun, backend]) => [lun, unitOf(backend)]));
  checkSerials(luns);
  return new ScsiTarget({ name, units, pool });
}

const PRODUCT = { vendor: 'DAPL', product: 'ISCSI DISK', revision: '0001' } as const;

/**
 * Rejects disks with the same serial number: multipath would make one disk of them, and write to
 * both in turn.
 */
function checkSerials(luns: IscsiTargetOptions['luns']): void {
  const known = new Map<string, number>();
  for (const [lun, { serial }] of luns) {
    const other = known.get(serial);
    if (other !== undefined) {
      const what = `LUN ${other} and LUN ${lun} have the serial number ${serial}`;
      throw new RangeError(`${what}, and must differ: give each disk once, with its own number`);
    }
    known.set(serial, lun);
  }
}
