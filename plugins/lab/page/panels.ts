/** The panels beside the ladder: fields, states, queues, and what runs. */
import { fieldsOf, summaryOf } from '../run/dissect.js';
import { FATES, type QueueRow, type Recording, type StateRow } from '../run/recording.js';
import { diagramOf } from './diagram.js';
import { html, timeText } from './dom.js';

/** Slots of a queue that are drawn; a number stands for more. */
const MOST_SLOTS = 16;
const RUNNING_LINES = 9;

/** Every field of a packet. */
export function fieldsPanel(recording: Recording, index: number): Node[] {
  const packet = recording.packets[index];
  if (!packet)
    return [html('p', { class: 'hint' }, 'Select a packet in the ladder to see its fields.')];
  const { name } = summaryOf(packet.bytes);
  const arrivals = packet.arrivals.map(({ timeUs }) => timeText(timeUs)).join(', ');
  const [from, to] = [recording.nodes[packet.from]!, recording.nodes[packet.to]!];
  const end = arrivals === '' ? FATES[packet.fate] : `arrived at ${arrivals}`;
  return [
    html('p', { class: 'packet-title' }, html('strong', {}, name), ` from ${from} to ${to}`),
    html('p', { class: 'hint' }, `Sent at ${timeText(packet.sentUs)}, ${end}.`),
    ...fieldsOf(packet.bytes).map((group) =>
      html(
        'table',
        { class: 'fields' },
        html('caption', {}, group.name),
        ...group.fields.map(([field, value]) =>
          html('tr', {}, html('th', { scope: 'row' }, field), html('td', {}, value)),
        ),
      ),
    ),
  ];
}

/** A diagram for each endpoint and each side of a connection, as they are now. */
export function statesPanel(recording: Recording, nowUs: number): Node[] {
  const all = recording.states.filter(({ machine }) => machine !== 'QP');
  const machines = new Map<string, StateRow[]>();
  for (const row of all) {
    const key = `${row.node} ${row.machine} ${row.name}`;
    machines.set(key, [...(machines.get(key) ?? []), row]);
  }
  if (machines.size === 0) {
    return [html('p', { class: 'hint' }, 'No endpoint and no connection has a state here.')];
  }
  return [...machines.values()].map((rows) => {
    const [{ node, machine, name, role }] = rows as [StateRow];
    const taken = rows.filter(({ timeUs }) => timeUs <= nowUs);
    const kind = machine === 'EP' ? 'EP' : (role as 'active' | 'passive');
    const what = machine === 'EP' ? 'endpoint' : `connection manager (${role} side)`;
    const number = machine === 'EP' ? name.replace('ep ', ' ') : '';
    const last = taken.findLast(({ from, to }) => from !== to);
    const since = last ? `since ${timeText(last.timeUs)}` : 'from the start';
    return html(
      'figure',
      { class: 'machine' },
      html('figcaption', {}, `${recording.nodes[node]}: ${what}${number}, ${since}`),
      diagramOf(kind, taken),
    );
  });
}

/** The queues of the event dispatchers, and what runs. */
export function queuesPanel(recording: Recording, nowUs: number): Node[] {
  const now = new Map<string, QueueRow>();
  for (const row of recording.queues) if (row.timeUs <= nowUs) now.set(row.name, row);
  const queues = [...now.values()].map(({ node, name, pending, policy, upcallsInProgress }) =>
    html(
      'figure',
      { class: 'queue' },
      html(
        'figcaption',
        {},
        name.startsWith(recording.nodes[node]!) ? name : `${recording.nodes[node]}: ${name}`,
        html('span', { class: 'policy', title: 'upcall policy' }, policy),
      ),
      html(
        'div',
        { class: 'slots', role: 'img', 'aria-label': `${pending} events wait` },
        ...Array.from({ length: MOST_SLOTS }, (_, i) =>
          html('span', { class: i < pending ? 'slot full' : 'slot' }),
        ),
        html('span', { class: 'count' }, `${pending} waiting`),
      ),
      html('div', { class: 'upcalls' }, upcallText(upcallsInProgress)),
    ),
  );
  const lines = recording.lines.filter(({ timeUs, kind }) => timeUs <= nowUs && kind !== 'log');
  const running = lines
    .slice(-RUNNING_LINES)
    .map(({ timeUs, node, kind, text }) =>
      html(
        'li',
        { class: kind },
        html('span', { class: 'when' }, timeText(timeUs)),
        html('span', { class: 'who' }, recording.nodes[node] ?? ''),
        html('span', { class: 'what' }, text),
      ),
    );
  return [
    ...(queues.length > 0
      ? queues
      : [html('p', { class: 'hint' }, 'No event dispatcher is watched here.')]),
    html('h3', {}, 'What runs'),
    html('ol', { class: 'running' }, ...running),
  ];
}

function upcallText(count: number): string {
  if (count === 0) return 'no upcall in progress';
  return `${'▶ '.repeat(count)}${count} ${count === 1 ? 'upcall' : 'upcalls'} in progress`;
}

/** The ladder as a table: its text alternative. */
export function packetTable(
  recording: Recording,
  selected: number,
  onSelect: (index: number) => void,
): HTMLTableElement {
  const head = ['#', 'Sent', 'From', 'To', 'Packet', 'Details', 'Arrived'];
  const rows = recording.packets.slice(0, 5000).map((packet, index) => {
    const { name, detail } = summaryOf(packet.bytes);
    const arrivals = packet.arrivals.map(({ timeUs }) => timeText(timeUs)).join(', ');
    const button = html('button', { type: 'button', class: 'link' }, name);
    button.addEventListener('click', () => onSelect(index));
    const current = index === selected ? { 'aria-current': 'true' } : {};
    return html(
      'tr',
      current,
      html('td', {}, String(index + 1)),
      html('td', {}, timeText(packet.sentUs)),
      html('td', {}, recording.nodes[packet.from] ?? ''),
      html('td', {}, recording.nodes[packet.to] ?? ''),
      html('td', {}, button),
      html('td', {}, detail),
      html('td', {}, arrivals === '' ? FATES[packet.fate] : arrivals),
    );
  });
  return html(
    'table',
    { class: 'packets' },
    html('caption', {}, `${recording.packets.length} packets`),
    html('thead', {}, html('tr', {}, ...head.map((each) => html('th', { scope: 'col' }, each)))),
    html('tbody', {}, ...rows),
  );
}
