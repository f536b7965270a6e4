/** dat_ep_modify up to the first change: computes the endpoint's new parameters. */
import { argumentSubtype } from '../../errors/call-arguments.js';
import { checkOptions, invalid } from '../../errors/guards.js';
import { DatError } from '../../errors/index.js';
import type { Evd } from '../../evd/index.js';
import { checkHandle } from '../common/handle.js';
import type { EvdUse } from '../common/private-evd.js';
import { Pz } from '../memory/pz.js';
import type { EpQueues } from '../work/queues.js';
import {
  checkCompletionModel,
  type EpAttributeOptions,
  epAttributes,
  type EpAttributes,
} from './attributes.js';
import type { EndpointState } from './endpoint-state.js';
import type { EpCall } from './states.js';
import type { EpInit } from './types.js';

// The fields that `ep.modify` may change (dat_ep_modify): the column of the state table that
// decides when, or `never`; and whether the queue pair has to be created again.

/** When a field may be changed. */
export type Modifiable = Extract<EpCall, `modify${string}`> | 'never';

interface FieldRule {
  readonly when: Modifiable;
  /** The queue pair depends on it. */
  readonly rebuilds: boolean;
}

const inQueuePair = { when: 'modifyAttributes', rebuilds: true } as const;
const ours = { when: 'modifyAttributes', rebuilds: false } as const;
const never = { when: 'never', rebuilds: false } as const;

/** Fields of `ep.query()`. `attributes` are in a table of their own. */
export const EP_FIELDS = {
  pz: { when: 'modifyPz', rebuilds: true },
  recvEvd: inQueuePair,
  requestEvd: inQueuePair,
  connectEvd: ours,
  ia: never,
  state: never,
  stateNumber: never,
  /** A shared receive queue cannot be removed from an endpoint. */
  srq: never,
  localAddress: never,
  remoteAddress: never,
  remoteConnQual: never,
  softWatermark: never,
  hardWatermark: never,
  qpn: never,
} as const satisfies Readonly<Record<string, FieldRule>>;

export const EP_ATTRIBUTE_FIELDS: Readonly<Record<keyof EpAttributes, FieldRule>> = {
  serviceType: never,
  maxMessageBytes: ours,
  maxRdmaBytes: ours,
  qos: ours,
  recvCompletionFlags: ours,
  requestCompletionFlags: ours,
  maxRecvDtos: inQueuePair,
  maxRequestDtos: inQueuePair,
  maxRecvIov: inQueuePair,
  maxRequestIov: inQueuePair,
  maxRdmaReadIov: inQueuePair,
  maxRdmaWriteIov: inQueuePair,
  maxRdmaReadIn: ours,
  maxRdmaReadOut: ours,
  srqSoftHighWatermark: ours,
  keepAliveMs: inQueuePair,
  transport: { when: 'modifyTransport', rebuilds: false },
};

/** Options of `ep.modify`; absent fields keep their values. */
export interface ModifyOptions {
  readonly pz?: Pz;
  readonly recvEvd?: Evd;
  readonly requestEvd?: Evd;
  readonly connectEvd?: Evd;
  readonly attributes?: EpAttributeOptions;
}

export interface Modification {
  readonly next: EpInit;
  /** True if the queue pair has to be created again. */
  readonly rebuild: boolean;
}

const KNOWN = [...Object.keys(EP_FIELDS), 'attributes'];
const EVDS = [
  ['recvEvd', 'recv'],
  ['requestEvd', 'request'],
  ['connectEvd', 'connect'],
] as const satisfies readonly (readonly [keyof ModifyOptions, EvdUse])[];

/** @throws DatError for a change that is not possible */
export function modifiedInit(
  operation: string,
  options: ModifyOptions,
  record: EndpointState,
): Modification {
  checkOptions(operation, options, KNOWN);
  const given: ModifyOptions = options;
  const { init, core } = record;
  const rules = rulesOf(operation, options);
  for (const { name, when } of rules) {
    if (when === 'never') throw readOnly(operation, name);
    record.checkLegal(operation, when);
  }
  if (options.pz !== undefined) checkHandle(operation, Pz, 'PZ', options.pz, core);
  for (const [name, use] of EVDS) core.checkEvdOption(operation, use, given[name]);
  const device = core.context.device.attributes;
  const attributes = epAttributes(operation, given.attributes ?? {}, device, init.attributes);
  const { recvEvd, requestEvd, connectEvd } = { ...init, ...defined(given) };
  checkCompletionModel(operation, attributes, recvEvd, requestEvd);
  checkPosted(operation, record.queues, attributes.maxRecvDtos, attributes.maxRecvIov);
  const used = [recvEvd, requestEvd, connectEvd];
  const next: EpInit = {
    ...init,
    pz: options.pz ?? init.pz,
    recvEvd,
    requestEvd,
    connectEvd,
    attributes,
    privateEvds: init.privateEvds.filter((evd) => used.includes(evd)),
  };
  return { next, rebuild: rules.some(({ rebuilds }) => rebuilds) };
}

/** Fields that are given, with their rules; `undefined` counts as absent. */
function rulesOf(
  operation: string,
  options: ModifyOptions,
): { readonly name: string; readonly when: Modifiable; readonly rebuilds: boolean }[] {
  const { attributes, ...fields } = options;
  if (attributes !== undefined) {
    checkOptions(operation, attributes, Object.keys(EP_ATTRIBUTE_FIELDS));
  }
  const pick = <T extends string, R>(
    rules: Readonly<Record<T, R>>,
    given: object,
  ): (R & { readonly name: string })[] =>
    Object.entries(given)
      .filter(([, value]) => value !== undefined)
      .map(([name]) => ({ name, ...rules[name as T] }));
  return [...pick(EP_FIELDS, fields), ...pick(EP_ATTRIBUTE_FIELDS, attributes ?? {})];
}

function defined<T extends object>(options: T): Partial<T> {
  const entries = Object.entries(options).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as Partial<T>;
}

/** Checks that posted receives fit. */
function checkPosted(operation: string, queues: EpQueues, dtos: number, iov: number): void {
  const { outstanding, widest } = queues.receives;
  const check = (name: string, value: number, least: number): void => {
    if (value >= least) return;
    const expected = `at least ${least}: so much is posted`;
    throw invalid(operation, `attributes.${name}`, value, expected, 'options');
  };
  check('maxRecvDtos', dtos, outstanding);
  check('maxRecvIov', iov, widest);
}

function readOnly(operation: string, name: string): DatError {
  return new DatError('DAT_INVALID_PARAMETER', {
    subtype: argumentSubtype(operation, 'field'),
    operation,
    message: `${name} of an endpoint cannot be changed`,
    hint: 'give it to ia.createEndpoint()',
    value: name,
  });
}
