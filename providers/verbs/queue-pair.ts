/** Send and receive rings over ibv_post_send and ibv_post_recv. */
import {
  type AsyncEventType,
  type Gid,
  QpState,
  QpType,
  type QueuePair,
  type QueuePairAttributes,
  type QueuePairEventHandler,
  type QueuePairInit,
  Ring,
  SpiError,
  checkQpTransition,
  ipFromGid,
  isIpv4Gid,
  isMulticastGid,
  nameOf,
  ringEntries,
  rqeBytes,
  sqeBytes,
} from '../../core/spi/index.js';
import { ATTRIBUTE_WORDS, readAttributes, writeAttributes } from './attribute-words.js';
import { VerbsCompletionQueue, ringArguments } from './completion-queue.js';
import type { VerbsDevice } from './device.js';
import { check, errnoError, made } from './errno.js';
import { VerbsSharedReceiveQueue } from './shared-receive-queue.js';
import { VerbsObject } from './verbs-object.js';

/** Everything that a query can tell; drivers give what they have. */
const QUERY_ALL = 0x1fffff;
const QUERY_STATE = 1;
const RECORD_LINES = 64;

export class VerbsQueuePair extends VerbsObject implements QueuePair {
  readonly type: QpType;
  readonly qpn: number;
  readonly sendRing: Ring;
  readonly receiveRing: Ring | undefined;
  eventHandler: QueuePairEventHandler;
  readonly attachMulticast?: (group: Gid) => void;
  readonly detachMulticast?: (group: Gid) => void;
  private readonly words = new Uint32Array(ATTRIBUTE_WORDS);
  private readonly lines: string[] = [];
  /** Where receives of a shared queue complete. */
  private readonly sharedCq: VerbsCompletionQueue | undefined;

  constructor(device: VerbsDevice, init: QueuePairInit) {
    super(device, 'queue pair');
    checkInit(device, init);
    this.type = init.type;
    this.eventHandler = (event) => init.onEvent(event);
    this.sendRing = Ring.allocate(
      ringEntries(init.maxSendWr),
      sqeBytes(init.maxSendSge, init.maxInlineBytes),
    );
    this.receiveRing =
      init.srq === undefined
        ? Ring.allocate(ringEntries(init.maxReceiveWr), rqeBytes(init.maxReceiveSge))
        : undefined;
    const out = new Uint32Array(1);
    const number = device.addon.createQp(
      device.domainOf(init.pd).number,
      queueOf(device, init.sendCq).number,
      queueOf(device, init.receiveCq).number,
      init.srq === undefined ? 0 : sharedOf(device, init.srq).number,
      init.type,
      Math.max(1, init.maxSendWr),
      init.srq === undefined ? Math.max(1, init.maxReceiveWr) : 0,
      Math.max(1, init.maxSendSge),
      init.srq === undefined ? Math.max(1, init.maxReceiveSge) : 0,
      init.maxInlineBytes,
      init.context,
      out,
      ...ringArguments(this.sendRing),
      ...(this.receiveRing ? ringArguments(this.receiveRing) : NO_RING),
    );
    this.created(made('ibv_create_qp', number, sizesOf(init)));
    this.qpn = out[0] ?? 0;
    this.sharedCq = init.srq === undefined ? undefined : queueOf(device, init.receiveCq);
    device.events.queuePairs.set(this.number, this);
    if (device.capabilities.has('multicast')) {
      this.attachMulticast = (group) => this.multicast('ibv_attach_mcast', group, 1);
      this.detachMulticast = (group) => this.multicast('ibv_detach_mcast', group, 0);
    }
  }

  /** Asked of the kernel, since errors and the CM change it too. */
  get state(): QpState {
    if (this.destroyed) return QpState.RESET;
    this.ask(QUERY_STATE);
    return (this.words[0] ?? 0) as QpState;
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
    check('ibv_modify_qp', errno, `${nameOf(QpType, this.type)} ${step}`);
  }

  query(): Readonly<QueuePairAttributes> {
    this.ask(QUERY_ALL);
    return readAttributes(this.words, this.type, this.device);
  }

  deliver(type: AsyncEventType): void {
    if (!this.destroyed) this.eventHandler(type);
  }

  flightRecord(): readonly string[] {
    return this.lines;
  }

  /**
   * Drivers drop the completions of a queue pair with it; those of a shared queue are wanted all the
   * same: they name the slots that are free.
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
    this.device.events.queuePairs.delete(number);
  }

  private ask(mask: number): void {
    const errno = this.device.addon.queryQp(this.number, mask, this.words);
    check('ibv_query_qp', errno);
  }

  private multicast(call: string, group: Gid, attach: 0 | 1): void {
    if (this.type !== QpType.UD) {
      throw new SpiError('EINVAL', 'only datagram queue pairs belong to groups');
    }
    if (!isMulticastGid(group)) {
      throw new SpiError('EINVAL', `${ipFromGid(group)} is not the address of a group`);
    }
    const isIpv4 = isIpv4Gid(group);
    if (!this.device.gids.some((gid) => isIpv4Gid(gid) === isIpv4)) {
      const family = isIpv4 ? 'IPv4' : 'IPv6';
      throw new SpiError('ENETUNREACH', `the port of ${this.device.name} has no ${family} address`);
    }
    check(call, this.device.addon.multicast(this.number, group, attach), ipFromGid(group));
  }

  private record(step: string, { receivePsn, sendPsn, timeout }: QueuePairAttributes): void {
    const facts = Object.entries({ receivePsn, sendPsn, timeout })
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => ` ${name}=${value}`);
    this.lines.push(step + facts.join(''));
    if (this.lines.length > RECORD_LINES) this.lines.shift();
  }
}

const NO_RING = [undefined, undefined, undefined] as const;

function deviceLost(call: string, errno: number): SpiError {
  return new SpiError('EIO', `the device takes no work: ${errnoError(call, errno).message}`);
}

function queueOf(device: VerbsDevice, cq: QueuePairInit['sendCq']): VerbsCompletionQueue {
  if (!(cq instanceof VerbsCompletionQueue)) {
    throw new SpiError('EINVAL', 'the completion queue is of another provider');
  }
  cq.checkUsable(device);
  return cq;
}

function sharedOf(
  device: VerbsDevice,
  srq: NonNullable<QueuePairInit['srq']>,
): VerbsSharedReceiveQueue {
  if (!(srq instanceof VerbsSharedReceiveQueue)) {
    throw new SpiError('EINVAL', 'the shared receive queue is of another provider');
  }
  srq.checkUsable(device);
  return srq;
}

function sizesOf(init: QueuePairInit): string {
  const { type, maxSendWr, maxReceiveWr, maxSendSge, maxReceiveSge, maxInlineBytes } = init;
  return (
    `${nameOf(QpType, type)}, ${maxSendWr} sends of ${maxSendSge} segments, ` +
    `${maxReceiveWr} receives of ${maxReceiveSge}, ${maxInlineBytes} bytes inline`
  );
}

function checkInit(device: VerbsDevice, init: QueuePairInit): void {
  const { maxQueuePairWr, maxSge, maxInlineBytes } = device.attributes;
  if (init.type !== QpType.RC && init.type !== QpType.UC && init.type !== QpType.UD) {
    throw new SpiError('EOPNOTSUPP', `queue pair type ${nameOf(QpType, init.type)}`);
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
    const value = init[name];
    if (Number.isInteger(value) && value >= 0 && value <= max) continue;
    throw new SpiError('EINVAL', `${name} ${value}: 0 to ${max}`);
  }
}
