/** Endpoint attributes (DAT_EP_ATTR): defaults, limits and checks. */
import { DatError } from '../../errors/index.js';
import type { DeviceAttributes } from '../../spi/index.js';
import { CompletionFlags, flagNames, Qos } from '../common/constants.js';
import { type EpQueueAttributes, ownRequests } from '../work/attributes.js';
import { WATERMARK } from './endpoint-state.js';
import { checkBits, checkInteger, checkOptions, checkValue, invalid } from '../../errors/guards.js';
import { checkValues, integer, isInteger, kindOf, oneOf, show } from '../../spi/checks/index.js';
import { type Evd, type EvdConfiguration, EvdFlags } from '../../evd/index.js';

/**
 * Attributes of an endpoint (DAT_EP_ATTR). Lengths are in bytes. `transport` is DAT's list of
 * transport-specific attributes. There are no provider-specific ones.
 */
export interface EpAttributes extends EpQueueAttributes {
  readonly serviceType: 'RC';
  readonly qos: number;
  /** RDMA reads (and atomics) served at a time. */
  readonly maxRdmaReadIn: number;
  /** DAT's srq_soft_hw: `setWatermark` with this soft mark when the endpoint is made. */
  readonly srqSoftHighWatermark: number;
  readonly transport: EpTransportAttributes;
}

/** DAT's transport-specific attributes: the reliable connection's own (IBTA 9.7.5, 9.7.6). */
export interface EpTransportAttributes {
  /** Local ACK timeout, exponent of 4.096 us * 2^n, 1 to 31; proposed for both queue pairs. */
  readonly ackTimeout: number;
  /** Retransmissions without an answer, 0 to 7. */
  readonly retryCount: number;
  /** Retransmissions after "receiver not ready", 0 to 6; 7 is for ever. */
  readonly rnrRetryCount: number;
  /** Delay that the peer waits when our receive queue is empty: timer code 0 to 31, table 45. */
  readonly minRnrTimer: number;
  /** Upper bound of the path MTU: 256, 512, 1024, 2048 or 4096. */
  readonly pathMtuBytes: number;
}

/** Attributes that `createEndpoint` takes in place of defaults. */
export type EpAttributeOptions = Partial<Omit<EpAttributes, 'transport'>> & {
  readonly transport?: Partial<EpTransportAttributes>;
};

const DTO_DEFAULT = 128;
const IOV_DEFAULT = 4;
const READ_DEFAULT = 16;
/** Below, the event loop would be late more often than not; a day is for ever. */
const KEEP_ALIVE_MS = kindOf<number>(
  '0 (off), or an integer from 10 to 86400000',
  (value) => value === 0 || isInteger(value, 10, 86_400_000),
);

const TRANSPORT_DEFAULTS = {
  // 134 ms: the ACK delay of a softroce peer, whose event loop may be busy so long. The connecting
  // side adds it: 268 ms. Less would retransmit to a peer that is only busy. Seven retries back off
  // to four times that: a silent peer is noticed after 7 s at most (3.6 s by the accepting side), a
  // killed process within one, by ICMP. A lost tail costs one timeout.
  ackTimeout: 15,
  retryCount: 7,
  // Six waits of 20 ms: a finite limit, so that a peer that never posts a receive becomes an error.
  rnrRetryCount: 6,
  minRnrTimer: 22,
  pathMtuBytes: 4096,
} as const;

const TRANSPORT = {
  ackTimeout: integer(1, 31),
  retryCount: integer(0, 7),
  rnrRetryCount: integer(0, 7),
  minRnrTimer: integer(0, 31),
  pathMtuBytes: oneOf([256, 512, 1024, 2048, 4096]),
};

