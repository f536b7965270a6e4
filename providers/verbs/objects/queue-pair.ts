/** Send and receive rings over ibv_post_send and ibv_post_recv. */
import { checkInteger } from '../../../core/spi/checks/index.js';
import { einval } from '../../../core/spi/errors/einval.js';
import {
  AsyncEventType,
  checkQpTransition,
  type Gid,
  ipFromGid,
  isIpv4Gid,
  isMulticastGid,
  type MulticastOptions,
  nameOf,
  QpState,
  QpType,
  type QueuePair,
  type QueuePairAttributes,
  type QueuePairEventHandler,
  type QueuePairInit,
  Ring,
  ringEntries,
  rqeBytes,
  SpiError,
  sqeBytes,
} from '../../../core/spi/index.js';
import { check, errnoError } from '../system/errno.js';
import { textOf } from '../system/sysfs.js';
import { ATTRIBUTE_WORDS, readAttributes, writeAttributes } from './attribute-words.js';
import type { VerbsCompletionQueue } from './completion-queue.js';
import type { CreateQueuePair } from './create-queue-pair.js';
import { LastReceive } from './last-receive.js';
import type { OpenDevice } from './open-device.js';
import { queueOf } from './parents.js';
import { VerbsObject } from './verbs-object.js';

/** Everything that a query can tell; drivers give what they have. */
const QUERY_ALL = 0x1fffff;
const QUERY_STATE = 1;
const RECORD_LINES = 64;

/** Init without the parent objects. */
type Sizes = Omit<QueuePairInit, 'pd' | 'sendCq' | 'receiveCq' | 'xrcDomain'> &
  Partial<Pick<QueuePairInit, 'receiveCq'>>;

export class VerbsQueuePair extends VerbsObject implements QueuePair {
  readonly type: QpType;
  readonly qpn: number;
  readonly sendRing: Ring;
  readonly receiveRing: Ring | undefined;
  eventHandler: QueuePairEventHandler;
  readonly attachMulticast?: (group: Gid, options?: MulticastOptions) => void;
  readonly detachMulticast?: (group: Gid) => void;
  private readonly words = new Uint32Array(ATTRIBUTE_WORDS);
  private readonly lines: string[] = [];
  /** The ERR state has been reported, or a move to it ordered. */
  private errorKnown = false;
  /** It went to RTR by `modify`; the queue pairs of iWARP are the kernel's to move. */
  private isMovedHere = false;
  private known: QpState = QpState.RESET;
  /** The queue where receives of a shared queue complete. */
  private readonly sharedCq: VerbsCompletionQueue | undefined;
  private readonly lastReceive: LastReceive | undefined;

  constructor(device: OpenDevice, init: Sizes, create: CreateQueuePair) {
    super(device, 'queue pair');
    checkInit(device, init);
    this.type = init.type;
    this.eventHandler = (event) => init.onEvent(event);
    this.sendRing = Ring.allocate(
      ringEntries(init.maxSendWr),
      sqeBytes(init.maxSendSge, init.maxInlineBytes),
    );
    this.receiveRing =
      init.srq === undefined && !isXrc(init.type)
        ? Ring.allocate(ringEntries(init.maxReceiveWr), rqeBytes(init.maxReceiveSge))
        : undefined;
    const { number, qpn } = create(this.sendRing, this.receiveRing);
    this.created(number);
    this.qpn = qpn;
    const { srq, receiveCq } = init;
    this.sharedCq = srq && receiveCq ? queueOf(device, receiveCq) : undefined;
    this.lastReceive = srq && this.makeLastReceive();
    device.events.queuePairs.set(this.number, this);
    if (device.capabilities.has('multicast')) {
      this.attachMulticast = (group, options) => {
        attachTo(device, this.datagrams(), group, init.blocksOwnMulticast === true, options);
      };
      this.detachMulticast = (group) => detachFrom(device, this.datagrams(), group);
    }
  }

  /**
   * Asked of the kernel, since errors and the CM change it too; a device that does not answer
   * leaves us with what we know.
   */
  get state(): QpState {
    if (this.destroyed) return QpState.RESET;
    const errno = this.device.addon.queryQp(this.number, QUERY_STATE, this.words);
    if (errno === 0) this.learn((this.words[0] ?? 0) as QpState);
    return this.known;
  }

