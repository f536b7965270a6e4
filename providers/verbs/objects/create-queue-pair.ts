/** Queue pairs in the addon: by ibv_create_qp, and those of XRC by the calls that they have. */
import { QpType, nameOf } from '../../../core/spi/index.js';
import type { QueuePairInit, Ring } from '../../../core/spi/index.js';
import { ringArguments } from './completion-queue.js';
import type { OpenDevice } from './open-device.js';
import { made } from '../system/errno.js';
import { domainOf, ofDevice, queueOf, xrcDomainOf } from './parents.js';
import { VerbsSharedReceiveQueue } from './shared-receive-queue.js';

/** Makes one with these rings and returns its number; its queue pair number goes to `out`. */
export type CreateQueuePair = (
  sendRing: Ring,
  receiveRing: Ring | undefined,
  out: Uint32Array,
) => number;

/** What a target has of its own. */
export const OPENED_TARGET = {
  type: QpType.XRC_TGT,
  maxSendWr: 0,
  maxReceiveWr: 0,
  maxSendSge: 0,
  maxReceiveSge: 0,
  maxInlineBytes: 0,
  context: 0,
} as const;

const NO_RING = [undefined, undefined, undefined] as const;
const NONE = 0;

/** @throws SpiError of what it is made from, or of the call */
export function creatorOf(device: OpenDevice, init: QueuePairInit): CreateQueuePair {
  const how = { [QpType.XRC_INI]: initiator, [QpType.XRC_TGT]: target }[init.type as number];
  return (how ?? plain)(device, init);
}

/** One that another process has made. */
export function openerOf(domain: { device: OpenDevice; number: number }, qpn: number) {
  return (_sendRing: Ring, _receiveRing: Ring | undefined, out: Uint32Array): number =>
    made(
      'ibv_open_qp',
      domain.device.addon.openXrcTarget(domain.number, qpn, out),
      `target ${qpn}`,
    );
}

function plain(device: OpenDevice, init: QueuePairInit): CreateQueuePair {
  const { srq } = init;
  const sharedOf = (given: object): VerbsSharedReceiveQueue =>
    ofDevice(device, given, 'shared receive queue', VerbsSharedReceiveQueue);
  return (sendRing, receiveRing, out) => {
    const number = device.addon.createQp(
      domainOf(device, init.pd).number,
      queueOf(device, init.sendCq).number,
      queueOf(device, init.receiveCq).number,
      srq === undefined ? NONE : sharedOf(srq).number,
      init.type,
      Math.max(1, init.maxSendWr),
      srq === undefined ? Math.max(1, init.maxReceiveWr) : 0,
      Math.max(1, init.maxSendSge),
      srq === undefined ? Math.max(1, init.maxReceiveSge) : 0,
      init.maxInlineBytes,
      init.context,
      out,
      ...ringArguments(sendRing),
      ...(receiveRing ? ringArguments(receiveRing) : NO_RING),
    );
    return made('ibv_create_qp', number, sizesOf(init));
  };
}

function initiator(device: OpenDevice, init: QueuePairInit): CreateQueuePair {
  return (sendRing, _receiveRing, out) => {
    xrcDomainOf(device, init.xrcDomain);
    const number = device.addon.createXrcInitiator(
      domainOf(device, init.pd).number,
      queueOf(device, init.sendCq).number,
      Math.max(1, init.maxSendWr),
      Math.max(1, init.maxSendSge),
      init.maxInlineBytes,
      init.context,
      out,
      ...ringArguments(sendRing),
    );
    return made('ibv_create_qp_ex', number, sizesOf(init));
  };
}

/** It has neither queues nor a protection domain: those of the queue that is named count. */
function target(device: OpenDevice, init: QueuePairInit): CreateQueuePair {
  return (_sendRing, _receiveRing, out) => {
    const domain = xrcDomainOf(device, init.xrcDomain);
    return made('ibv_create_qp_ex', device.addon.createXrcTarget(domain.number, out), 'XRC_TGT');
  };
}

function sizesOf(init: QueuePairInit): string {
  const { type, maxSendWr, maxReceiveWr, maxSendSge, maxReceiveSge, maxInlineBytes } = init;
  return (
    `${nameOf(QpType, type)}, ${maxSendWr} sends of ${maxSendSge} segments, ` +
    `${maxReceiveWr} receives of ${maxReceiveSge}, ${maxInlineBytes} bytes inline`
  );
}
