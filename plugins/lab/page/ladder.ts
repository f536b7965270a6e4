/** The ladder: a lifeline for each node, an arrow for each packet, and what applications do. */
import { FATES, type LineRow, type Recording } from '../run/recording.js';
import { summaryOf } from '../run/dissect.js';
import { svg, timeText } from './dom.js';
import type { Layout, PlacedLine, PlacedPacket } from './layout.js';

/** Drawn beyond the visible part on each side. */
const MARGIN = 300;
const LEAST_WIDTH = 560;
const TEXT_GAP = 12;
const LOST_SHARE = 0.62;
/** From a lifeline to the text of an arrow that begins there. */
const LABEL_GAP = 16;
/** Width of a character of the remarks, for cutting them. */
const CHARACTER = 7.3;

export interface View {
  readonly recording: Recording;
  readonly layout: Layout;
  /** Place of the cursor. */
  readonly y: number;
  readonly selected: number;
}

export class Ladder {
  private view: View | undefined;

  /** @param onSelect called with the index of a packet; @param onMove with a place */
  constructor(
    private readonly scroller: HTMLElement,
    private readonly picture: SVGSVGElement,
    private readonly onSelect: (index: number) => void,
    onMove: (y: number) => void,
  ) {
    scroller.addEventListener('scroll', () => this.draw());
    picture.addEventListener('click', (event) => {
      const target = (event.target as Element).closest('[data-packet]');
      if (target) this.onSelect(Number(target.getAttribute('data-packet')));
      else onMove(event.offsetY);
    });
  }

  show(view: View): void {
    this.view = view;
    this.draw();
  }

  /** Scrolls so that a place is visible. */
  follow(y: number): void {
    const { scrollTop, clientHeight } = this.scroller;
    if (y > scrollTop + 40 && y < scrollTop + clientHeight * 0.72) return;
    this.scroller.scrollTop = Math.max(0, y - clientHeight * 0.45);
  }

  draw(): void {
    if (!this.view) return;
    const { recording, layout } = this.view;
    const width = Math.max(LEAST_WIDTH, this.scroller.clientWidth);
    const lanes = lanesOf(recording.nodes.length, width);
    const top = this.scroller.scrollTop - MARGIN;
    const bottom = this.scroller.scrollTop + this.scroller.clientHeight + MARGIN;
    const height = Math.max(layout.height, this.scroller.clientHeight - 4);
    this.picture.setAttribute('width', String(width));
    this.picture.setAttribute('height', String(height));
    const packets = layout.packets.filter(({ sentY, endY }) => endY > top && sentY < bottom);
    const lines = layout.lines.filter(({ y }) => y > top && y < bottom);
    this.picture.replaceChildren(
      ...lanes.map((x) => svg('line', { class: 'lane', x1: x, x2: x, y1: 0, y2: height })),
      ...this.times(top, bottom, width),
      ...lines.map((line) => this.line(line, lanes)),
      ...packets.map((packet) => this.packet(packet, lanes)),
      ...this.cursor(width),
    );
  }

  private line({ line, y }: PlacedLine, lanes: readonly number[]): SVGElement {
    const isLeft = line.node === 0 && lanes.length > 1;
    const x = lanes[line.node]!;
    const future = y > this.view!.y ? ' future' : '';
    const room = (isLeft ? x : (lanes[0] ?? 0)) - 2 * TEXT_GAP;
    const most = Math.max(12, Math.floor((lanes.length > 1 ? room : 500) / CHARACTER));
    const text = shortened(line);
    const shown = text.length > most ? `${text.slice(0, most - 1)}…` : text;
    return svg(
      'text',
      {
        class: `line ${line.kind}${future}`,
        x: isLeft ? x - TEXT_GAP : x + TEXT_GAP,
        y: y + 4,
        'text-anchor': isLeft ? 'end' : 'start',
      },
      shown,
      svg('title', {}, line.text),
    );
  }

