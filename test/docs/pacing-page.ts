/** docs/pacing.md, and what each polling mode promises in docs/evd.md: providers/hca/pacing. */
import { LIMITS } from '../../providers/hca/pacing/limits.js';
import { BEGIN, ROUND } from '../../providers/hca/pacing/pumping.js';
import { BEHIND, BURST, DOORBELL, ORDER } from '../../providers/hca/pacing/sending.js';
import type { DecisionTable } from '../../providers/hca/pacing/table.js';
import { CONVERSATION, REQUEST, REST, SPIN } from '../../providers/hca/pacing/turning.js';
import { code, page, table } from './markdown.js';

/** In the order in which a message meets them. */
const TABLES: readonly DecisionTable<string, string>[] = [
  DOORBELL,
  REQUEST,
  BEGIN,
  ORDER,
  BEHIND,
  BURST,
  ROUND,
  REST,
  CONVERSATION,
  SPIN,
].map((decisions) => decisions.table);

function section({ question, rows }: DecisionTable<string, string>): string[] {
  const cells = rows.map(({ name, when = [], unless = [], then, reason, limits = [] }) => [
    name,
    [...when.map(code), ...unless.map((fact) => `not ${code(fact)}`)].join(', ') || 'else',
    code(then),
    [reason, ...limits.map(code)].join('; '),
  ]);
  return [`## ${question}`, table(['Row', 'When', 'Then', 'Reason; constants'], cells)];
}

export function pacingPage(): string {
  const limits = Object.entries(LIMITS).map(([name, { value, unit, why }]) => [
    code(name),
    `${value} ${unit}`,
    why,
  ]);
  return page(
    '# Pacing',
    [
      'What a device does next, and why: the decision tables of `providers/hca/pacing`, which',
      'this page is made of (`npm run docs`). The first row that fits decides. How they belong',
      'together: [architecture](architecture.md#what-happens-when).',
    ].join('\n'),
    ...TABLES.flatMap(section),
    '## Constants',
    table(['Constant', 'Value', 'Why'], limits),
  );
}

const BEGIN_MARK = '<!-- what each mode promises: npm run docs -->';
const END_MARK = '<!-- end -->';

/** The page of EVDs, with what each mode promises made anew. */
export function remadeEvdPage(text: string): string {
  const [before = '', rest = ''] = text.split(BEGIN_MARK);
  const [, after = ''] = rest.split(END_MARK);
  return `${before}${BEGIN_MARK}\n${promises()}\n${END_MARK}${after}`;
}

function promises(): string {
  const of = (name: keyof typeof LIMITS): string => `${LIMITS[name].value} ${LIMITS[name].unit}`;
  const msOf = (name: keyof typeof LIMITS): string => `${LIMITS[name].value / 1000} ms`;
  const { MOST_POLL_PERIOD, POLL_TRIAL_US } = LIMITS;
  const triesSeconds = Math.round((MOST_POLL_PERIOD.value * POLL_TRIAL_US.value) / 1e6);
  const bulkKib = LIMITS.BULK_BYTES.value / 1024;
  const lines = [
    ['- `event`: the process sleeps when nothing moves; a packet, a deadline or a call wakes it.'],
    [
      '- `adaptive`: the device tries both. It sleeps as in `event`, then polls for',
      `${msOf('POLL_TRIAL_US')}, and goes on polling if completions came in less than`,
      `${of('POLL_GAIN_PERCENT')} of the time; so it sleeps where a neighbour, a quota of CPU or`,
      'the peer wants the core. It tries again after a while that grows to',
      `${triesSeconds} s. Where it polls, the port is looked at for`,
      `${of('ADAPTIVE_POLL_US')} after each packet, ${of('IDLE_SLICE_US')} at a time.`,
      'A consumer that answers a message, in a handler or after',
      'an `await`, gets the next one without a turn of the event loop, for',
      `${of('POLL_SLICE_US')}; then timers and sockets of the application have their turn.`,
    ],
    [
      `- \`spin\`: nothing sleeps while packets come within ${of('SPIN_US')} of one another. A`,
      'loop of looks that has found nothing for so long gives its core up until a packet comes,',
      `for ${of('REST_US')} at most, and looks as long again (softroce with its native port). A`,
      `loop that does other things for over ${of('IDLE_SLICE_US')} between looks keeps its core.`,
    ],
    [
      `- All: at most ${of('MAX_PUMPS_A_TURN')} that microtasks ask for go by without a turn of`,
      `the event loop. ${LIMITS.EAGER_REQUESTS.value} requests of one task leave before its end,`,
      'fewer right behind it. Answers to several messages leave together when all microtasks',
      'have run, though each is posted behind an `await` of its own. A consumer that polls or',
      'awaits has its turn between two bursts, so that it can post receives again; one that has',
      `not come for ${of('PATIENT_PUMPS')} is not waited for. Memory that a peer reads in a row,`,
      `${bulkKib} KiB and more at a time, is looked after without sleeping until`,
      `${of('BULK_GAP_US')} after the last request.`,
    ],
  ];
  return lines.map((words) => words.join(' ')).join('\n');
}
