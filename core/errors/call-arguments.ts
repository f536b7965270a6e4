/** The arguments of each call by position: the n of DAT_INVALID_ARGn. */
import { assert } from '../spi/checks/index.js';
import type { DatSubtype } from './dat/codes.js';

const COUNTERS = ' . . *';
const EP_ATTRIBUTES = ' . . . attributes';
const LMR_OPTIONS = 'privileges vaType';

/**
 * Arguments in the order of DAT's prototypes, counted from 1; those of calls beyond DAT in the
 * order of the call. A call that extends one of DAT counts as that. `|` joins names of one
 * position, `*` stands for all other names, and `.` for a position that no check names.
 */
const ARGUMENTS: Readonly<Record<string, string>> = {
  openIa: 'name * . version . threadSafe',
  createRegistry: '*',
  localAddressToward: 'address',
  'registry.register': '. * . version . threadSafe',
  'registry.unregister': 'name kind',
  'registry.providersRelated': 'name|* . . version . threadSafe',
  createLogger: '*',

  'ia.close': 'ia flag *',
  'ia.counters': `ia${COUNTERS}`,
  'ia.createCno': 'ia *',
  'ia.createEvd': 'ia * handler streams|limit',
  'ia.createEndpoint': `ia pz|*${EP_ATTRIBUTES}`,
  'ia.createUdEndpoint': 'ia * . attributes',
  'ia.createPsp': 'ia connQual|serviceId|pz|* . flags|endpoint xrc attributes',
  'ia.createPspAny': 'ia pz * flags|endpoint xrc attributes',
  'ia.createRsp': 'ia *',
  'ia.createCsp': 'ia *',
  'ia.createSrq': 'ia * maxRecvDtos|maxRecvIov|lowWatermark',
  'ia.createLmr': `ia memory sharedAs . * ${LMR_OPTIONS}`,
  'ia.allocate': `lengthBytes memory shared|sharedAs . * ${LMR_OPTIONS}`,
  'ia.mapFile': `ia fd offsetBytes lengthBytes * ${LMR_OPTIONS}`,
  'ia.syncRdmaRead': 'ia segments',
  'ia.syncRdmaWrite': 'ia segments',
  'ia.memTypeHint': 'ia memType lengthBytes',
  'ia.mad.registerAgent': '*',
  'ia.openXrcDomain': '*',

  'ep.connect': 'ep address|* connQual|serviceId timeoutMs size privateData qos flags',
  'ep.commonConnect': 'ep address timeoutMs|* size privateData qos flags',
  'ep.dupConnect': 'ep connected timeoutMs|* size privateData qos flags',
  'ep.disconnect': 'ep flag',
  'ep.modify': 'ep field * . . attributes',
  'ep.setWatermark': 'ep soft hard',
  'ep.counters': `ep${COUNTERS}`,
  'ep.burst': 'work',
  'ep.postSend': 'ep count segments cookie flags',
  'ep.postSendWithInvalidate': 'ep count segments cookie flags invalidate rmrContext',
  'ep.postSendWithImmediate': 'ep count segments cookie immediate flags',
  'ep.postRecv': 'ep count segments cookie flags',
  'ep.postRdmaWrite': 'ep count segments cookie remote flags',
  'ep.postRdmaRead': 'ep count segments cookie remote flags',
  'ep.postRdmaReadToRmr': 'ep segments|count|sink cookie remote flags',
  'ep.postRdmaWriteWithImmediate': 'ep count segments cookie remote immediate flags',
  'ep.postFetchAdd': 'ep add segments|count cookie remote flags',
  'ep.postCompareSwap': 'ep compare swap segments|count cookie remote flags',
  'ep.postSendUd': 'ep count segments to cookie flags',
  'ep.postSendUdWithImmediate': 'ep count segments to cookie immediate flags',
  'ep.createAddressHandle': '*',
  'ep.joinMulticast': 'address *',
  'ep.leaveMulticast': 'address',
  'ep.resolve': '* . . . size privateData',
  'ep.serve': '* . size privateData',

  'cr.accept': 'cr ep size|* privateData',
  'cr.reject': 'cr size|* privateData',
  'cr.handoff': 'cr connQual|serviceId',
  'srq.postRecv': 'srq count segments cookie',
  'srq.resize': 'srq maxRecvDtos',
  'srq.setLowWatermark': 'srq lowWatermark',
  'srq.burst': 'work',
  'lmr.segment': 'offsetBytes lengthBytes',
  'rmr.bind': 'rmr lmr segment privileges|* vaType ep cookie flags',
  'rmr.unbind': 'rmr lmr segment privileges|* vaType ep cookie flags',
  RemoteSegment: 'remote',
  'remote.seek': 'offsetBytes',

  'evd.modifyUpcall': 'evd policy handler *',
  'evd.postSe': 'evd payload',
  'evd.resize': 'evd qlen',
  'evd.setPolling': 'evd polling',
  'evd.wait': 'evd * threshold',
  'evd.dequeueInto': 'batch max',
  'evd.counters': `evd${COUNTERS}`,
  'evd.drainUpcalls': 'evd . . upcall',
  'evd.free': 'evd * . upcall',
  EventBatch: 'capacity',
  'cno.wait': 'cno *',
  'cno.modifyAgent': 'cno agent',

  'agent.send': '* address',
  'agent.request': '* address',
  'request.respond': '*',
  'xrc.createInitiator': `* pz${EP_ATTRIBUTES}`,
  'xrc.createSrq': '* . maxRecvDtos|maxRecvIov|lowWatermark',
  'xrc.createTarget': 'attributes *',
  'xrc.modifyTarget': 'qpn attributes',
  'xrc.queryTarget': 'qpn',
  'xrc.registerTarget': 'qpn',
  'xrc.unregisterTarget': 'qpn',
  'xrc.accept': 'cr * size privateData . attributes',
  'initiator.toSrq': 'srqn',
  'initiator.attach': '* address',

  accepting: 'psp size|* privateData',
  completionOf: 'ep cookie',
  connected: 'ep',
  receives: 'ep *',
  states: 'ep',
  upcalls: 'evd * handler limit',
};

/** By call and name. */
const POSITIONS = new Map(
  Object.entries(ARGUMENTS).map(([operation, row]) => [
    operation,
    new Map(row.split(' ').flatMap((names, i) => names.split('|').map((name) => [name, i + 1]))),
  ]),
);

/**
 * DAT_INVALID_ARGn of an argument.
 * @param name of the argument, of an option, or of a part of one (`remote.address`)
 */
export function argumentSubtype(operation: string, name: string): DatSubtype {
  const call = POSITIONS.get(operation);
  const position = call?.get(name) ?? call?.get(name.split('.')[0]!) ?? call?.get('*');
  assert(position !== undefined, 'a call has the argument that is checked', `${operation} ${name}`);
  return `DAT_INVALID_ARG${position ?? 1}` as DatSubtype;
}
