/**
 * The place of an endpoint on its event dispatchers: what it takes there, step by step, and gives
 * back in reverse.
 */
import type { OverrunListener } from '../../evd/index.js';
import { ownRequests } from '../work/attributes.js';
import { configurationOf } from './completion-flags.js';
import type { EpInit } from './types.js';

interface Step {
  take(init: EpInit, listener: OverrunListener): void;
  giveBack(init: EpInit, listener: OverrunListener): void;
}

/** What an endpoint has on an event dispatcher of its completions. */
function completionSteps(evd: 'recvEvd' | 'requestEvd'): readonly Step[] {
  return [
    {
      take: (init) => init[evd].feed.addReserve(uncounted(init, evd)),
      giveBack: (init) => init[evd].feed.removeReserve(uncounted(init, evd)),
    },
    {
      take: (init) => init.connectEvd.feed.addErrorSource(init[evd].feed),
      giveBack: (init) => init.connectEvd.feed.removeErrorSource(init[evd].feed),
    },
    {
      take: (init, listener) => init[evd].feed.addOverrunListener(listener),
      giveBack: (init, listener) => init[evd].feed.removeOverrunListener(listener),
    },
  ];
}

/** Completions that the consumer does not count: of a marker, and of a keep-alive's probe. */
function uncounted(init: EpInit, evd: 'recvEvd' | 'requestEvd'): number {
  return init[evd] === init.requestEvd ? ownRequests(init.attributes) : 1;
}

/** With one event dispatcher for both kinds of completions. */
const STEPS: readonly Step[] = [
  {
    take: ({ connectEvd }) => connectEvd.feed.addUser(),
    giveBack: ({ connectEvd }) => connectEvd.feed.removeUser(),
  },
  {
    take: ({ recvEvd, attributes }) =>
      recvEvd.feed.addUser(configurationOf(attributes.recvCompletionFlags)),
    giveBack: ({ recvEvd, attributes }) =>
      recvEvd.feed.removeUser(configurationOf(attributes.recvCompletionFlags)),
  },
  {
    take: ({ requestEvd, attributes }) =>
      requestEvd.feed.addUser(configurationOf(attributes.requestCompletionFlags)),
    giveBack: ({ requestEvd, attributes }) =>
      requestEvd.feed.removeUser(configurationOf(attributes.requestCompletionFlags)),
  },
  ...completionSteps('recvEvd'),
];
const STEPS_OF_TWO: readonly Step[] = [
  ...STEPS,
  ...completionSteps('requestEvd'),
  {
    take: ({ recvEvd, requestEvd }) => recvEvd.feed.addErrorSource(requestEvd.feed),
    giveBack: ({ recvEvd, requestEvd }) => recvEvd.feed.removeErrorSource(requestEvd.feed),
  },
  {
    take: ({ recvEvd, requestEvd }) => requestEvd.feed.addErrorSource(recvEvd.feed),
    giveBack: ({ recvEvd, requestEvd }) => requestEvd.feed.removeErrorSource(recvEvd.feed),
  },
];

function stepsOf(init: EpInit): readonly Step[] {
  return init.requestEvd === init.recvEvd ? STEPS : STEPS_OF_TWO;
}

/**
 * Takes the endpoint's place on the event dispatchers of `init`.
 * @param listener is told when completions are lost
 * @throws DatError DAT_INVALID_STATE when the streams of an EVD do not go together: it has taken
 * nothing then
 */
export function joinEvds(init: EpInit, listener: OverrunListener): void {
  const steps = stepsOf(init);
  let taken = 0;
  try {
    for (const step of steps) {
      step.take(init, listener);
      taken++;
    }
  } catch (error) {
    giveBack(steps, taken, init, listener);
    throw error;
  }
}

/** The endpoint, with the same `init`, has no place there any more. */
export function leaveEvds(init: EpInit, listener: OverrunListener): void {
  const steps = stepsOf(init);
  giveBack(steps, steps.length, init, listener);
}

function giveBack(
  steps: readonly Step[],
  taken: number,
  init: EpInit,
  listener: OverrunListener,
): void {
  for (let at = taken - 1; at >= 0; at--) steps[at]!.giveBack(init, listener);
}
