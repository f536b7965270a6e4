/** State diagrams: the tables that the product decides by, with the live state marked. */
import { EP_TRANSITIONS } from '../../../core/dat/endpoint/states.js';
import { ACTIVE_TABLE, PASSIVE_TABLE } from '../../cm/connection/states.js';
import type { StateRow } from '../run/recording.js';
import { svg } from './dom.js';

interface Edge {
  readonly from: string;
  readonly to: string;
  readonly labels: readonly string[];
}

interface Machine {
  readonly start: string;
  readonly edges: readonly Edge[];
}

function machineOf(
  start: string,
  arrows: Iterable<readonly [from: string, to: string, label: string]>,
): Machine {
  const edges = new Map<string, { from: string; to: string; labels: string[] }>();
  for (const [from, to, label] of arrows) {
    if (from === to) continue;
    const key = `${from} ${to}`;
    const edge = edges.get(key) ?? { from, to, labels: [] };
    edge.labels.push(label);
    edges.set(key, edge);
  }
  return { start, edges: [...edges.values()] };
}

function* rowsOf(table: object): Generator<readonly [string, string, string]> {
  const rows = table as Readonly<
    Record<string, Readonly<Record<string, { readonly next: string }>>>
  >;
  for (const [from, inputs] of Object.entries(rows)) {
    for (const [input, { next }] of Object.entries(inputs)) yield [from, next, input];
  }
}

const EP_ARROWS = Object.entries(EP_TRANSITIONS).flatMap(([trigger, { from, to }]) =>
  from.map((state) => [state, to, trigger] as const),
);

export const MACHINES = {
  EP: machineOf('UNCONNECTED', EP_ARROWS),
  active: machineOf('IDLE', rowsOf(ACTIVE_TABLE)),
  passive: machineOf('REQ_RCVD', rowsOf(PASSIVE_TABLE)),
} as const;

const CHIP_HEIGHT = 22;
const ROW_HEIGHT = 52;
const WIDTH = 400;
const MOST_IN_ROW = 3;
const CHARACTER = 6.2;

interface Place {
  readonly x: number;
  readonly y: number;
  readonly width: number;
}

/** States in rows, by their distance from the first one. */
function placesOf({ start, edges }: Machine): ReadonlyMap<string, Place> {
  const rank = new Map([[start, 0]]);
  const waiting = [start];
  for (let state = waiting.shift(); state !== undefined; state = waiting.shift()) {
    for (const { to } of edges.filter(({ from }) => from === state)) {
      if (rank.has(to)) continue;
      rank.set(to, rank.get(state)! + 1);
      waiting.push(to);
    }
  }
  for (const { from } of edges) if (!rank.has(from)) rank.set(from, 1);
  const places = new Map<string, Place>();
  for (const [row, states] of rowsOfRanks(rank).entries()) {
    const widths = states.map((state) => nameOf(state).length * CHARACTER + 18);
    const gap = (WIDTH - widths.reduce((sum, width) => sum + width, 0)) / (states.length + 1);
    let left = gap;
    for (const [i, width] of widths.entries()) {
      places.set(states[i]!, { x: left + width / 2, y: 16 + row * ROW_HEIGHT, width });
      left += width + gap;
    }
  }
  return places;
}

/** The states of each distance, in rows of as many as fit beside each other. */
function rowsOfRanks(rank: ReadonlyMap<string, number>): string[][] {
  const rows: string[][] = [];
  for (let at = 0; at <= Math.max(...rank.values()); at++) {
    const states = [...rank].filter(([, each]) => each === at).map(([state]) => state);
    const count = Math.ceil(states.length / MOST_IN_ROW);
    const size = Math.ceil(states.length / count);
    for (let i = 0; i < count; i++) rows.push(states.slice(i * size, (i + 1) * size));
  }
  return rows;
}

/** Long names in fewer letters. */
function nameOf(state: string): string {
  return state.replace('CONNECTION_PENDING', 'PENDING').replaceAll('_', ' ');
}

/** @param taken the changes of one machine up to now */
export function diagramOf(kind: keyof typeof MACHINES, taken: readonly StateRow[]): SVGSVGElement {
  const machine = MACHINES[kind];
  const places = placesOf(machine);
  const live = taken.at(-1)?.to ?? machine.start;
  const seen = new Map(taken.map((row) => [`${row.from} ${row.to}`, row]));
  const last = taken.findLast(({ from, to }) => from !== to);
  const visited = new Set(taken.flatMap(({ from, to }) => [from, to]));
  const height = Math.max(...[...places.values()].map(({ y }) => y)) + 24;
  const edges = machine.edges.map((edge) => {
    const isTaken = seen.has(`${edge.from} ${edge.to}`);
    const isLast = last?.from === edge.from && last.to === edge.to;
    const path = curve(places.get(edge.from)!, places.get(edge.to)!);
    return { isTaken, isLast, edge, path };
  });
  edges.sort((a, b) => Number(a.isTaken) - Number(b.isTaken));
  const owner = kind === 'EP' ? 'Endpoint' : `Connection manager, ${kind} side`;
  const label = `${owner}: ${nameOf(live)}`;
  return svg(
    'svg',
    { class: 'diagram', viewBox: `0 0 ${WIDTH} ${height}`, role: 'img', 'aria-label': label },
    ...edges.map(({ isTaken, isLast, edge, path }) => {
      const state = isLast ? ' last' : isTaken ? ' taken' : '';
      const line = svg('path', { class: `edge${state}`, d: path });
      line.append(svg('title', {}, `${edge.from} to ${edge.to}: ${edge.labels.join(', ')}`));
      return line;
    }),
    ...[...places].map(([state, place]) => {
      const isLive = state === live;
      return chip(state, place, isLive ? 'live' : visited.has(state) ? 'visited' : '');
    }),
  );
}

function chip(state: string, { x, y, width }: Place, kind: string): SVGElement {
  const rect = { x: x - width / 2, y: y - CHIP_HEIGHT / 2, width, height: CHIP_HEIGHT, rx: 11 };
  return svg(
    'g',
    { class: `state ${kind}` },
    svg('rect', rect),
    svg('text', { x, y: y + 4, 'text-anchor': 'middle' }, nameOf(state)),
    svg('title', {}, state),
  );
}

function curve(from: Place, to: Place): string {
  const half = CHIP_HEIGHT / 2;
  if (from.y === to.y) {
    const side = to.x > from.x ? 1 : -1;
    const [x1, x2] = [from.x + (side * from.width) / 2, to.x - (side * to.width) / 2];
    return `M${x1} ${from.y}L${x2} ${to.y}`;
  }
  const down = to.y > from.y;
  const [y1, y2] = down ? [from.y + half, to.y - half] : [from.y - half, to.y + half];
  const bend = (y2 - y1) / 2;
  const [x1, x2] = [from.x, to.x].map((x) => x + (down ? -8 : 8));
  return `M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}`;
}
