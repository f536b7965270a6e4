/** What the CM has seen: nothing that arrives is dropped without a count. */
export interface CmCounters {
  sent: number;
  sendErrors: number;
  received: number;
  /** No CM message of class version 2, or one with a field out of range. */
  malformed: number;
  /** A message for a connection from another address than its peer's. */
  wrongSource: number;
  /** The same from its address, but not from the port that it has agreed to keep. */
  wrongPort: number;
  /** A message for no connection of ours. */
  unknownConnection: number;
  /** A message or call that the state machine does not expect in that state. */
  unexpected: number;
  /** Copies of a message that come too close together, dropped unread. */
  repeatsDropped: number;
  /** Messages above the rate of their address, or of all, dropped unread. */
  overRate: number;
  /** REQs and SIDR_REQs for which there was no place: the sum of the next two. */
  requestsDropped: number;
  /** With as many half open, or unanswered, as their address may have. */
  overShare: number;
  /** For a listener whose backlog is full, or whose free places are kept for others. */
  overBacklog: number;
  requestsRejected: number;
  /** REQs that came again after their REJ, and had it again. */
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
