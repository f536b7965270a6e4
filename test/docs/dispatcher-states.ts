/** Event dispatchers: core/evd/common/evd-states.ts and upcall/policy.ts. */
import {
  EVD_CONFIGURATIONS,
  EVD_SUBSTATES,
  EVENT_CONSUMER_KINDS,
  type EventConsumerKind,
} from '../../core/evd/common/evd-states.js';
import { UPCALL_POLICIES } from '../../core/evd/upcall/policy.js';
import { type Arrow, code, diagram, table } from './markdown.js';

export function dispatcherStates(): string[] {
  const changes = Object.entries(EVD_SUBSTATES).map(([from, { bit, ...calls }]) => ({
    from,
    bit,
    calls: Object.entries(calls).filter(([, to]) => to !== from),
  }));
  const substates = changes.map(({ from, bit, calls }) => [
    code(from),
    `0x${bit.toString(16).padStart(2, '0')}`,
    calls.map(([call, to]) => `${code(call)}: ${to}`).join(', '),
  ]);
  const arrows = changes.flatMap(({ from, calls }) =>
    calls.map(([label, to]): Arrow => ({ from, to, label })),
  );
  const configurations = Object.entries(EVD_CONFIGURATIONS).map(([name, row]) => [
    code(name),
    row.threshold ? 'any' : '1',
    row.solicited ? 'solicited and failed ones' : 'all',
    code(row.subtype),
  ]);
  const takers = Object.entries(EVENT_CONSUMER_KINDS).map(([name, row]) => [
    row.text,
    row.admits.map((taker: EventConsumerKind) => EVENT_CONSUMER_KINDS[taker].text).join(', ') ||
      '-',
    yes(row.needsEnabled),
    yes(row.needsWaitable),
    name === 'none' ? '' : code(row.subtype ?? 'DAT_INVALID_STATE'),
  ]);
  const policies = Object.entries(UPCALL_POLICIES).map(([name, row]) => [
    code(name),
    yes(row.enabled),
    row.enabled ? (row.carriesEvent ? 'yes' : 'no: the consumer dequeues') : '',
    row.limit === undefined ? 'as the consumer says' : String(row.limit),
  ]);
  return [
    '## Event dispatcher',
    table(['Substate', 'Bit of `evd.query().state`', 'Calls that change it'], substates),
    diagram(arrows),
    '### Who takes the events',
    [
      'At most one at a time; a second one gets `DAT_INVALID_STATE` with the subtype of the first.',
      '`dequeue()` is always legal.',
    ].join('\n'),
    table(
      ['Taker', 'Admits', 'Stopped by disable()', 'Ended by setUnwaitable()', 'Subtype'],
      takers,
    ),
    '### How completions notify',
    table(
      ['Configuration', 'Threshold of wait', 'Completions that notify', 'Subtype'],
      configurations,
    ),
    '### Upcall policies',
    table(['Policy', 'Upcalls start', 'Carries an event', 'At a time'], policies),
  ];
}

function yes(value: boolean): string {
  return value ? 'yes' : 'no';
}
