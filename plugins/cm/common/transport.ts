/**
 * Differences between the transports of a REQ, as a table. With XRC an initiator sends the REQ and
 * a target answers; the target's number goes in REP's EE context field (IBTA annex A14).
 */
import { nameOf, QpState, QpType, type QueuePair, SpiError } from '../../../core/spi/index.js';
import type { CmRep } from '../wire/rep.js';
import { type CmReq, EXTENDED_TRANSPORT, TRANSPORT_SERVICE } from '../wire/req.js';

export type CmTransport = 'rc' | 'xrc';

interface Row {
  /** Queue pair types of the active and the passive side. */
  readonly active: QpType;
  readonly passive: QpType;
  /** REQ's transport service type, and its extension. */
  readonly service: number;
  readonly extended: number;
}

const TABLE: Readonly<Record<CmTransport, Row>> = {
  rc: {
    active: QpType.RC,
    passive: QpType.RC,
    service: TRANSPORT_SERVICE.rc,
    extended: EXTENDED_TRANSPORT.none,
  },
  xrc: {
    active: QpType.XRC_INI,
    passive: QpType.XRC_TGT,
    service: TRANSPORT_SERVICE.extended,
    extended: EXTENDED_TRANSPORT.xrc,
  },
};
const TRANSPORTS = Object.keys(TABLE) as CmTransport[];

/** Fields of a REQ that depend on the active side's queue pair. */
export type TransportFields = Pick<
  CmReq,
  | 'transportServiceType'
  | 'extendedTransportType'
  | 'responderResources'
  | 'retryCount'
  | 'rnrRetryCount'
  | 'srq'
>;

/** @throws SpiError('EINVAL') if a queue pair of that type cannot send a REQ */
export function transportOfAsker(qp: QueuePair): CmTransport {
  const found = TRANSPORTS.find((transport) => TABLE[transport].active === qp.type);
  if (found) return found;
  throw wrongType(qp, 'RC or XRC_INI');
}

/** @throws SpiError('EINVAL') if the queue pair cannot answer a request of that transport */
export function checkAnswerer(qp: QueuePair, transport: CmTransport): void {
  const { passive } = TABLE[transport];
  if (qp.type !== passive) throw wrongType(qp, nameOf(QpType, passive));
}

/** @throws SpiError('EINVAL') unless the queue pair is in INIT */
export function checkConnectable(qp: QueuePair): void {
  if (qp.state !== QpState.INIT) {
    throw new SpiError(
      'EINVAL',
      `queue pair ${qp.qpn} is ${nameOf(QpState, qp.state)}: must be INIT`,
    );
  }
}

/** The transport of a REQ; undefined unless that is RC or XRC. */
export function transportOf(req: CmReq): CmTransport | undefined {
  return TRANSPORTS.find(
    (transport) =>
      TABLE[transport].service === req.transportServiceType &&
      TABLE[transport].extended === req.extendedTransportType,
  );
}

/** An XRC initiator serves no reads or receives, so those fields are 0, as in Linux. */
export function transportFields(
  transport: CmTransport,
  own: Omit<TransportFields, 'transportServiceType' | 'extendedTransportType'>,
): TransportFields {
  const { service, extended } = TABLE[transport];
  const fields = { transportServiceType: service, extendedTransportType: extended };
  if (transport === 'rc') return { ...own, ...fields };
  return { ...fields, responderResources: 0, retryCount: 0, rnrRetryCount: 0, srq: 0 };
}

/** The REP fields that name the passive side's queue pair. A target receives from SRQs only. */
export function answererFields(
  transport: CmTransport,
  { qpn, receiveRing }: QueuePair,
): Pick<CmRep, 'localQpn' | 'localEecn' | 'srq'> {
  if (transport === 'xrc') return { localQpn: 0, localEecn: qpn, srq: 1 };
  return { localQpn: qpn, localEecn: 0, srq: receiveRing ? 0 : 1 };
}

export function answererQpn(transport: CmTransport, rep: CmRep): number {
  return transport === 'xrc' ? rep.localEecn : rep.localQpn;
}

function wrongType(qp: QueuePair, expected: string): SpiError {
  const type = nameOf(QpType, qp.type);
  return new SpiError('EINVAL', `a queue pair of type ${type}: must be ${expected}`);
}
