/**
 * Extensions that two dapl peers use on a connection. Each side offers its own in its GUID
 * (core/spi/modules/peer-agreement.ts), which REQ and REP carry. An extension is in use if both
 * offer it and its row below allows it, so both sides reach the same result. A peer that claims
 * extensions it lacks harms only itself: it gets late ACKs, or its packets are dropped.
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

/** The extensions in use on one connection; none with a peer that is not dapl. */
export interface PeerAgreement extends PeerTerms {
  readonly pathMtuBytes: number;
}

/** The messages that an agreement depends on. */
interface Exchange {
  readonly req: CmReq;
  /** Source of the peer's message that carries its GUID. */
  readonly source: MadAddress;
}

type Row = (exchange: Exchange) => Partial<PeerAgreement>;

const FULL_MTU = 4096;

const ROWS: Readonly<Record<keyof typeof PEER_AGREEMENT, Row>> = {
  LATE_ACK: () => ({ lateAcks: true }),
  ONE_PORT: ({ source: { udpPort } }) => (udpPort === undefined ? {} : { sourcePort: udpPort }),
  // A consumer that asked for less than the largest path MTU gets no more.
  LOCAL_MTU: ({ req }) => (mayBeLong(req) ? { pathMtuBytes: LOCAL_MTU_BYTES } : {}),
  CHANNEL: ({ req }) => (mayBeLong(req) ? { pathMtuBytes: CHANNEL_MTU_BYTES } : {}),
  // XRC receives belong to no connection.
  CREDITS: ({ req }) => (transportOf(req) === 'rc' ? { credits: true } : {}),
  // A peer says this about itself only.
  SLOTS: () => ({}),
};
const NAMES = Object.keys(ROWS) as (keyof typeof PEER_AGREEMENT)[];

function mayBeLong(req: CmReq): boolean {
  return transportOf(req) === 'rc' && PATH_MTU_BYTES[req.pathMtu] === FULL_MTU;
}

/** @param guids of both devices, from REQ and REP, in either order */
export function agreementOf(
  exchange: Exchange,
  ...guids: readonly [bigint, bigint]
): PeerAgreement {
  const both = offersOf(guids[0]) & offersOf(guids[1]);
  const kept = NAMES.filter((name) => (both & PEER_AGREEMENT[name]) !== 0);
  const plain: PeerAgreement = { pathMtuBytes: PATH_MTU_BYTES[exchange.req.pathMtu] ?? 0 };
  return Object.assign({}, plain, ...kept.map((name) => ROWS[name](exchange))) as PeerAgreement;
}
