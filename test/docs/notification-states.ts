/** Consumer notification objects: core/evd/cno/states.ts. */
import { CNO_STATES } from '../../core/evd/cno/states.js';
import { type Arrow, code, diagram, table } from './markdown.js';

export function notificationStates(): string[] {
  const steps = Object.entries(CNO_STATES).flatMap(([from, row]) =>
    Object.entries(row).map(([input, step]) => ({ from, input, ...step })),
  );
  const rows = steps.map(({ from, input, to, remembers, answers, waiters }) => [
    code(from),
    input,
    code(to),
    [
      remembers === true ? 'the EVD becomes the hint' : '',
      answers === true ? 'the taker is answered at once' : '',
      waiters === undefined ? '' : `waiters get ${WAITERS[waiters]}`,
    ]
      .filter(Boolean)
      .join('; '),
  ]);
  const arrows = steps
    .filter(({ from, to }) => from !== to)
    .map(({ from, to, input }): Arrow => ({ from, to, label: input }));
  return [
    '## Notification object',
    [
      '`notify`: an EVD of it has a new event, or `cno.trigger()`. `take`: a waiter, a subscriber',
      'or a reader of its handle. `orphan`: its last EVD has gone. `close`: freed, or its',
      'adapter closed.',
    ].join('\n'),
    table(['State', 'What happens', 'Next', 'With it'], rows),
    diagram(arrows, 'UNTRIGGERED'),
  ];
}

const WAITERS = { 'no EVD': 'no EVD', dead: '`DAT_INVALID_STATE_CNO_DEAD`' } as const;
