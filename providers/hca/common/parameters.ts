/** Tunable parameters of the software HCA and their ranges. */
import {
  BOOLEAN,
  checkValue,
  integer,
  type Kinds,
  optional,
  record,
} from '../../../core/spi/checks/index.js';
import { einval } from '../../../core/spi/errors/einval.js';

/**
 * Parameters of the software HCA. All are integers, except `agreements`; the comments give the
 * reason for each default.
 */
export interface HcaParameters {
  /**
   * The most PSNs that a queue pair may have outstanding, 2 to 1,048,576; losses lower it for a
   * while. 512 packets of 4 KiB are 2 MiB, half of a 4 MiB socket buffer. A full pump of both sides
   * takes 75 us, which is 0.5 MiB at 7 GB/s. The rest covers the times when the system runs other
   * processes.
   */
  readonly windowPackets: number;
  /** Packets that one queue pair may send before the next one may, 1 to 1024. */
  readonly burstPackets: number;
  /**
   * Least local ACK timeout, 0 to 60,000,000 us: a garbage collection must not look like a loss.
   */
  readonly minAckTimeoutUs: number;
  /**
   * Least time between two early repeats of the oldest packet after hints (ICMP port unreachable),
   * 0 to 60,000,000 us. They take no retry: hints can be forged.
   */
  readonly unreachableRetryUs: number;
  /** Segments of a request or receive, 1 to 255. */
  readonly maxSge: number;
  /** Inline payload of a request, 0 to 4096 bytes. */
  readonly maxInlineBytes: number;
  /** READs and atomics that a queue pair answers at a time, 0 to 255. */
  readonly maxResponderResources: number;
  /** READs and atomics that a queue pair may have outstanding, 0 to 255. */
  readonly maxInitiatorDepth: number;
  /** Entries of a send, receive or shared receive queue, 512 (those of QP1) to 1,048,576. */
  readonly maxQueuePairWr: number;
  /** Queue pairs, of which QP1 is one, 2 to 1,048,576. */
  readonly maxQueuePairs: number;
  /**
   * Offers and keeps agreements that no standard asks of a peer
   * (core/spi/modules/peer-agreement.ts). Both sides must be ours. False: every peer is treated as
   * one of another make.
   */
  readonly agreements: boolean;
}

export const defaultParameters: HcaParameters = {
  windowPackets: 512,
  burstPackets: 64,
  minAckTimeoutUs: 1000,
  unreachableRetryUs: 120_000,
  maxSge: 16,
  maxInlineBytes: 512,
  maxResponderResources: 128,
  maxInitiatorDepth: 128,
  maxQueuePairWr: 1 << 20,
  maxQueuePairs: 1 << 20,
  agreements: true,
};

const MINUTE_US = 60_000_000;
/** A field of eight bits, as the number of segments of a ring's entry and the depths of REQ are. */
const MAX_U8 = 255;

/** The kind and range of each parameter; docs/softroce.md lists them too. */
export const PARAMETER_KINDS: Kinds<HcaParameters> = {
  // One packet that may be lost, and one behind it that tells.
  windowPackets: integer(2, 1 << 20),
  burstPackets: integer(1, 1024),
  minAckTimeoutUs: integer(0, MINUTE_US),
  unreachableRetryUs: integer(0, MINUTE_US),
  maxSge: integer(1, MAX_U8),
  maxInlineBytes: integer(0, 4096),
  maxResponderResources: integer(0, MAX_U8),
  maxInitiatorDepth: integer(0, MAX_U8),
  maxQueuePairWr: integer(512, 1 << 20),
  maxQueuePairs: integer(2, 1 << 20),
  agreements: BOOLEAN,
};
/** The kind of an option that holds some of the parameters. */
export const PARAMETERS = optional(
  record(
    Object.fromEntries(
      Object.entries(PARAMETER_KINDS).map(([name, kind]) => [name, optional(kind)]),
    ),
  ),
);

/**
 * Adds the defaults to the parameters; undefined ones are ignored.
 * @throws SpiError('EINVAL') naming the parameter, its value and its limits
 */
export function parametersOf(given: Partial<HcaParameters> = {}): HcaParameters {
  checkValue('parameters', given, PARAMETERS, einval);
  const set = Object.entries(given).filter(([, value]) => value !== undefined);
  return { ...defaultParameters, ...(Object.fromEntries(set) as Partial<HcaParameters>) };
}

/** The largest message (IBTA 9.7.1). */
export const MAX_MESSAGE_BYTES = 0x80000000;
