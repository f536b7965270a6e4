/** The tables of the benchmark of many endpoints. */
import type { Memory } from './protocol.js';

export interface ShapeResult {
  readonly shape: string;
  /** Endpoints of each process. */
  readonly count: number;
  readonly createPerSecond: number;
  readonly connectPerSecond: number;
  readonly disconnectPerSecond: number;
  readonly freePerSecond: number;
  /** Bytes an endpoint: unconnected; connected, of either side; freed, its CM in time-wait. */
  readonly created: Memory;
  readonly active: Memory;
  readonly passive: Memory;
  readonly timewait: Memory;
}

/** The same load over so many endpoints. */
export interface Sharing {
  readonly spread: number;
  readonly messagesPerSecond: number;
  /** CPU time of a message on either side. */
  readonly senderNs: number;
  readonly receiverNs: number;
}

/** One active endpoint, among so many. */
export interface Idle extends Sharing {
  readonly what: 'endpoints' | 'regions';
  readonly count: number;
}

export function report(
  shapes: readonly ShapeResult[],
  sharing: readonly Sharing[],
  idle: readonly Idle[],
): string {
  return [...shapes.map(shapeTable), sharingTable(sharing), idleTable(idle)].join('\n\n');
}

function shapeTable(result: ShapeResult): string {
  const rate = (value: number): string => `${value.toFixed(0)}/s`;
  const states = ['created', 'active', 'passive', 'timewait'] as const;
  const names = {
    created: 'created',
    active: 'connected, active',
    passive: 'connected, passive',
    timewait: 'freed, in time-wait',
  };
  const kib = (bytes: number): string => (bytes / 1024).toFixed(2);
  const rows = states.map((state) => {
    const { heap, arrayBuffers, external, resident } = result[state];
    return [names[state], ...[heap, arrayBuffers, external, resident].map(kib)];
  });
  const { createPerSecond, connectPerSecond, disconnectPerSecond, freePerSecond } = result;
  return [
    `${result.count} endpoints in each of two processes: ${result.shape}`,
    `create ${rate(createPerSecond)}, connect ${rate(connectPerSecond)}, ` +
      `disconnect ${rate(disconnectPerSecond)}, free ${rate(freePerSecond)}`,
    columns([['KiB an endpoint', 'heap', 'array buffers', 'external', 'resident'], ...rows]),
  ].join('\n');
}

function sharingTable(sharing: readonly Sharing[]): string {
  const first = sharing[0]?.messagesPerSecond ?? NaN;
  const rows = sharing.map(({ spread, messagesPerSecond, senderNs, receiverNs }) => [
    String(spread),
    (messagesPerSecond / 1e6).toFixed(3),
    (messagesPerSecond / first).toFixed(2),
    senderNs.toFixed(0),
    receiverNs.toFixed(0),
  ]);
  const heads = ['endpoints', 'M/s', 'against one', 'sender ns', 'receiver ns'];
  return ['64 B SENDs, 64 in flight in all', columns([heads, ...rows])].join('\n');
}

function columns(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows
    .map((row) => row.map((text, i) => (i ? text.padStart(widths[i]!) : text.padEnd(widths[i]!))))
    .map((row) => row.join('  '))
    .join('\n');
}

function idleTable(rows: readonly Idle[]): string {
  const line = (row: Idle): string =>
    [
      `${row.count} ${row.what}`.padStart(18),
      row.messagesPerSecond.toFixed(0).padStart(12),
      row.senderNs.toFixed(0).padStart(12),
      row.receiverNs.toFixed(0).padStart(12),
    ].join(' ');
  const heads = ['one active among', 'messages/s', 'sender ns', 'receiver ns'];
  const head = heads.map((text, i) => text.padStart(i === 0 ? 18 : 12)).join(' ');
  return [head, ...rows.map(line)].join('\n');
}
