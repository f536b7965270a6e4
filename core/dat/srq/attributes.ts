/** Attributes and states of shared receive queues (DAT_SRQ_ATTR, DAT_SRQ_STATE). */
import { argumentSubtype } from '../../errors/call-arguments.js';
import { DatError, type DatSubtype } from '../../errors/index.js';
import type { DeviceAttributes } from '../../spi/index.js';
import { checkInteger } from '../../errors/guards.js';
import type { Pz } from '../memory/pz.js';
import type { QueueAttributes } from '../work/attributes.js';

/** Options of `ia.createSrq`. */
export interface SrqOptions {
  readonly pz: Pz;
  /** Receives that may be outstanding: 1 to `maxRecvPerSrq`. */
  readonly maxRecvDtos: number;
  /** Segments of one receive; 1 to `maxIovSegmentsPerDto`; default 4, or the device's limit. */
  readonly maxRecvIov?: number;
  /** 0, as in DAT: a queue starts empty. Arm it with `srq.setLowWatermark()`. */
  readonly lowWatermark?: number;
}

/** DAT_SRQ_ATTR. */
export type SrqAttributes = Pick<QueueAttributes, 'maxRecvDtos' | 'maxRecvIov'>;

const IOV_DEFAULT = 4;

/**
 * @throws DatError DAT_INVALID_PARAMETER naming the attribute, its value and the device's limit
 */
export function srqAttributes(
  operation: string,
  options: SrqOptions,
  device: DeviceAttributes,
): SrqAttributes {
  const { maxSharedReceiveQueueWr, maxSge } = device;
  const { maxRecvDtos, maxRecvIov = Math.min(IOV_DEFAULT, maxSge), lowWatermark = 0 } = options;
  checkInteger(operation, 'maxRecvDtos', maxRecvDtos, 1, maxSharedReceiveQueueWr);
  checkInteger(operation, 'maxRecvIov', maxRecvIov, 1, maxSge);
  if (lowWatermark !== 0) {
    throw new DatError('DAT_INVALID_PARAMETER', {
      subtype: argumentSubtype(operation, 'lowWatermark'),
      operation,
      message: 'lowWatermark must be 0 at creation: the queue is empty',
      hint: 'post receives, then call srq.setLowWatermark()',
      value: lowWatermark,
    });
  }
  return { maxRecvDtos, maxRecvIov };
}

/** DAT_SRQ_STATE. */
export const SrqState = { ERROR: 0, OPERATIONAL: 1, SHUTDOWN: 2 } as const;
export type SrqStateName = keyof typeof SrqState;

/** Calls that a state allows. */
export interface SrqStateRule {
  /** Subtype of DAT_INVALID_STATE in this state. */
  readonly subtype: DatSubtype;
  /** postRecv, resize, setLowWatermark, and endpoints created on it. */
  readonly usable: boolean;
}

/** The table. ERROR: the device has failed the queue; SHUTDOWN: its adapter is being closed. */
export const SRQ_STATES: Readonly<Record<SrqStateName, SrqStateRule>> = {
  OPERATIONAL: { subtype: 'DAT_INVALID_STATE_SRQ_OPERATIONAL', usable: true },
  ERROR: { subtype: 'DAT_INVALID_STATE_SRQ_ERROR', usable: false },
  SHUTDOWN: { subtype: 'DAT_INVALID_STATE_SRQ_SHUTDOWN', usable: false },
};
