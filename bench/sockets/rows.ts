/** What is measured, and what is aimed at. */
import { type Cell, cell, KIB64, MIB } from '../compare/cells.js';
import type { Rival, Row } from '../compare/rows.js';

const KIB4 = 4096;
const MANY = 50;
const PEERS = ['node-tcp', 'node-uds'] as const;

/** The peers at the same work, asleep when there is none; a goal beside TCP. */
function against(ours: Cell, goal: Omit<Rival, 'cell'>): Rival[] {
  const { workload, bytes, endpoints } = ours;
  return PEERS.map((peer) => ({
    cell: cell(peer, workload, bytes, { polling: 'event', endpoints, depth: 1 }),
    ...(peer === 'node-tcp' && goal),
  }));
}

function roundTrip(bytes: number, polling: 'event' | 'adaptive', kind = 'rsocket'): Row {
  const ours = cell(kind, 'ping', bytes, { polling, depth: 1 });
  const label = `${nameOf(kind)}${sizeText(bytes)} half RTT, ${polling}`;
  return { label, unit: 'us', ours, rivals: against(ours, { goal: 0.5 }) };
}

function requests(bytes: number): Row {
  const ours = cell('rsocket', 'calls', bytes, { polling: 'event', endpoints: MANY, depth: 1 });
  const label = `${sizeText(bytes)} requests and answers, ${MANY} connections`;
  const unit = bytes < KIB4 ? 'M/s' : 'GB/s';
  return { label, unit, ours, rivals: against(ours, { goal: 1 }) };
}

function stream(bytes: number, endpoints: number, kind = 'rsocket'): Row {
  const ours = cell(kind, 'send', bytes, { polling: 'event', endpoints, depth: 1 });
  const many = endpoints === 1 ? 'a connection' : `${endpoints} connections`;
  const label = `${nameOf(kind)}${sizeText(bytes)} writes, ${many}`;
  return { label, unit: 'GB/s', ours, rivals: against(ours, { goal: 1, cpuGoal: 1 }) };
}

/**
 * SDP that copies nothing beside SDP that copies everything: which of the two is faster, by size.
 */
function crossing(bytes: number): Row {
  const of = (kind: string): Cell =>
    cell(kind, 'send', bytes, { polling: 'event', endpoints: 1, depth: 1 });
  const label = `SDP ${sizeText(bytes)} writes, zero copy beside copies`;
  return { label, unit: 'GB/s', ours: of('sdp-zero'), rivals: [{ cell: of('sdp-copy') }] };
}

function nameOf(kind: string): string {
  return kind === 'sdp' ? 'SDP ' : '';
}

function sizeText(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  return bytes < MIB ? `${bytes / 1024} KiB` : `${bytes / MIB} MiB`;
}

export const ROWS: readonly Row[] = [
  ...[64, KIB4].flatMap((bytes) => [roundTrip(bytes, 'event'), roundTrip(bytes, 'adaptive')]),
  ...[64, KIB4].map(requests),
  ...[KIB64, MIB].flatMap((bytes) => [stream(bytes, 1), stream(bytes, MANY)]),
  roundTrip(64, 'event', 'sdp'),
  ...[KIB64, MIB].map((bytes) => stream(bytes, 1, 'sdp')),
  ...[64, 256, 1024, 4096, 16_384].map((kib) => crossing(kib * 1024)),
];
