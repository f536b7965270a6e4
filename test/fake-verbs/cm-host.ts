/** A CM module over the fake librdmacm, with queue pairs that only keep account of themselves. */
import { createRequire } from 'node:module';
import type { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import {
  AsyncEventType,
  checkQpTransition,
  type CmConnection,
  type CmConnectOptions,
  type CmEvent,
  type CmListener,
  type CmListenOptions,
  type CmRequest,
  type Device,
  gidFromIp,
  type Logger,
  PortSpace,
  QpState,
  QpType,
  type QueuePair,
  type QueuePairAttributes,
  serviceIdOf,
  silentLogger,
  SpiError,
  TimerWheel,
} from '../../core/spi/index.js';
import { VerbsCm } from '../../providers/verbs/cm/cm.js';
import { LocalAddresses } from '../../providers/verbs/cm/local-addresses.js';
import type { CmNative } from '../../providers/verbs/addon/rdmacm.js';
import { loadVerbsAddon, type VerbsAddon } from '../../providers/verbs/addon/native-addon.js';
import { patience } from '../support/patience.js';

/** What the fake does wrong while it is not 0 (fake_rdmacm.h). */
export const CmSwitch = {
  ADDR_STATUS: 0,
  ROUTE_STATUS: 1,
  ADDR_SILENT: 2,
  DROP_REQ: 3,
  UNREACHABLE: 4,
  DROP_REP: 5,
  DROP_RTU: 6,
  DROP_DREQ: 7,
  NO_TIMEWAIT: 8,
  IWARP: 9,
  UNREADABLE: 10,
  LID: 11,
} as const;

export interface CmFakeControl {
  set(which: number, value: number): void;
  reset(): void;
  addAddress(address: string, device: string): number;
  /** To every identifier that is bound to a device, or to that one. */
  raise(type: number, status: number, device?: string): void;
  /** Identifiers, channels and unacknowledged events. */
  live(): number;
  inject(name: string, nth: number, errno: number): number;
  calls(name: string): number;
}

export const CM_LIBRARY = join(import.meta.dirname, '../../../build/native/fake-rdmacm.node');

export function loadCmFake(): CmFakeControl {
  return createRequire(import.meta.url)(CM_LIBRARY) as CmFakeControl;
}

export const PORT = 7174;
export const SERVICE = serviceIdOf(PortSpace.TCP, PORT);
export const ADDRESSES = ['10.77.0.1', '10.77.0.2', 'fd77::1', 'fe80::1'] as const;

/** Interfaces as os.networkInterfaces() tells them. */
const INTERFACES = {
  eth0: ADDRESSES.map((address) => ({
    address,
    netmask: '',
    mac: '02:00:00:00:00:01',
    internal: false,
    ...(address.includes(':')
      ? { family: 'IPv6' as const, scopeid: address.startsWith('fe80') ? 2 : 0 }
      : { family: 'IPv4' as const }),
    cidr: `${address}/${address.includes(':') ? 64 : 24}`,
  })),
} as ReturnType<typeof networkInterfaces>;

/** A queue pair that obeys the state table. */
export class AccountQp {
  readonly type: QpType;
  state: QpState = QpState.INIT;
  readonly receiveRing: object | undefined = {};
  readonly modified: QueuePairAttributes[] = [];
  readonly events: AsyncEventType[] = [];
  eventHandler = (event: AsyncEventType): void => void this.events.push(event);
  /** What `modify` to that state throws. */
  failAt: QpState | undefined;

  constructor(
    readonly qpn: number,
    type: QpType = QpType.RC,
  ) {
    this.type = type;
  }

  modify(attributes: QueuePairAttributes): void {
    if (attributes.state === this.failAt) throw new SpiError('EIO', 'this queue pair is ill');
    this.state = checkQpTransition(this.type, this.state, attributes);
    this.modified.push(attributes);
  }

  to(state: QpState): QueuePairAttributes | undefined {
    return this.modified.find((attributes) => attributes.state === state);
  }

  get asQp(): QueuePair {
    return this as unknown as QueuePair;
  }
}

/** One side of a connection under test. */
export interface Side {
  readonly qp: AccountQp;
  readonly events: CmEvent[];
  connection: CmConnection;
}

const PARAMETERS = {
  responderResources: 4,
  initiatorDepth: 4,
  retryCount: 6,
  rnrRetryCount: 5,
  minRnrTimer: 12,
  accessFlags: 0b1111,
} as const;

let nextQpn = 0x11;

export class CmHost {
  readonly fake = loadCmFake();
  readonly logged: string[] = [];
  readonly cm: VerbsCm;
  nowUs = 0;
  private readonly wheel = new TimerWheel();

  constructor(
    attributes: Partial<Device['attributes']> = {},
    name = 'fake0',
    reset = true,
    gids: readonly string[] = ADDRESSES,
  ) {
    if (reset) this.fake.reset();
    const native = loadVerbsAddon() as VerbsAddon & CmNative;
    const missing = native.load('rdmacm', CM_LIBRARY);
    if (missing !== undefined) throw new Error(missing);
    const device = {
      name,
      gids: gids.map(gidFromIp),
      attributes: {
        activeMtuBytes: 4096,
        maxResponderResources: 16,
        maxInitiatorDepth: 16,
        ...attributes,
      },
    } as unknown as Device;
    this.cm = new VerbsCm({
      native,
      device,
      clock: { now: () => this.nowUs },
      timers: this.wheel,
      scheduler: { defer: (task) => void setImmediate(task), mayStart: () => true },
      logger: this.logger,
      addresses: new LocalAddresses(device, () => INTERFACES),
    });
  }

  private readonly logger: Logger = {
    ...silentLogger,
    debug: (message) => void this.logged.push(message),
    warn: (message) => void this.logged.push(message),
    error: (message) => void this.logged.push(message),
  };

  /** Lets virtual time pass. */
  advance(us: number): void {
    this.nowUs += us;
    this.wheel.advance(this.nowUs);
  }

  get activeTimers(): number {
    return this.wheel.size;
  }

  side(qp = new AccountQp(nextQpn++)): Omit<Side, 'connection'> {
    return { qp, events: [] };
  }

  connect(over: Partial<CmConnectOptions> = {}, qp?: AccountQp): Side {
    const side = this.side(qp);
    const connection = this.cm.connect({
      ...PARAMETERS,
      qp: side.qp.asQp,
      remoteGid: gidFromIp(ADDRESSES[1]),
      serviceId: SERVICE,
      privateData: new Uint8Array(0),
      timeoutUs: Infinity,
      onEvent: (event) => void side.events.push(event),
      ...over,
    });
    return { ...side, connection };
  }

  listen(onRequest: (request: CmRequest) => void, over: Partial<CmListenOptions> = {}): CmListener {
    return this.cm.listen({ serviceId: SERVICE, backlog: 8, onRequest, ...over });
  }

  accept(request: CmRequest, privateData: Uint8Array = new Uint8Array(0), qp?: AccountQp): Side {
    const side = this.side(qp);
    const connection = request.accept({
      ...PARAMETERS,
      qp: side.qp.asQp,
      privateData,
      onEvent: (event) => void side.events.push(event),
    });
    return { ...side, connection };
  }

  /** An established connection; its listener stays. */
  async pair(over: Partial<CmConnectOptions> = {}): Promise<{ active: Side; passive: Side }> {
    let passive: Side | undefined;
    const listener = this.listen((request) => (passive = this.accept(request)));
    const active = this.connect(over);
    await until(() => has(active, 'established') && passive !== undefined && has(passive));
    listener.close();
    if (!passive) throw new Error('nobody has accepted');
    return { active, passive };
  }

  async close(): Promise<void> {
    await this.cm.close();
    this.fake.reset();
  }
}

export function has(side: Side, type: CmEvent['type'] = 'established'): boolean {
  return side.events.some((event) => event.type === type);
}

export function typesOf(side: Side): string[] {
  return side.events.map(({ type }) => type);
}

/** Turns of the event loop, in which descriptors are looked at too. */
export async function turns(count = 20): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve));
}

const PATIENCE_MS = 10_000;

export async function until(condition: () => boolean): Promise<void> {
  for (const endMs = performance.now() + patience(PATIENCE_MS); !condition(); await turns(1)) {
    if (performance.now() < endMs) continue;
    throw new Error(`this never came true: ${condition.toString()}`);
  }
}

export { QpState, AsyncEventType };
