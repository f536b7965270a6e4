/** Counters of the CM: every message that is dropped is counted. */
export interface CmCounters {
  sent: number;
  sendErrors: number;
  received: number;
  /** Not a CM message of class version 2, or a field is out of range. */
  malformed: number;
  /** Messages for a connection from an address other than its peer's. */
  wrongSource: number;
  /** Messages from the peer's address, but not from the port that it agreed to keep. */
  wrongPort: number;
  /** Messages without a connection. */
  unknownConnection: number;
  /** Messages and calls that the state machine does not expect in that state. */
  unexpected: number;
  /** Copies of a message that arrive too close together, dropped unread. */
  repeatsDropped: number;
  /** Messages above the rate of their address, or above the overall rate, dropped unread. */
  overRate: number;
  /** REQs and SIDR_REQs dropped at a limit: the sum of the next two. */
  requestsDropped: number;
  /** Dropped because their address has its share of half-open or unanswered requests. */
  overShare: number;
  /** Dropped because the listener's backlog is full, or its free places are reserved. */
  overBacklog: number;
  requestsRejected: number;
  /** Repeated REQs that were answered by a copy of their REJ. */
  rejectionsRepeated: number;
  staleConnections: number;
}

export function newCmCounters(): CmCounters {
  return {
    sent: 0,
    sendErrors: 0,
    received: 0,
    malformed: 0,
    wrongSource: 0,
    wrongPort: 0,
    unknownConnection: 0,
    unexpected: 0,
    repeatsDropped: 0,
    overRate: 0,
    requestsDropped: 0,
    overShare: 0,
    overBacklog: 0,
    requestsRejected: 0,
    rejectionsRepeated: 0,
    staleConnections: 0,
  };
}
