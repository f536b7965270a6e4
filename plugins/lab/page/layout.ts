/**
 * The place of each moment of a recording, from top to bottom. Quiet times are short: a second
 * takes hardly more room than a millisecond, so that nobody scrolls through a timeout.
 */
import type { LineRow, PacketRow, Recording } from '../run/recording.js';

export interface PlacedPacket {
  readonly packet: PacketRow;
  readonly index: number;
  readonly sentY: number;
  readonly arrivalYs: readonly number[];
  /** The lowest point of its arrow. */
  readonly endY: number;
}

export interface PlacedLine {
  readonly line: LineRow;
  readonly y: number;
}

export interface Layout {
  readonly packets: readonly PlacedPacket[];
  readonly lines: readonly PlacedLine[];
  /** Times and their places, both ascending. */
  readonly moments: readonly { readonly timeUs: number; readonly y: number }[];
  readonly height: number;
}

const ROW = 17;
const TOP = 28;
const LEAST_GAP = 8;
const MOST_GAP = 90;
const GAP_PER_DOUBLING = 7;
/** Length of an arrow that ends nowhere. */
const LOST_DROP = 22;

interface Item {
  readonly timeUs: number;
  /** Items of a side at one time are below each other. */
  readonly side: string;
  readonly place: (y: number) => void;
}

export function layoutOf(recording: Recording, showsCalls: boolean): Layout {
  const items: Item[] = [];
  const sentYs: number[] = [];
  const arrivalYs: number[][] = recording.packets.map(() => []);
  for (const [index, { from, to, sentUs, arrivals }] of recording.packets.entries()) {
    items.push({ timeUs: sentUs, side: `send ${from}`, place: (y) => (sentYs[index] = y) });
    for (const { timeUs } of arrivals) {
      const place = (y: number): void => void arrivalYs[index]!.push(y);
      items.push({ timeUs, side: `arrive ${to}`, place });
    }
  }
  const lines: PlacedLine[] = [];
  for (const line of recording.lines) {
    if (line.kind === 'call' && !showsCalls) continue;
    const place = (y: number): void => void lines.push({ line, y });
    items.push({ timeUs: line.timeUs, side: `line ${line.node}`, place });
  }
  items.sort((a, b) => a.timeUs - b.timeUs);
  const { moments, height } = placeAll(items, recording.endUs);
  const packets = recording.packets.map((packet, index): PlacedPacket => {
    const sentY = sentYs[index]!;
    const ys = arrivalYs[index]!;
    return { packet, index, sentY, arrivalYs: ys, endY: Math.max(sentY + LOST_DROP, ...ys) };
  });
  const lowest = packets.reduce((most, { endY }) => Math.max(most, endY), height);
  return { packets, lines, moments, height: lowest + TOP };
}

function placeAll(items: readonly Item[], endUs: number): Pick<Layout, 'moments' | 'height'> {
  const moments = [{ timeUs: 0, y: TOP - 10 }];
  let y = TOP;
  let lastUs = 0;
  for (let at = 0; at < items.length;) {
    const { timeUs } = items[at]!;
    if (timeUs > lastUs) y += gapOf(timeUs - lastUs);
    lastUs = timeUs;
    const rows = new Map<string, number>();
    for (; items[at]?.timeUs === timeUs; at++) {
      const { side, place } = items[at]!;
      const row = rows.get(side) ?? 0;
      rows.set(side, row + 1);
      place(y + row * ROW);
    }
    const sides = [...rows].map(([side, count]) =>
      side.startsWith('arrive') ? count - 0.6 : count,
    );
    y += (Math.max(...sides) - 1) * ROW;
    moments.push({ timeUs, y: y + 1 });
    y += sides.some((count) => count >= 1) ? ROW - LEAST_GAP : 0;
  }
  if (endUs > lastUs) moments.push({ timeUs: endUs, y: y + gapOf(endUs - lastUs) });
  return { moments, height: moments.at(-1)!.y };
}

function gapOf(us: number): number {
  return Math.min(MOST_GAP, LEAST_GAP + GAP_PER_DOUBLING * Math.log2(1 + us / 2));
}

/** The time that is drawn at a place. */
export function timeAt({ moments }: Layout, y: number): number {
  const after = moments.findIndex((moment) => moment.y >= y);
  if (after === -1) return moments.at(-1)!.timeUs;
  if (after === 0) return 0;
  const [from, to] = [moments[after - 1]!, moments[after]!];
  const share = (y - from.y) / (to.y - from.y || 1);
  return share >= 1 ? to.timeUs : from.timeUs + share * (to.timeUs - from.timeUs);
}

export function yOf({ moments }: Layout, timeUs: number): number {
  const after = moments.findIndex((moment) => moment.timeUs >= timeUs);
  if (after === -1) return moments.at(-1)!.y;
  if (after === 0) return moments[0]!.y;
  const [from, to] = [moments[after - 1]!, moments[after]!];
  const share = (timeUs - from.timeUs) / (to.timeUs - from.timeUs || 1);
  return from.y + share * (to.y - from.y);
}