/** The default attributes on a device. */
export function defaultEpAttributes(device: DeviceAttributes): EpAttributes {
  // One more entry than the consumer's limit: ours, for the marker that ends a queue.
  const dtos = Math.min(DTO_DEFAULT, device.maxQueuePairWr - 1);
  const iov = Math.min(IOV_DEFAULT, device.maxSge);
  return {
    serviceType: 'RC',
    maxMessageBytes: device.maxMessageBytes,
    maxRdmaBytes: device.maxMessageBytes,
    qos: Qos.BEST_EFFORT,
    recvCompletionFlags: CompletionFlags.EVD_THRESHOLD,
    requestCompletionFlags: CompletionFlags.EVD_THRESHOLD,
    maxRecvDtos: dtos,
    maxRequestDtos: dtos,
    maxRecvIov: iov,
    maxRequestIov: iov,
    maxRdmaReadIov: iov,
    maxRdmaWriteIov: iov,
    maxRdmaReadIn: Math.min(READ_DEFAULT, device.maxResponderResources),
    maxRdmaReadOut: Math.min(READ_DEFAULT, device.maxInitiatorDepth),
    srqSoftHighWatermark: Infinity,
    keepAliveMs: 0,
    transport: TRANSPORT_DEFAULTS,
  };
}

/**
 * The attributes of an endpoint: the options where given, else the defaults, or what it has.
 * @throws DatError DAT_INVALID_PARAMETER naming the attribute, its value and the device's limit;
 * DAT_MODEL_NOT_SUPPORTED for a service type or QoS that the provider lacks
 */
export function epAttributes(
  operation: string,
  options: EpAttributeOptions,
  device: DeviceAttributes,
  defaults: EpAttributes = defaultEpAttributes(device),
): EpAttributes {
  checkOptions(operation, options, Object.keys(defaults), 'attributes');
  const transport = { ...defaults.transport, ...options.transport };
  const attributes: EpAttributes = { ...defaults, ...options, transport };
  checkModel(operation, attributes);
  checkLimits(operation, attributes, device);
  checkTransport(operation, attributes.transport);
  return shared(attributes, device);
}

let latest: EpAttributes | undefined;

/** Frozen; successive endpoints with equal attributes share one object. */
function shared(attributes: EpAttributes, device: DeviceAttributes): EpAttributes {
  if (latest === undefined || !isSame(latest, attributes)) {
    Object.freeze(attributes.transport);
    // One hidden class for all: every post reads it, and spread may make a class for each.
    latest = Object.freeze(Object.assign(defaultEpAttributes(device), attributes));
  }
  return latest;
}

function isSame(one: EpAttributes, other: EpAttributes): boolean {
  const { transport } = other;
  return (
    Object.keys(one).every((key) => {
      const name = key as keyof EpAttributes;
      return name === 'transport' || one[name] === other[name];
    }) &&
    Object.keys(one.transport).every((key) => {
      const name = key as keyof EpTransportAttributes;
      return one.transport[name] === transport[name];
    })
  );
}

function checkModel(operation: string, attributes: EpAttributes): void {
  const unsupported = (what: string, value: unknown): DatError =>
    new DatError('DAT_MODEL_NOT_SUPPORTED', {
      operation,
      message: `${what} ${show(value)} is not supported`,
      value,
    });
  if (attributes.serviceType !== 'RC') {
    throw unsupported('service type', attributes.serviceType);
  }
  if (attributes.qos !== Qos.BEST_EFFORT) throw unsupported('QoS', attributes.qos);
  checkCompletionFlags(operation, attributes);
}

