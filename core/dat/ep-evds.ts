/**
 * The place of an endpoint on its event dispatchers: what it takes there, step by step, and gives
 * back in reverse. A number says how far it has come, where closures would say it at a hundred
 * times the size.
 */
import type { OverrunListener } from '../evd/index.js';
import { configurationOf } from './ep-completion-flags.js';
import type { EpInit } from './ep-types.js';

interface Step {
  take(init: EpInit, listener: OverrunListener): void;
  giveBack(init: EpInit, listener: OverrunListener): void;
}

/** What an endpoint has on an event dispatcher of its completions. */
function completionSteps(evd: 'recvEvd' | 'requestEvd'): readonly Step[] {
  return [
    {
      take: (init) => init[evd].addReserve(1),
      giveBack: (init) => init[evd].removeReserve(1),
    },
    {
      take: (init) => init.connectEvd.addErrorSource(init[evd]),
      giveBack: (init) => init.connectEvd.removeErrorSource(init[evd]),
    },
    {
      take: (init, listener) => init[evd].addOverrunListener(listener),
      giveBack: (init, listener) => init[evd].removeOverrunListener(listener),
    },
  ];
}

const STEPS: readonly Step[] = [
  {
    take: ({ connectEvd }) => connectEvd.addUser(),
    giveBack: ({ connectEvd }) => connectEvd.removeUser(),
  },
  {
    take: ({ recvEvd, attributes }) =>
      recvEvd.addUser(configurationOf(attributes.recvCompletionFlags)),
    giveBack: ({ recvEvd, attributes }) =>
      recvEvd.removeUser(configurationOf(attributes.recvCompletionFlags)),
  },
  {
    take: ({ requestEvd, attributes }) =>
      requestEvd.addUser(configurationOf(attributes.requestCompletionFlags)),
    giveBack: ({ requestEvd, attributes }) =>
      requestEvd.removeUser(configurationOf(attributes.requestCompletionFlags)),
  },
  ...completionSteps('recvEvd'),
];
const OTHER_STEPS = completionSteps('requestEvd');

function stepAt(init: EpInit, index: number): Step | undefined {
  const other = init.requestEvd === init.recvEvd ? undefined : OTHER_STEPS[index - STEPS.length];
  return STEPS[index] ?? other;
}

export class EpEvds {
  /** Steps taken. */
  private taken = 0;

  /** @param listener is told when completions are lost */
  constructor(
    private init: EpInit,
    private readonly listener: OverrunListener,
  ) {}

  /**
   * Takes its place on the event dispatchers of `init`; it must have none.
   * @throws DatError DAT_INVALID_STATE when the streams of an EVD do not go together; `leave` gives
   * back what was taken before
   */
  join(init: EpInit): void {
    this.init = init;
    for (let step = stepAt(init, this.taken); step; step = stepAt(init, this.taken)) {
      step.take(init, this.listener);
      this.taken++;
    }
  }

  leave(): void {
    const { init } = this;
    for (; this.taken > 0; this.taken--)
      stepAt(init, this.taken - 1)!.giveBack(init, this.listener);
  }
}
