/** Service points and connection requests: core/dat/sp-states.ts. */
import { CR_TRANSITIONS, SP_TRANSITIONS } from '../../core/dat/sp-states.js';
import { code, table } from './markdown.js';

export function servicePointStates(): string[] {
  const points = Object.entries(SP_TRANSITIONS).map(([trigger, { from, to }]) => [
    code(trigger),
    from.map(code).join(', '),
    code(to.unanswered),
    code(to.answered),
  ]);
  const requests = Object.entries(CR_TRANSITIONS).map(([call, { from, to, endpoint }]) => [
    code(`cr.${call}`),
    code(from),
    code(to),
    endpoint === 'accepts' ? 'goes on: `COMPLETION_PENDING`' : 'goes back: `UNCONNECTED`, or gone',
  ]);
  return [
    '## Service points',
    table(['Trigger', 'From', 'To, with requests unanswered', 'To, without'], points),
    '## Connection requests',
    table(['Call', 'From', 'To', 'The endpoint that the request holds'], requests),
  ];
}
