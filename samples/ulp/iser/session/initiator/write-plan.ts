/**
 * Splits the data of a write into immediate, unsolicited and solicited data, as agreed at login
 * (RFC 7143, 4.2.5; RFC 7145, 7.3).
 */
import type { SessionParameters } from './parameters.js';

export interface WritePlan {
  /** Bytes that go in the data segment of the command itself. */
  readonly immediateBytes: number;
  /** Bytes that follow in Data-Out PDUs without being asked for. */
  readonly unsolicitedBytes: number;
}

type Agreed = Pick<
  SessionParameters,
  'immediateData' | 'initialR2T' | 'firstBurstLength' | 'maxSendDataSegment'
>;

/**
 * | InitialR2T | ImmediateData | in the command           | unsolicited Data-Out          |
 * | Yes        | No            | nothing                  | nothing                       |
 * | Yes        | Yes           | up to the segment, burst | nothing                       |
 * | No         | No            | nothing                  | up to the first burst         |
 * | No         | Yes           | up to the segment, burst | the rest of the first burst   |
 *
 * The rest of the data is asked for: by R2T, or fetched by RDMA Read.
 */
export function planWrite(lengthBytes: number, agreed: Agreed): WritePlan {
  const burst = Math.min(lengthBytes, agreed.firstBurstLength);
  const immediateBytes = agreed.immediateData ? Math.min(burst, agreed.maxSendDataSegment) : 0;
  return { immediateBytes, unsolicitedBytes: agreed.initialR2T ? 0 : burst - immediateBytes };
}

/** A piece of a burst: one Data-Out. */
export interface DataOutPiece {
  readonly dataSn: number;
  readonly offsetBytes: number;
  readonly lengthBytes: number;
  readonly isFinal: boolean;
}

/** A burst cut into data segments that the target takes. */
export function* piecesOf(
  offsetBytes: number,
  lengthBytes: number,
  maxSegmentBytes: number,
): IterableIterator<DataOutPiece> {
  const end = offsetBytes + lengthBytes;
  for (let at = offsetBytes, dataSn = 0; at < end; dataSn++) {
    const piece = Math.min(maxSegmentBytes, end - at);
    yield { dataSn, offsetBytes: at, lengthBytes: piece, isFinal: at + piece === end };
    at += piece;
  }
}