  ringSendDoorbell(): void {
    const errno = this.device.addon.postSends(this.number);
    if (errno !== 0) throw deviceLost('ibv_post_send', errno);
  }

  ringReceiveDoorbell(): void {
    const errno = this.device.addon.postReceives(this.number);
    if (errno !== 0) throw deviceLost('ibv_post_recv', errno);
  }

  modify(attributes: QueuePairAttributes): void {
    const from = this.state;
    const to = checkQpTransition(this.type, from, attributes);
    const { device, words } = this;
    words.fill(0);
    const mask = writeAttributes(attributes, words, device, device.attributes.portNumber);
    const step = `${nameOf(QpState, from)}->${nameOf(QpState, to)}`;
    if (to === QpState.RESET) this.saveSharedReceives();
    const errno = device.addon.modifyQp(this.number, mask, words);
    this.record(errno === 0 ? step : `${step}: errno ${errno}`, attributes);
    if (errno === 0) this.moved(to);
    check('ibv_modify_qp', errno, `${nameOf(QpType, this.type)} ${step}`);
  }

  query(): Readonly<QueuePairAttributes> {
    check('ibv_query_qp', this.device.addon.queryQp(this.number, QUERY_ALL, this.words));
    return readAttributes(this.words, this.type, this.device);
  }

  /** Devices tell which PSN they expect next; our own requests complete. */
  lifeSign(): number {
    const errno = this.device.addon.queryQp(this.number, QUERY_ALL, this.words);
    return errno === 0 ? (readAttributes(this.words, this.type, this.device).receivePsn ?? 0) : 0;
  }

  deliver(type: AsyncEventType): void {
    if (ERRORS.has(type)) this.errorKnown = true;
    if (type === AsyncEventType.QP_LAST_WQE_REACHED && this.lastReceive?.arrived() === false)
      return;
    if (!this.destroyed) this.eventHandler(type);
  }

  flightRecord(): readonly string[] {
    return this.lines;
  }

  /**
   * Drivers drop the completions of a queue pair with it; those of a shared queue are wanted all
   * the same: they name the slots that are free.
   */
  private saveSharedReceives(): void {
    const queue = this.sharedCq;
    if (queue !== undefined && !queue.destroyed) this.device.addon.poll(queue.number);
  }

  protected release(number: number): [string, number] {
    this.saveSharedReceives();
    return ['ibv_destroy_qp', this.device.addon.destroyQp(number)];
  }

  protected override onDestroyed(number: number): void {
    this.sendRing.end();
    this.receiveRing?.end();
    this.lastReceive?.reset();
    this.device.events.queuePairs.delete(number);
  }

  private moved(to: QpState): void {
    this.errorKnown = to === QpState.ERR;
    if (to === QpState.RTR) this.isMovedHere = true;
    else if (to === QpState.RESET) this.isMovedHere = false;
    this.learn(to);
  }

  private learn(state: QpState): void {
    this.known = state;
    if (state === QpState.RESET) this.lastReceive?.reset();
    if (state !== QpState.ERR) return;
    this.noticeError();
    this.lastReceive?.expect();
  }

  private makeLastReceive(): LastReceive | undefined {
    const { time } = this.device;
    const tell = (): void => this.device.handle(() => this.tellLastReceive());
    return time && new LastReceive(time, tell);
  }

  private tellLastReceive(): void {
    if (!this.destroyed) this.eventHandler(AsyncEventType.QP_LAST_WQE_REACHED);
  }

  /**
   * Notices that the peer's requests have put it into ERR. The event for that is still queued
   * behind the one that made us look (the CM's event for the resulting disconnection), or never
   * comes (rxe has none).
   */
  private noticeError(): void {
    if (this.errorKnown || !this.isMovedHere || this.type === QpType.UD) return;
    this.errorKnown = true;
    this.device.handle(() => this.deliver(AsyncEventType.QP_FATAL));
  }

  /** @throws SpiError('EINVAL') */
  private datagrams(): number {
    if (this.type === QpType.UD) return this.number;
    throw new SpiError('EINVAL', 'only datagram queue pairs belong to groups');
  }

