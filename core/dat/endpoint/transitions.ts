/** The transitions of an endpoint, as rows of the adapter's flight log, and in words. */
import { nameOf } from '../../spi/index.js';
import type { FlightLog } from '../../spi/internal/index.js';
import { EP_TRANSITIONS, EpState, type EpStateName, type EpTrigger } from './states.js';

/** Why a state is another: a trigger, or a call that came to nothing. */
export type TransitionReason = EpTrigger | 'connect threw' | 'accept threw';

const REASONS: readonly TransitionReason[] = [
  ...(Object.keys(EP_TRANSITIONS) as EpTrigger[]),
  'connect threw',
  'accept threw',
];
/** How many of an endpoint's last ones are told. */
const TRANSITIONS = 32;

/** @returns the endpoint's last row from now on */
export function noteTransition(
  log: FlightLog,
  last: number,
  nowUs: number,
  from: EpStateName,
  to: EpStateName,
  why: TransitionReason,
): number {
  return log.add(last, nowUs, REASONS.indexOf(why), EpState[from], EpState[to]);
}

/** Those up to the row `last`, oldest first. */
export function transitionLines(log: FlightLog, last: number): string[] {
  return log.read(last, TRANSITIONS).map(({ timeUs, event, a, b }) => {
    const [from, to] = [nameOf(EpState, a), nameOf(EpState, b)];
    return `${Math.round(timeUs)} us ${from} -> ${to} (${REASONS[event]})`;
  });
}
