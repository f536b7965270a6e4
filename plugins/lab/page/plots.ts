/** Plots of throughput and latency over time. */
import type { Recording } from '../run/recording.js';
import { summaryOf } from '../run/dissect.js';
import { svg, timeText } from './dom.js';

const WIDTH = 400;
const HEIGHT = 130;
const LEFT = 58;
const BOTTOM = 22;
const TOP = 10;
const RIGHT = 10;

/** A picture whose cursor can be moved. */
export interface Plot {
  readonly title: string;
  readonly element: SVGSVGElement;
  move(nowUs: number): void;
}

type Point = readonly [x: number, y: number];

interface Axis {
  readonly most: number;
  readonly text: (value: number) => string;
}

function bytesText(bytes: number): string {
  return bytes < 1024 ? `${Math.round(bytes)} B` : `${(bytes / 1024).toFixed(1)} KiB`;
}

/** Payload that has arrived, and the rate at which it did. */
export function throughputOf(recording: Recording): Plot {
  const arrived = recording.packets
    .flatMap(({ bytes, arrivals }) => {
      const { payloadBytes } = summaryOf(bytes);
      return arrivals.slice(0, 1).map(({ timeUs }): Point => [timeUs, payloadBytes]);
    })
    .filter(([, bytes]) => bytes > 0)
    .sort(([a], [b]) => a - b);
  let sum = 0;
  const points: Point[] = [[0, 0]];
  for (const [timeUs, bytes] of arrived) {
    points.push([timeUs, sum]);
    points.push([timeUs, (sum += bytes)]);
  }
  points.push([recording.endUs, sum]);
  const spanUs = (arrived.at(-1)?.[0] ?? 0) - (arrived[0]?.[0] ?? 0);
  const mbits = spanUs > 0 ? Math.round((sum * 8) / spanUs) : 0;
  const rate = mbits > 0 ? `, ${mbits} Mbit/s from the first to the last` : '';
  const title = `Payload delivered: ${bytesText(sum)}${rate}`;
  const axis = { most: Math.max(sum, 1), text: bytesText };
  const { x, y, plot } = plotOf(recording, title, axis);
  const d = points.map(([timeUs, bytes], i) => `${i === 0 ? 'M' : 'L'}${x(timeUs)} ${y(bytes)}`);
  plot.element.append(svg('path', { class: 'curve', d: d.join('') }));
  return plot;
}

/** The time from each request to its completion. */
export function latenciesOf(recording: Recording): Plot {
  const done = recording.requests.filter(({ doneUs }) => doneUs !== Infinity);
  const latencies = done.map(({ postedUs, doneUs }) => doneUs - postedUs).sort((a, b) => a - b);
  const median = latencies[Math.floor(latencies.length / 2)];
  const title =
    median === undefined
      ? 'Latency of requests: none has completed'
      : `Latency of ${latencies.length} requests: median ${timeText(median)}, ` +
        `longest ${timeText(latencies.at(-1) ?? 0)}`;
  const axis = { most: Math.max(latencies.at(-1) ?? 1, 1), text: timeText };
  const { x, y, plot } = plotOf(recording, title, axis);
  for (const { postedUs, doneUs, status, opcode } of done) {
    const dot = svg('circle', {
      class: status === 'SUCCESS' ? 'point' : 'point failed',
      cx: x(postedUs),
      cy: y(doneUs - postedUs),
      r: 3.5,
    });
    dot.append(svg('title', {}, `${opcode}: ${status} after ${timeText(doneUs - postedUs)}`));
    plot.element.append(dot);
  }
  return plot;
}

function plotOf(
  { endUs }: Recording,
  title: string,
  axis: Axis,
): { x: (timeUs: number) => number; y: (value: number) => number; plot: Plot } {
  const most = Math.max(endUs, 1);
  const x = (timeUs: number): number => LEFT + ((WIDTH - LEFT - RIGHT) * timeUs) / most;
  const y = (value: number): number =>
    HEIGHT - BOTTOM - ((HEIGHT - BOTTOM - TOP) * value) / axis.most;
  const cursor = svg('line', { class: 'cursor', y1: TOP, y2: HEIGHT - BOTTOM });
  const size = { class: 'plot', viewBox: `0 0 ${WIDTH} ${HEIGHT}` };
  const element = svg('svg', { ...size, role: 'img', 'aria-label': title }, cursor);
  for (const share of [0, 0.5, 1]) {
    const at = y(axis.most * share);
    const text = axis.text(axis.most * share);
    element.append(
      svg('line', { class: 'grid', x1: LEFT, x2: WIDTH - RIGHT, y1: at, y2: at }),
      svg('text', { class: 'axis', x: LEFT - 6, y: at + 3, 'text-anchor': 'end' }, text),
    );
    const anchor = share === 0 ? 'start' : share === 1 ? 'end' : 'middle';
    const place = { class: 'axis', x: x(most * share), y: HEIGHT - 6, 'text-anchor': anchor };
    element.append(svg('text', place, timeText(most * share)));
  }
  const move = (nowUs: number): void => {
    for (const end of ['x1', 'x2']) cursor.setAttribute(end, String(x(Math.min(nowUs, most))));
  };
  move(0);
  return { x, y, plot: { title, element, move } };
}
