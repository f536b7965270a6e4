/** Endpoints: core/dat/endpoint/states.ts. */
import {
  EP_STATES,
  EP_TRANSITIONS,
  type EpCall,
  EpState,
  type EpStateName,
  type Legality,
} from '../../core/dat/endpoint/states.js';
import { EP_ATTRIBUTE_FIELDS, EP_FIELDS } from '../../core/dat/endpoint/modify.js';
import { type Arrow, code, diagram, table } from './markdown.js';

const SIGNS: Readonly<Record<Legality, string>> = {
  legal: 'yes',
  illegal: '-',
  'no-op': 'no-op',
  flushed: 'flushed',
  withheld: 'withheld',
};

export function endpointStates(): string[] {
  const names = Object.keys(EP_STATES) as EpStateName[];
  const calls = Object.keys(EP_STATES.UNCONNECTED.calls) as EpCall[];
  const byNumber = [...names].sort((a, b) => EpState[a] - EpState[b]);
  const numbers = byNumber.map((name) => [
    String(EpState[name]),
    code(name),
    code(EP_STATES[name].subtype),
  ]);
  const legality = calls.map((call) => [
    code(call),
    ...names.map((name) => SIGNS[EP_STATES[name].calls[call]]),
  ]);
  const transitions = Object.entries(EP_TRANSITIONS).map(([trigger, { from, to }]) => [
    trigger,
    from.map(code).join(', '),
    code(to),
  ]);
  const fields = Object.entries({ ...EP_FIELDS, ...EP_ATTRIBUTE_FIELDS }).map(
    ([field, { when, rebuilds }]) => [
      code(field),
      when === 'never' ? when : code(when),
      when === 'never' ? '' : rebuilds ? 'yes' : 'no',
    ],
  );
  const arrows = Object.entries(EP_TRANSITIONS).flatMap(([label, { from, to }]): Arrow[] =>
    from.map((state) => ({ from: state, to, label })),
  );
  return [
    '## Endpoint',
    table(['Number', 'State', 'Subtype of DAT_INVALID_STATE'], numbers),
    '### What is legal in which state',
    [
      '`-`: `DAT_INVALID_STATE`. `no-op`: taken, nothing happens. `flushed`: taken, and completed',
      'as FLUSHED at once. `withheld`: taken, and sent when the connection is established.',
    ].join('\n'),
    table(['Call', ...names.map(shorten)], legality),
    '### What `ep.modify` may change',
    'The row of the table above that decides, or never (`DAT_INVALID_PARAMETER`).',
    table(['Field', 'Row', 'Makes the queue pair anew'], fields),
    '### What leads from one to the next',
    table(['Trigger', 'From', 'To'], transitions),
    diagram(arrows, 'UNCONNECTED'),
  ];
}

/** `ACTIVE_CONNECTION_PENDING` is too wide for a column. */
function shorten(name: EpStateName): string {
  return name.replace('_CONNECTION_PENDING', '_CONN').replace('_PENDING', '_PEND');
}
