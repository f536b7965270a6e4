/** Connect, accept and disconnect: the calls of this side. */
import { argumentSubtype } from '../../errors/call-arguments.js';
import { DatError, spiCall } from '../../errors/index.js';
import { type CmRequest, ipFromGid } from '../../spi/index.js';
import type { CloseFlag } from '../common/constants.js';
import { checkOneOf } from '../../errors/guards.js';
import { Symbolic, type TraceFields } from '../common/trace.js';
import { EP_ACCESS } from '../work/queues.js';
import {
  checkDupOptions,
  type CheckedConnectOptions,
  type DupConnectOptions,
  serviceIdFor,
} from './connect-options.js';
import { isRequestGone } from './states.js';
import type { EndpointState } from './endpoint-state.js';

/** Begins a call that connects. @throws DatError DAT_INVALID_STATE unless UNCONNECTED */
export function beginConnect(
  record: EndpointState,
  operation: string,
  fields: TraceFields,
): string {
  record.begin(operation, fields);
  record.checkLegal(operation, 'connect');
  return operation;
}

export function connect(
  record: EndpointState,
  operation: string,
  options: CheckedConnectOptions,
): void {
  const { remoteGid, service, privateData, timeoutUs } = options;
  const { ackTimeout, pathMtuBytes } = record.attributes.transport;
  const { cm } = record.core.context;
  spiCall({ operation, value: ipFromGid(remoteGid) }, () =>
    record.connection.connect(service, (onEvent) =>
      cm.connect({
        ...cmParameters(record),
        qp: record.queues.qp,
        remoteGid,
        serviceId: serviceIdFor(service),
        privateData,
        timeoutUs,
        ackTimeout,
        pathMtuBytes,
        onEvent,
      }),
    ),
  );
  record.counts.count('connect');
}

/** `ep.dupConnect`: to the target of another endpoint. */
export function connectLike(
  record: EndpointState,
  connected: EndpointState,
  options: DupConnectOptions,
): void {
  const operation = 'ep.dupConnect';
  const { ep, state } = connected;
  if (state !== 'CONNECTED') {
    throw new DatError('DAT_INVALID_STATE', {
      subtype: 'DAT_INVALID_STATE_EP_NOTREADY',
      operation,
      message: `endpoint ${ep.id}, to connect like, is ${state}`,
      hint: 'connect that one first, or call ep.connect() with an address',
      value: state,
    });
  }
  const { target } = connected.connection;
  if (target === undefined) {
    throw new DatError('DAT_INVALID_PARAMETER', {
      subtype: argumentSubtype(operation, 'connected'),
      operation,
      message: `endpoint ${ep.id} accepted its connection: its peer need not listen`,
      hint: 'use connect() with an address and a connection qualifier',
      value: ep,
    });
  }
  const rest = checkDupOptions(operation, options, target.service);
  connect(record, operation, { ...target, ...rest });
}

/** `cr.accept`. */
export function accept(record: EndpointState, request: CmRequest, privateData: Uint8Array): void {
  const own = cmParameters(record);
  const parameters = {
    ...own,
    responderResources: Math.min(own.responderResources, request.responderResources),
    initiatorDepth: Math.min(own.initiatorDepth, request.initiatorDepth),
    qp: record.queues.qp,
    privateData,
  };
  try {
    record.connection.accept((onEvent) => request.accept({ ...parameters, onEvent }));
  } catch (error) {
    if (!isRequestGone(error)) throw error;
    record.connection.acceptFailed('the peer gave up before it was answered');
  }
  record.counts.count('accept');
}

export function disconnect(record: EndpointState, flag: CloseFlag): void {
  const operation = record.begin('ep.disconnect', {
    flag: new Symbolic(typeof flag === 'string' ? flag : '?'),
  });
  checkOneOf(operation, 'flag', flag, ['abrupt', 'graceful']);
  const call = flag === 'graceful' ? 'disconnectGraceful' : 'disconnectAbrupt';
  if (record.checkLegal(operation, call) === 'no-op') return;
  record.counts.count('disconnect');
  record.connection.disconnect(flag === 'graceful');
}

function cmParameters({ attributes }: EndpointState): {
  responderResources: number;
  initiatorDepth: number;
  retryCount: number;
  rnrRetryCount: number;
  minRnrTimer: number;
  accessFlags: number;
} {
  const { maxRdmaReadIn, maxRdmaReadOut, transport } = attributes;
  const { retryCount, rnrRetryCount, minRnrTimer } = transport;
  return {
    responderResources: maxRdmaReadIn,
    initiatorDepth: maxRdmaReadOut,
    retryCount,
    rnrRetryCount,
    minRnrTimer,
    accessFlags: EP_ACCESS,
  };
}