  private packet(placed: PlacedPacket, lanes: readonly number[]): SVGElement {
    const { packet, index, sentY, arrivalYs } = placed;
    const { y: cursor, selected } = this.view!;
    const { kind, name, detail } = summaryOf(packet.bytes);
    const [x1, x2] = [lanes[packet.from]!, lanes[packet.to]!];
    const isLost = packet.fate !== 'delivered' && packet.fate !== 'unknown';
    const ends = arrivalYs.length > 0 ? arrivalYs : [placed.endY];
    const classes = ['packet', kind];
    if (sentY > cursor) classes.push('future');
    if (index === selected) classes.push('selected');
    if (isLost) classes.push('lost');
    const label = [name, detail].filter(Boolean).join(' · ');
    const direction = x2 > x1 ? 1 : -1;
    const group = svg('g', { class: classes.join(' '), 'data-packet': index });
    for (const y2 of ends) {
      const share = isLost ? LOST_SHARE : 1;
      const [endX, endY] = [x1 + (x2 - x1) * share, sentY + (y2 - sentY) * share];
      group.append(
        svg('line', { class: 'hit', x1, y1: sentY, x2: endX, y2: endY }),
        svg('line', { class: 'arrow', x1, y1: sentY, x2: endX, y2: endY }),
      );
      group.append(isLost ? cross(endX, endY) : head(x1, sentY, endX, endY));
      if (cursor > sentY && cursor < endY) {
        const at = (cursor - sentY) / (endY - sentY);
        group.append(svg('circle', { class: 'dot', cx: x1 + (endX - x1) * at, cy: cursor, r: 5 }));
      }
    }
    const first = ends[0]!;
    const slope = (first - sentY) / Math.abs(x2 - x1);
    const text = {
      class: 'label',
      x: x1 + direction * LABEL_GAP,
      y: sentY + Math.min(slope * LABEL_GAP, 6) - 4,
      'text-anchor': direction > 0 ? 'start' : 'end',
    };
    const fate = isLost
      ? ` · ${FATES[packet.fate]}`
      : packet.arrivals.length > 1
        ? ' · duplicated'
        : '';
    const corrupt = packet.arrivals.some(({ isCorrupt }) => isCorrupt) ? ' · corrupted' : '';
    group.append(svg('text', text, `${label}${fate}${corrupt}`));
    return group;
  }

  /** The time beside each longer gap. */
  private times(top: number, bottom: number, width: number): SVGElement[] {
    const shown: SVGElement[] = [];
    let lastY = -Infinity;
    for (const { timeUs, y } of this.view!.layout.moments) {
      if (y - lastY < 46) continue;
      lastY = y;
      if (y < top || y > bottom) continue;
      shown.push(svg('line', { class: 'tick', x1: 0, x2: width, y1: y, y2: y }));
      shown.push(svg('text', { class: 'time', x: 6, y: y - 3 }, timeText(timeUs)));
    }
    return shown;
  }

  private cursor(width: number): SVGElement[] {
    const { y } = this.view!;
    return [svg('line', { class: 'cursor', x1: 0, x2: width, y1: y, y2: y })];
  }
}

/** Places of the lifelines. */
export function lanesOf(count: number, room: number): readonly number[] {
  const width = Math.max(LEAST_WIDTH, room);
  if (count === 1) return [width * 0.3];
  const edge = count === 2 ? Math.max(120, width * 0.26) : width * 0.12;
  return Array.from({ length: count }, (_, i) => edge + ((width - 2 * edge) * i) / (count - 1));
}

/** A call or an event in a few words; the whole line is its tooltip. */
function shortened({ kind, text }: LineRow): string {
  if (kind === 'event') {
    const [, number = ''] = /number=(\w+)/.exec(text) ?? [];
    const [, operation] = /operation=(\w+)/.exec(text) ?? [];
    const [, status] = /status=(\w+)/.exec(text) ?? [];
    return operation === undefined ? number : `${operation} ${status ?? ''}`;
  }
  return kind === 'call' ? text.replace(/\b(?:ia|ep|evd|cr|psp)=\d+(?:, )?/g, '') : text;
}

function head(x1: number, y1: number, x2: number, y2: number): SVGElement {
  const angle = (Math.atan2(y2 - y1, x2 - x1) * 180) / Math.PI;
  const transform = `translate(${x2} ${y2}) rotate(${angle})`;
  return svg('path', { class: 'head', d: 'M0 0L-9 -4L-9 4Z', transform });
}

function cross(x: number, y: number): SVGElement {
  const d = `M${x - 5} ${y - 5}L${x + 5} ${y + 5}M${x - 5} ${y + 5}L${x + 5} ${y - 5}`;
  return svg('path', { class: 'cross', d });
}
