/** What the protocols could do at best on a link that loses packets at random. */

/** A link between two nodes, in one direction. */
export interface LossyLink {
  readonly bitsPerSecond: number;
  readonly roundTripUs: number;
  /** Of a full packet on the wire, and of its payload. */
  readonly packetBytes: number;
  readonly payloadBytes: number;
}

export function packetUs({ packetBytes, bitsPerSecond }: LossyLink): number {
  return (packetBytes * 8e6) / bitsPerSecond;
}

/** Packets that fill the link for a round trip: those sent before word of a loss can be back. */
export function pipePackets(link: LossyLink): number {
  return 1 + link.roundTripUs / packetUs(link);
}

/** Goodput as a fraction of what the link carries: only what was lost is sent again. */
export function selectiveRepeat(loss: number): number {
  return 1 - loss;
}

/**
 * Go-back-N with the window that fits (Schwartz 1987, section 4.2): each loss costs the packet and
 * all that follow it within a round trip, for the receiver drops them.
 */
export function goBackN(loss: number, link: LossyLink): number {
  return (1 - loss) / (1 - loss + loss * pipePackets(link));
}

/**
 * The same for READs that are asked for in chunks of so many packets: of each chunk the request may
 * be lost too.
 */
export function goBackNReads(loss: number, chunkPackets: number, link: LossyLink): number {
  return goBackN(1 - (1 - loss) ** (1 + 1 / chunkPackets), link);
}

/**
 * A window that is halved by every loss, whatever its cause, and grows by a packet a round trip
 * (Mathis et al. 1997): what TCP Reno would have of the same link.
 */
export function reno(loss: number, link: LossyLink): number {
  const window = Math.sqrt(1.5 / loss);
  return Math.min(1, window / pipePackets(link));
}
