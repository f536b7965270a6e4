/** Queue pairs in the addon: by ibv_create_qp, and those of XRC by the calls that they have. */
import { nameOf, QpType, type QueuePairInit, type Ring } from '../../../core/spi/index.js';
import { ringArguments } from './completion-queue.js';
import type { OpenDevice } from './open-device.js';
import { made } from '../system/errno.js';
import { domainOf, ofDevice, queueOf, xrcDomainOf } from './parents.js';
import { VerbsSharedReceiveQueue } from './shared-receive-queue.js';

/** Words of the record of one that is to be made (native/queues/qp_record.h). */
const WORDS = [
  'pd',
  'sendCq',
  'receiveCq',
  'srq',
  'type',
  'maxSendWr',
  'maxReceiveWr',
  'maxSendSge',
  'maxReceiveSge',
  'maxInlineBytes',
  'context',
  'createFlags',
  'qpn',
] as const;
type Parts = Readonly<Partial<Record<(typeof WORDS)[number], number>>>;

/** The queue pair made by the addon. */
export interface MadeQueuePair {
  readonly number: number;
  readonly qpn: number;
}

/** Makes one with these rings. */
export type CreateQueuePair = (sendRing: Ring, receiveRing: Ring | undefined) => MadeQueuePair;

/** Attributes that only an opened target has. */
export const OPENED_TARGET = {
  type: QpType.XRC_TGT,
  maxSendWr: 0,
  maxReceiveWr: 0,
  maxSendSge: 0,
  maxReceiveSge: 0,
  maxInlineBytes: 0,
  context: 0,
} as const;

/** IBV_QP_CREATE_BLOCK_SELF_MCAST_LB. */
const BLOCK_OWN_MULTICAST = 1 << 1;
const NO_RING = [undefined, undefined, undefined] as const;

/** @throws SpiError of what it is made from, or of the call */
export function creatorOf(device: OpenDevice, init: QueuePairInit): CreateQueuePair {
  const how = { [QpType.XRC_INI]: initiator, [QpType.XRC_TGT]: target }[init.type as number];
  return (sendRing, receiveRing) => (how ?? plain)(device, init, sendRing, receiveRing);
}

/** Opens a queue pair that another process has made. */
export function openerOf(
  { device, number }: { readonly device: OpenDevice; readonly number: number },
  qpn: number,
): CreateQueuePair {
  return () => {
    const out = new Uint32Array(1);
    const opened = device.addon.openXrcTarget(number, qpn, out);
    return madeOf('ibv_open_qp', opened, `target ${qpn}`, out);
  };
}

function plain(
  device: OpenDevice,
  init: QueuePairInit,
  sendRing: Ring,
  receiveRing: Ring | undefined,
): MadeQueuePair {
  const record = recordOf({
    ...sendingPartsOf(device, init),
    receiveCq: queueOf(device, init.receiveCq).number,
    ...receivingPartsOf(device, init),
    createFlags: init.blocksOwnMulticast === true ? BLOCK_OWN_MULTICAST : 0,
  });
  const receives = receiveRing ? ringArguments(receiveRing) : NO_RING;
  const number = device.addon.createQp(record, ...ringArguments(sendRing), ...receives);
  if (init.blocksOwnMulticast !== true)
    return madeOf('ibv_create_qp', number, sizesOf(init), record);
  const flag = `${sizesOf(init)}, with IBV_QP_CREATE_BLOCK_SELF_MCAST_LB`;
  return madeOf('ibv_create_qp_ex', number, flag, record);
}

function initiator(device: OpenDevice, init: QueuePairInit, sendRing: Ring): MadeQueuePair {
  xrcDomainOf(device, init.xrcDomain);
  const record = recordOf(sendingPartsOf(device, init));
  const number = device.addon.createXrcInitiator(record, ...ringArguments(sendRing));
  return madeOf('ibv_create_qp_ex', number, sizesOf(init), record);
}

/** Makes a target. It has no queues and no protection domain: those of the named queue count. */
function target(device: OpenDevice, init: QueuePairInit): MadeQueuePair {
  const out = new Uint32Array(1);
  const number = device.addon.createXrcTarget(xrcDomainOf(device, init.xrcDomain).number, out);
  return madeOf('ibv_create_qp_ex', number, 'XRC_TGT', out);
}

function sendingPartsOf(device: OpenDevice, init: QueuePairInit): Parts {
  return {
    pd: domainOf(device, init.pd).number,
    sendCq: queueOf(device, init.sendCq).number,
    type: init.type,
    maxSendWr: Math.max(1, init.maxSendWr),
    maxSendSge: Math.max(1, init.maxSendSge),
    maxInlineBytes: init.maxInlineBytes,
    context: init.context,
  };
}

function receivingPartsOf(device: OpenDevice, init: QueuePairInit): Parts {
  const { srq, maxReceiveWr, maxReceiveSge } = init;
  return srq === undefined
    ? { maxReceiveWr: Math.max(1, maxReceiveWr), maxReceiveSge: Math.max(1, maxReceiveSge) }
    : { srq: ofDevice(device, srq, 'shared receive queue', VerbsSharedReceiveQueue).number };
}

function recordOf(parts: Parts): Uint32Array {
  return Uint32Array.from(WORDS, (name) => parts[name] ?? 0);
}

/** @param record its last word is the queue pair number, which the addon has written */
function madeOf(call: string, number: number, detail: string, record: Uint32Array): MadeQueuePair {
  return { number: made(call, number, detail), qpn: record.at(-1) ?? 0 };
}

function sizesOf(init: QueuePairInit): string {
  const { type, maxSendWr, maxReceiveWr, maxSendSge, maxReceiveSge, maxInlineBytes } = init;
  return (
    `${nameOf(QpType, type)}, ${maxSendWr} sends of ${maxSendSge} segments, ` +
    `${maxReceiveWr} receives of ${maxReceiveSge}, ${maxInlineBytes} bytes inline`
  );
}
