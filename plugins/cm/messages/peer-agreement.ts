/**
 * What a connection has of its peer's being ours: the one place that knows. Both sides offer by
 * their GUIDs (core/spi/modules/peer-agreement.ts), REQ and REP carry them, and what both offer
 * holds, where the row below lets it. So each side comes to the same by itself, and a peer that
 * claims what it is not gets late ACKs, or its own packets dropped: that is its own affair.
 */
import {
  CHANNEL_MTU_BYTES,
  LOCAL_MTU_BYTES,
  type MadAddress,
  PATH_MTU_BYTES,
  type PeerTerms,
} from '../../../core/spi/index.js';
import { offersOf, PEER_AGREEMENT } from '../../../core/spi/internal/index.js';
import { transportOf } from '../common/transport.js';
import type { CmReq } from '../wire/req.js';

/** What is agreed on for one connection; nothing of it with a peer of another make. */
export interface PeerAgreement extends PeerTerms {
  readonly pathMtuBytes: number;
}

/** What an agreement is about. */
interface Exchange {
  readonly req: CmReq;
  /** Of the peer's message that carries its GUID. */
  readonly source: MadAddress;
}

type Row = (exchange: Exchange) => Partial<PeerAgreement>;

const FULL_MTU = 4096;

const ROWS: Readonly<Record<keyof typeof PEER_AGREEMENT, Row>> = {
  LATE_ACK: () => ({ lateAcks: true }),
  ONE_PORT: ({ source: { udpPort } }) => (udpPort === undefined ? {} : { sourcePort: udpPort }),
  // A consumer that asked for less than the whole path MTU gets no more. The longest one counts.
  LOCAL_MTU: ({ req }) => (mayBeLong(req) ? { pathMtuBytes: LOCAL_MTU_BYTES } : {}),
  CHANNEL: ({ req }) => (mayBeLong(req) ? { pathMtuBytes: CHANNEL_MTU_BYTES } : {}),
  // Receives of XRC belong to no connection.
  CREDITS: ({ req }) => (transportOf(req) === 'rc' ? { credits: true } : {}),
  // It is said of oneself.
  SLOTS: () => ({}),
};
const NAMES = Object.keys(ROWS) as (keyof typeof PEER_AGREEMENT)[];

function mayBeLong(req: CmReq): boolean {
  return transportOf(req) === 'rc' && PATH_MTU_BYTES[req.pathMtu] === FULL_MTU;
}

/** @param guids of both devices as REQ and REP have them, in either order */
export function agreementOf(
  exchange: Exchange,
  ...guids: readonly [bigint, bigint]
): PeerAgreement {
  const both = offersOf(guids[0]) & offersOf(guids[1]);
  const kept = NAMES.filter((name) => (both & PEER_AGREEMENT[name]) !== 0);
  const plain: PeerAgreement = { pathMtuBytes: PATH_MTU_BYTES[exchange.req.pathMtu] ?? 0 };
  return Object.assign({}, plain, ...kept.map((name) => ROWS[name](exchange))) as PeerAgreement;
}