  private record(step: string, { receivePsn, sendPsn, timeout }: QueuePairAttributes): void {
    const facts = Object.entries({ receivePsn, sendPsn, timeout })
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => ` ${name}=${value}`);
    this.lines.push(step + facts.join(''));
    if (this.lines.length > RECORD_LINES) this.lines.shift();
  }
}

const ERRORS: ReadonlySet<AsyncEventType> = new Set([
  AsyncEventType.QP_FATAL,
  AsyncEventType.QP_REQ_ERR,
  AsyncEventType.QP_ACCESS_ERR,
]);

function deviceLost(call: string, errno: number): SpiError {
  return new SpiError('EIO', `the device takes no work: ${errnoError(call, errno).message}`);
}

const PLAIN: readonly QpType[] = [QpType.RC, QpType.UC, QpType.UD];

function isXrc(type: QpType): boolean {
  return type === QpType.XRC_INI || type === QpType.XRC_TGT;
}

function checkInit({ attributes, capabilities, name }: OpenDevice, init: Sizes): void {
  const { maxQueuePairWr, maxSge, maxInlineBytes } = attributes;
  if (!PLAIN.includes(init.type) && !(isXrc(init.type) && capabilities.has('xrc'))) {
    const type = nameOf(QpType, init.type);
    throw new SpiError('EOPNOTSUPP', `device ${name} has no queue pairs of type ${type}`);
  }
  const limits = [
    ['maxSendWr', maxQueuePairWr],
    ['maxReceiveWr', maxQueuePairWr],
    ['maxSendSge', maxSge],
    ['maxReceiveSge', maxSge],
    ['maxInlineBytes', maxInlineBytes],
    ['context', 0xffffffff],
  ] as const;
  for (const [name, max] of limits) {
    checkInteger(name, init[name], 0, max, einval);
  }
}

// Attaching datagram queue pairs to multicast groups; the addon makes the host a member too.

/**
 * @param blocks the queue pair was made to block its own copy, which holds for all groups
 * @throws SpiError: EINVAL (no group), ENETUNREACH (no address of that family), EOPNOTSUPP (the own
 * copy is wanted where it is blocked, or the other way round), of the call
 */
function attachTo(
  device: OpenDevice,
  qp: number,
  group: Gid,
  blocks: boolean,
  { loopback = !blocks, sendOnly = false }: MulticastOptions = {},
): void {
  const local = checked(device, group);
  if (sendOnly) return;
  if (loopback === blocks) {
    const why =
      'verbs block the own copies of a queue pair in all groups or in none, from its creation: ' +
      `create the endpoint with the attribute multicastLoopback ${loopback}`;
    throw new SpiError('EOPNOTSUPP', `${ipFromGid(group)} with loopback ${loopback}: ${why}`);
  }
  const netdev = netdevOf(device, local);
  check('ibv_attach_mcast', device.addon.multicast(qp, group, 1, netdev), ipFromGid(group));
}

/** @throws as `attachTo` */
function detachFrom(device: OpenDevice, qp: number, group: Gid): void {
  checked(device, group);
  check('ibv_detach_mcast', device.addon.multicast(qp, group, 0), ipFromGid(group));
}

/** Place in `gids` of the address that the group is joined at. */
function checked({ name, gids }: OpenDevice, group: Gid): number {
  if (!isMulticastGid(group)) {
    throw new SpiError('EINVAL', `${ipFromGid(group)} is not the address of a group`);
  }
  const isIpv4 = isIpv4Gid(group);
  const index = gids.findIndex((gid) => isIpv4Gid(gid) === isIpv4);
  if (index >= 0) return index;
  const family = isIpv4 ? 'IPv4' : 'IPv6';
  throw new SpiError('ENETUNREACH', `the port of ${name} has no ${family} address`);
}

/** RoCE: the interface that has the address. InfiniBand has none there. */
function netdevOf(device: OpenDevice, gidIndex: number): string | undefined {
  const { name, attributes } = device;
  const port = `/sys/class/infiniband/${name}/ports/${attributes.portNumber}`;
  const index = device.hardwareGidIndex(gidIndex);
  return textOf(`${port}/gid_attrs/ndevs/${index}`) || undefined;
}
