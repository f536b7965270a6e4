/** Creates the queue pair of an endpoint: plain, on a shared receive queue, or an initiator. */
import { Access, QpState, QpType, type QueuePair } from '../../spi/index.js';
import { ownRequests, sendIov } from './attributes.js';
import type { EpQueuesInit } from './queues.js';

/** Operations that peers may use on the queue pair; each memory region decides what they reach. */
export const EP_ACCESS =
  Access.LOCAL_WRITE | Access.REMOTE_WRITE | Access.REMOTE_READ | Access.REMOTE_ATOMIC;

/**
 * Creates it and takes it to INIT.
 * @throws SpiError
 */
export function endpointQueuePair(init: EpQueuesInit, context: number): QueuePair {
  const { device, attributes, pd, requestCq, recvCq, srq, xrc, onQueuePairEvent } = init;
  const sending = {
    pd,
    sendCq: requestCq,
    // The marker that ends the queue takes the last entry, and a keep-alive's probe the one before.
    maxSendWr: attributes.maxRequestDtos + ownRequests(attributes),
    maxSendSge: sendIov(attributes),
    maxInlineBytes: 0,
    context,
    onEvent: onQueuePairEvent,
  };
  const qp =
    xrc?.createInitiator(sending) ??
    device.createQueuePair({
      ...sending,
      type: QpType.RC,
      receiveCq: recvCq,
      ...(srq !== undefined && { srq: srq.queue }),
      maxReceiveWr: attributes.maxRecvDtos,
      maxReceiveSge: attributes.maxRecvIov,
    });
  const { portNumber } = device.attributes;
  try {
    qp.modify({ state: QpState.INIT, pkeyIndex: 0, portNumber, accessFlags: EP_ACCESS });
  } catch (error) {
    qp.destroy();
    throw error;
  }
  return qp;
}
