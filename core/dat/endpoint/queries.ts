/** Queries of an endpoint: parameters, status and receives; and its watermarks. */
import { ipFromGid } from '../../spi/index.js';
import { type Facts, hex } from '../../spi/checks/index.js';
import { type EpRecord, WATERMARK } from './endpoint-state.js';
import { connQualOf, serviceIdFor } from './connect-options.js';
import { EpState } from './states.js';
import type { EpParameters, EpReceives, EpStatus } from './types.js';
import { checkValue } from '../../errors/guards.js';

export function query(record: EpRecord): EpParameters {
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

export function getStatus(record: EpRecord): EpStatus {
  record.begin('ep.getStatus');
  record.takeInCompletions();
  return {
    state: record.state,
    recvIdle: (record.receiveBuffers ?? 0) === 0,
    requestIdle: record.queues.sends.free === record.attributes.maxRequestDtos,
  };
}

export function recvQuery(record: EpRecord): EpReceives {
  record.begin('ep.recvQuery');
  record.takeInCompletions();
  const { receiveBuffers } = record;
  return { buffersAllocated: receiveBuffers, bufferSpan: receiveBuffers };
}

export function setWatermark(record: EpRecord, soft: number, hard: number): void {
  const operation = record.begin('ep.setWatermark', { soft, hard });
  checkValue(operation, 'soft', soft, WATERMARK);
  checkValue(operation, 'hard', hard, WATERMARK);
  record.armWatermarks(soft, hard);
  record.takeInCompletions();
  record.watermarks?.look(record.receiveBuffers ?? 0);
}

/** Fields that an endpoint shows. */
export function epFacts({ ep, knownState: state, freedBy, queues }: EpRecord): Facts {
  const qpn = hex(queues.qp.qpn);
  return { id: ep.id, state, qpn, ...queues.facts(), freed: freedBy !== undefined };
}
