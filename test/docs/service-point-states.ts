/** Service points and connection requests: core/dat/connect/sp-states.ts. */
import { CR_TRANSITIONS, SP_TRANSITIONS } from '../../core/dat/connect/sp-states.js';
import { type Arrow, code, diagram, table } from './markdown.js';

const TRIGGERS: Readonly<Record<keyof typeof SP_TRANSITIONS, string>> = {
  free: 'it is freed, or its adapter closed',
  'one-shot': 'a reserved service point has handed out its one request',
  answered: 'the last request handed out is answered',
};

const ENDPOINTS = {
  accepts: 'goes on to COMPLETION_PENDING',
  returns: 'UNCONNECTED again; gone if the provider made it for the request',
} as const;

export function servicePointStates(): string[] {
  const points = Object.entries(SP_TRANSITIONS).map(([trigger, { from, to }]) => [
    from.map(code).join(', '),
    TRIGGERS[trigger as keyof typeof SP_TRANSITIONS],
    code(to.unanswered),
    code(to.answered),
  ]);
  const arrows = Object.entries(SP_TRANSITIONS).flatMap(([label, { from, to }]) =>
    from.flatMap((state): Arrow[] =>
      Object.values(to)
        .filter((next) => next !== state)
        .map((next) => ({ from: state, to: next, label })),
    ),
  );
  const requests = Object.entries(CR_TRANSITIONS).map(([call, { from, to, endpoint }]) => [
    code(from),
    code(call),
    code(to),
    ENDPOINTS[endpoint],
  ]);
  return [
    '## Service point',
    [
      'Public, reserved and common ones. `LISTENING` takes requests; `PENDING` takes none, and',
      'waits for answers to those handed out; `FREE` is the end.',
    ].join('\n'),
    table(['State', 'What happens', 'Next, with requests unanswered', 'Next, without'], points),
    diagram(arrows, 'LISTENING'),
    '## Connection request',
    'All but `PENDING` are the end of the handle: `DAT_INVALID_HANDLE_CR`.',
    table(['State', 'Call', 'Next', 'The endpoint that it holds'], requests),
    diagram(
      Object.entries(CR_TRANSITIONS).map(([label, { from, to }]): Arrow => ({ from, to, label })),
      'PENDING',
    ),
  ];
}