function checkLimits(operation: string, attributes: EpAttributes, device: DeviceAttributes): void {
  const check = (name: keyof EpAttributes, min: number, max: number): void =>
    checkInteger(operation, name, attributes[name], min, max, 'attributes');
  check('maxMessageBytes', 0, device.maxMessageBytes);
  check('maxRdmaBytes', 0, device.maxMessageBytes);
  check('maxRecvDtos', 1, device.maxQueuePairWr - 1);
  check('maxRequestDtos', 1, device.maxQueuePairWr - ownRequests(attributes));
  for (const name of [
    'maxRecvIov',
    'maxRequestIov',
    'maxRdmaReadIov',
    'maxRdmaWriteIov',
  ] as const) {
    check(name, 1, device.maxSge);
  }
  const { srqSoftHighWatermark, keepAliveMs } = attributes;
  checkValue(operation, 'srqSoftHighWatermark', srqSoftHighWatermark, WATERMARK, 'attributes');
  checkValue(operation, 'keepAliveMs', keepAliveMs, KEEP_ALIVE_MS, 'attributes');
  check('maxRdmaReadIn', 0, device.maxResponderResources);
  check('maxRdmaReadOut', 0, device.maxInitiatorDepth);
}

function checkTransport(operation: string, transport: EpTransportAttributes): void {
  checkOptions(operation, transport, Object.keys(TRANSPORT_DEFAULTS), 'attributes');
  checkValues(transport, TRANSPORT, (name, value, expected) =>
    invalid(operation, `transport.${name}`, value, expected, 'attributes'),
  );
}

// Completion flags as endpoint attributes: how completions of a stream notify, and the
// configuration that the event dispatcher needs for that.

const { SUPPRESS, SOLICITED_WAIT, UNSIGNALLED, EVD_THRESHOLD } = CompletionFlags;

/** Each stream notifies in one way; without any of these bits, every completion does. */
const WAYS = SOLICITED_WAIT | UNSIGNALLED | EVD_THRESHOLD;

/** Bits that a stream accepts. SUPPRESS may always be posted, so naming it changes nothing. */
const ALLOWED = {
  recvCompletionFlags: SOLICITED_WAIT | UNSIGNALLED | EVD_THRESHOLD,
  requestCompletionFlags: SUPPRESS | UNSIGNALLED | EVD_THRESHOLD,
} as const;

/** @throws DatError DAT_INVALID_PARAMETER */
export function checkCompletionFlags(operation: string, attributes: EpAttributes): void {
  for (const name of ['recvCompletionFlags', 'requestCompletionFlags'] as const) {
    const flags = attributes[name];
    const expected = `of ${flagNames(CompletionFlags, ALLOWED[name])}`;
    checkBits(operation, name, flags, ALLOWED[name], expected, 'attributes');
    const ways = flags & WAYS;
    if ((ways & (ways - 1)) === 0) continue;
    throw invalid(
      operation,
      name,
      flags,
      `one of ${flagNames(CompletionFlags, WAYS)}`,
      'attributes',
    );
  }
}

/** The configuration that a stream with these flags gives its event dispatcher. */
export function configurationOf(flags: number): EvdConfiguration {
  if ((flags & EVD_THRESHOLD) !== 0) return 'THRESHOLD';
  return (flags & SOLICITED_WAIT) === 0 ? 'NOTIFY' : 'SOLICITED';
}

/**
 * If some completions do not notify, the event dispatcher takes completions only: other events
 * would notify for them. A private dispatcher does.
 * @throws DatError DAT_INVALID_PARAMETER
 */
export function checkCompletionModel(
  operation: string,
  attributes: EpAttributes,
  recvEvd: Evd | undefined,
  requestEvd: Evd | undefined,
): void {
  const streams = EvdFlags.DTO | EvdFlags.RMR_BIND;
  for (const [name, evd] of [
    ['recvCompletionFlags', recvEvd],
    ['requestCompletionFlags', requestEvd],
  ] as const) {
    const flags = attributes[name];
    if (evd === undefined || (evd.streams & ~streams) === 0) continue;
    if ((flags & (SOLICITED_WAIT | UNSIGNALLED)) === 0) continue;
    const named = flagNames(CompletionFlags, flags);
    const expected = `without ${named}, or event dispatcher ${evd.id} of EvdFlags.DTO alone`;
    throw invalid(operation, name, flags, expected, 'attributes');
  }
}
