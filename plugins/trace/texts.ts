/** Texts of the trace entries. */
import {
  AsyncEventType,
  type CmConnectOptions,
  type CmEvent,
  type CmListenOptions,
  type CmRejectOptions,
  type CmRequest,
  ipFromGid,
  nameOf,
  QpState,
  WcStatus,
  WrOpcode,
} from '../../core/spi/index.js';
import type { ObservedCompletion, PostedRequest } from '../../core/spi/decorators/index.js';

const hexOf = (id: bigint): string => `0x${id.toString(16)}`;

export function listenText({ serviceId, onRequest }: CmListenOptions): string {
  return `listen on service ${hexOf(serviceId)}${onRequest ? '' : ' for datagrams'}`;
}

export function connectText({ qp, remoteGid, serviceId }: CmConnectOptions): string {
  return `qp ${qp.qpn} connect to ${ipFromGid(remoteGid)}, service ${hexOf(serviceId)}`;
}

export function requestedText({ remoteGid, remoteQpn, serviceId }: CmRequest): string {
  const from = `${ipFromGid(remoteGid)} qp ${remoteQpn}`;
  return `connection request of ${from} for service ${hexOf(serviceId)}`;
}

export function acceptText(qpn: number): string {
  return `qp ${qpn} accept`;
}

export function rejectText({ reason }: CmRejectOptions): string {
  return `reject, reason ${reason}`;
}

export function eventText(qpn: number, event: CmEvent): string {
  const why = 'detail' in event ? event.detail : 'failure' in event ? event.failure : undefined;
  const detail = why === undefined ? '' : `: ${why}`;
  const reason = event.type === 'rejected' ? `, reason ${event.reason}` : '';
  const peer = event.type === 'disconnected' && event.byPeer ? ' by the peer' : '';
  return `qp ${qpn} ${event.type}${reason}${peer}${detail}`;
}

export function stateText(qpn: number, state: QpState): string {
  return `qp ${qpn} to ${nameOf(QpState, state)}`;
}

export function qpEventText(qpn: number, event: AsyncEventType): string {
  return `qp ${qpn} event ${nameOf(AsyncEventType, event)}`;
}

export function requestText(request: PostedRequest): string {
  const { opcode, lengthBytes, signalled } = request;
  const what = opcode === undefined ? '' : `${nameOf(WrOpcode, opcode)}, `;
  return `${queueOf(request)}: ${what}${lengthBytes} bytes${signalled ? '' : ', unsignalled'}`;
}

export function completionText(completion: ObservedCompletion): string {
  const { status, lengthBytes, tookUs } = completion;
  const took = tookUs === undefined ? '' : ` after ${tookUs.toFixed(1)} us`;
  const bytes = status === WcStatus.SUCCESS ? `, ${lengthBytes} bytes` : '';
  return `${queueOf(completion)}: ${nameOf(WcStatus, status)}${bytes}${took}`;
}

function queueOf({ kind, qpn, srqn, index }: PostedRequest | ObservedCompletion): string {
  const owner = srqn === 0 ? `qp ${qpn}` : `srq ${srqn}`;
  return `${owner} ${kind} ${index}`;
}
