/** Reset, modify, free and queries of an endpoint. */
import { spiCall } from '../../errors/index.js';
import { keepProcessFor } from '../common/private-evd.js';
import { Symbolic } from '../common/trace.js';
import { modifiedInit, type ModifyOptions } from './modify.js';
import { type EndpointState, WATERMARK } from './endpoint-state.js';
import { ipFromGid } from '../../spi/index.js';
import { type Facts, hex } from '../../spi/checks/index.js';
import { connQualOf, serviceIdFor } from './connect-options.js';
import { EpState } from './states.js';
import type { EpParameters, EpReceives, EpStatus } from './types.js';
import { checkValue } from '../../errors/guards.js';

export function reset(record: EndpointState): void {
  const operation = record.begin('ep.reset');
  if (record.checkLegal(operation, 'reset') === 'no-op') return;
  const next = record.createQueues(record.init);
  record.takeInCompletions();
  record.connection.reset();
  spiCall({ operation }, () => record.events.retire(record.queues));
  record.queues = next;
}

export function modify(record: EndpointState, options: ModifyOptions): void {
  const operation = record.begin('ep.modify', fieldsOf(options));
  const { init } = record;
  const { next, rebuild } = modifiedInit(operation, options, record);
  const swap = record.events.prepare(next);
  if (rebuild) {
    try {
      const queues = record.createQueues(next);
      queues.takeReceives(record.queues);
      record.destroyQueues(operation, record.queues);
      record.queues = queues;
    } catch (error) {
      swap.abort();
      throw error;
    }
  }
  init.pz.users--;
  next.pz.users++;
  record.init = next;
  swap.commit();
  const soft = next.attributes.srqSoftHighWatermark;
  if (soft !== init.attributes.srqSoftHighWatermark)
    setWatermark(record, soft, record.watermarks?.hard ?? Infinity);
}

/** Names of the changed fields, for the trace: written before anything is checked. */
function fieldsOf(options: unknown): { readonly fields: Symbolic } {
  const given = typeof options === 'object' && options !== null ? Object.keys(options) : [];
  return { fields: new Symbolic(given.join('|')) };
}

export function destroy(record: EndpointState, by: string): void {
  const { init, core, ep } = record;
  record.destroyQueues(by, record.queues);
  record.freedBy = by;
  record.events.close();
  record.counts.free();
  init.pz.users--;
  if (init.srq !== undefined) init.srq.users--;
  core.forget(ep);
}

/** `ep.ref` and `ep.unref`. */
export function keepProcess({ connection, init }: EndpointState, wanted: boolean): void {
  connection.keepProcess(wanted);
  for (const evd of init.privateEvds) keepProcessFor(evd, wanted);
}

// Queries of an endpoint: parameters, status and receives; and its watermarks.

export function query(record: EndpointState): EpParameters {
  record.begin('ep.query');
  record.takeInCompletions();
  const { state, watermarks, queues } = record;
  const { pz, recvEvd, requestEvd, connectEvd, srq, attributes } = record.init;
  const { remoteGid, target, localPort } = record.connection;
  return {
    ia: record.core.ia,
    state,
    stateNumber: EpState[state],
    pz,
    recvEvd,
    requestEvd,
    connectEvd,
    srq,
    attributes,
    localAddress: record.core.ia.address,
    localPortQual: localPort,
    remoteAddress: remoteGid && ipFromGid(remoteGid),
    remoteConnQual: target && connQualOf(target.service),
    remoteServiceId: target && serviceIdFor(target.service),
    softWatermark: watermarks?.soft ?? Infinity,
    hardWatermark: watermarks?.hard ?? Infinity,
    qpn: queues.qp.qpn,
  };
}

export function getStatus(record: EndpointState): EpStatus {
  record.begin('ep.getStatus');
  record.takeInCompletions();
  return {
    state: record.state,
    recvIdle: (record.receiveBuffers ?? 0) === 0,
    requestIdle: record.queues.sends.free === record.attributes.maxRequestDtos,
  };
}

export function recvQuery(record: EndpointState): EpReceives {
  record.begin('ep.recvQuery');
  record.takeInCompletions();
  const { receiveBuffers } = record;
  return { buffersAllocated: receiveBuffers, bufferSpan: receiveBuffers };
}

export function setWatermark(record: EndpointState, soft: number, hard: number): void {
  const operation = record.begin('ep.setWatermark', { soft, hard });
  checkValue(operation, 'soft', soft, WATERMARK);
  checkValue(operation, 'hard', hard, WATERMARK);
  record.armWatermarks(soft, hard);
  record.takeInCompletions();
  record.watermarks?.look(record.receiveBuffers ?? 0);
}

/** Fields that an endpoint shows. */
export function epFacts({ ep, knownState: state, freedBy, queues }: EndpointState): Facts {
  const qpn = hex(queues.qp.qpn);
  return { id: ep.id, state, qpn, ...queues.facts(), freed: freedBy !== undefined };
}
