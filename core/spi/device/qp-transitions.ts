/**
 * The queue pair state machine as a table: the attributes that a transition requires and allows
 * (IBTA 11.2.5.2 table 91, as in Linux's `ib_modify_qp_is_ok`). Every provider checks `modify` with
 * it, so that EINVAL always names the missing, superfluous or wrong attribute.
 */
import type { QueuePairAttributes } from './device.js';
import { QpState, QpType, nameOf } from '../wire/ib.js';
import { SpiError } from '../errors/spi-error.js';

export type QueuePairAttribute = keyof QueuePairAttributes;

export interface QpTransition {
  readonly required: readonly QueuePairAttribute[];
  readonly optional: readonly QueuePairAttribute[];
}

type Attributes = readonly QueuePairAttribute[];
type Row = readonly [from: QpState, to: QpState, required: Attributes, optional: Attributes];

const { RESET, INIT, RTR, RTS, SQD, SQE, ERR } = QpState;
const none: Attributes = [];

const connectedInit: Attributes = ['pkeyIndex', 'portNumber', 'accessFlags'];
const datagramInit: Attributes = ['pkeyIndex', 'portNumber', 'qkey'];
const gsiInit: Attributes = ['pkeyIndex', 'qkey'];
const path: Attributes = ['addressVector', 'pathMtuBytes', 'destinationQpn', 'receivePsn'];
const responder: Attributes = ['maxDestRdAtomic', 'minRnrTimer'];
const requester: Attributes = ['timeout', 'retryCount', 'rnrRetryCount', 'maxRdAtomic'];
const access: Attributes = ['currentState', 'accessFlags'];
const accessAndRnr: Attributes = [...access, 'minRnrTimer'];
const notify: Attributes = ['enableSqdAsyncNotify'];
const movable: Attributes = ['addressVector', 'accessFlags', 'pkeyIndex'];

const RC: readonly Row[] = [
  [RESET, INIT, connectedInit, none],
  [INIT, INIT, none, connectedInit],
  [INIT, RTR, [...path, ...responder], ['accessFlags', 'pkeyIndex']],
  [RTR, RTS, ['sendPsn', ...requester], accessAndRnr],
  [RTS, RTS, none, accessAndRnr],
  [RTS, SQD, none, notify],
  [SQD, RTS, none, accessAndRnr],
  [SQD, SQD, none, [...movable, ...requester, ...responder, 'portNumber']],
  [SQE, RTS, none, none],
];

const UC: readonly Row[] = [
  [RESET, INIT, connectedInit, none],
  [INIT, INIT, none, connectedInit],
  [INIT, RTR, path, ['accessFlags', 'pkeyIndex']],
  [RTR, RTS, ['sendPsn'], access],
  [RTS, RTS, none, access],
  [RTS, SQD, none, notify],
  [SQD, RTS, none, access],
  [SQD, SQD, none, movable],
  [SQE, RTS, none, access],
];

const datagram = (init: Attributes): readonly Row[] => [
  [RESET, INIT, init, none],
  [INIT, INIT, none, init],
  [INIT, RTR, none, ['pkeyIndex', 'qkey']],
  [RTR, RTS, ['sendPsn'], ['currentState', 'qkey']],
  [RTS, RTS, none, ['currentState', 'qkey']],
  [RTS, SQD, none, notify],
  [SQD, RTS, none, ['currentState', 'qkey']],
  [SQD, SQD, none, ['pkeyIndex', 'qkey']],
  [SQE, RTS, none, ['currentState', 'qkey']],
];

const XRC_INI: readonly Row[] = [
  [RESET, INIT, connectedInit, none],
  [INIT, INIT, none, connectedInit],
  [INIT, RTR, path, ['accessFlags', 'pkeyIndex']],
  [RTR, RTS, ['sendPsn', ...requester], access],
  [RTS, RTS, none, access],
  [RTS, SQD, none, notify],
  [SQD, RTS, none, access],
  [SQD, SQD, none, [...movable, ...requester, 'portNumber']],
];

const XRC_TGT: readonly Row[] = [
  [RESET, INIT, connectedInit, none],
  [INIT, INIT, none, connectedInit],
  [INIT, RTR, [...path, ...responder], ['accessFlags', 'pkeyIndex']],
  [RTR, RTS, ['sendPsn', 'timeout'], accessAndRnr],
  [RTS, RTS, none, accessAndRnr],
  [RTS, SQD, none, notify],
  [SQD, RTS, none, accessAndRnr],
  [SQD, SQD, none, [...movable, ...responder, 'timeout', 'portNumber']],
];

const TABLE: Readonly<Record<QpType, readonly Row[]>> = {
  [QpType.GSI]: datagram(gsiInit),
  [QpType.RC]: RC,
  [QpType.UC]: UC,
  [QpType.UD]: datagram(datagramInit),
  [QpType.XRC_INI]: XRC_INI,
  [QpType.XRC_TGT]: XRC_TGT,
};

const bare: QpTransition = { required: none, optional: none };

/** Attributes that a transition requires and allows; undefined when there is no such transition. */
export function qpTransition(type: QpType, from: QpState, to: QpState): QpTransition | undefined {
  if (to === RESET || (to === ERR && from !== RESET)) return bare;
  const row = TABLE[type].find(([rowFrom, rowTo]) => rowFrom === from && rowTo === to);
  return row && { required: row[2], optional: row[3] };
}

/**
 * Checks that `attributes` make a legal transition from state `from`; values are the provider's to
 * check. Without `state` the queue pair stays in its state.
 * @returns the state that the queue pair goes to
 * @throws SpiError('EINVAL') that names the attribute and the transition
 */
export function checkQpTransition(
  type: QpType,
  from: QpState,
  attributes: QueuePairAttributes,
): QpState {
  const to = attributes.state ?? from;
  const name = `${nameOf(QpType, type)} ${nameOf(QpState, from)}->${nameOf(QpState, to)}`;
  const transition = qpTransition(type, from, to);
  if (!transition) throw new SpiError('EINVAL', `${name}: there is no such transition`);
  if (attributes.currentState !== undefined && attributes.currentState !== from) {
    throw new SpiError(
      'EINVAL',
      `${name}: currentState says ${nameOf(QpState, attributes.currentState)}`,
    );
  }
  const given = (Object.keys(attributes) as QueuePairAttribute[]).filter(
    (attribute) => attribute !== 'state' && attributes[attribute] !== undefined,
  );
  const missing = transition.required.filter((attribute) => !given.includes(attribute));
  if (missing.length > 0) throw new SpiError('EINVAL', `${name}: ${missing.join(', ')} missing`);
  const extra = given.filter(
    (attribute) =>
      !transition.required.includes(attribute) && !transition.optional.includes(attribute),
  );
  if (extra.length > 0) throw new SpiError('EINVAL', `${name}: takes no ${extra.join(', ')}`);
  return to;
}
