/**
 * Mutants of the CM's state tables: each row is dropped, sent elsewhere, robbed of an action, or
 * has its queue pair fail behind the message, and the tests must notice.
 * Other orders of actions are not seen from outside: timers start and events are told at the end.
 */
import { join } from 'node:path';
import Mocha from 'mocha';
import { ACTIVE_TABLE, PASSIVE_TABLE } from '../../plugins/cm/connection/states.js';
import { ASKED_TABLE, ASKING_TABLE } from '../../plugins/cm/sidr/states.js';

interface Row {
  readonly next: string;
  readonly actions: readonly string[];
}
type Inputs = Record<string, Row>;

const TABLES: Readonly<Record<string, Readonly<Record<string, Inputs>>>> = {
  active: ACTIVE_TABLE,
  passive: PASSIVE_TABLE,
  asking: ASKING_TABLE,
  asked: ASKED_TABLE,
};

/** Quick ones first: most mutants die at once. */
const FILES = [
  'rows',
  'sidr-rows',
  'handshake',
  'mra',
  'hints',
  'refusals',
  'closing',
  'endings',
  'sidr',
];
/** They only cost time here. */
const SLOW = /random/;

interface Mutant {
  readonly name: string;
  readonly inputs: Inputs;
  readonly input: string;
  readonly row: Row | undefined;
}

function mutantsOf(table: string): Mutant[] {
  const states = Object.entries(TABLES[table] ?? {});
  return states.flatMap(([state, inputs]) =>
    Object.entries(inputs).flatMap(([input, row]) =>
      changesOf(state, row).map(([change, changed]) => ({
        name: `${table} ${state} ${input}: ${change}`,
        inputs,
        input,
        row: changed,
      })),
    ),
  );
}

function changesOf(state: string, row: Row): [string, Row | undefined][] {
  const { next, actions } = row;
  const others = ['IDLE', 'TIMEWAIT', 'ESTABLISHED', state].filter((other) => other !== next);
  const without = (i: number): string[] => actions.filter((_, at) => at !== i);
  const swapped = (i: number): string[] =>
    actions.map((action, at) => actions[at === i ? i + 1 : at === i + 1 ? i : at] ?? action);
  return [
    ['no row', undefined],
    ...[...new Set(others)].map((other): [string, Row] => [
      `to ${other}`,
      { next: other, actions },
    ]),
    ...actions.flatMap((action, i): [string, Row][] => {
      if (isMoot(state, row, action)) return [];
      return [[`without ${action}`, { next, actions: without(i) }]];
    }),
    ...actions.flatMap((action, i): [string, Row][] => {
      const follows = actions[i + 1] ?? '';
      if (action !== 'failQp' || !follows.startsWith('send')) return [];
      return [[`${follows} before failQp`, { next, actions: swapped(i) }]];
    }),
  ];
}

/** `goOn` leads to one of the others. */
const RESTARTS = ['startTimewait', 'startDreqRetries', 'goOn'];

/** Whether doing without an action changes nothing, by what the table does not say. */
function isMoot(state: string, { next, actions }: Row, action: string): boolean {
  // Whoever becomes idle stops all timers; nothing more can be told.
  if (next === 'IDLE') return action === 'mute' || action === 'stopTimers';
  // The one timer of these states is started anew; while REP is waited for there is another one.
  const restarts = actions.some((one) => RESTARTS.includes(one));
  return action === 'stopTimers' && restarts && !/^(REQ_SENT|MRA_REQ_RCVD)$/.test(state);
}

/** Table, state, input and change of each mutant there is. */
export function rowNames(): string[] {
  return Object.keys(TABLES).flatMap((table) => mutantsOf(table).map(({ name }) => name));
}

async function failures(mocha: Mocha): Promise<number> {
  return new Promise((resolve) => {
    mocha.run((failed) => resolve(failed));
  });
}

export interface RowOutcome {
  readonly tried: number;
  /** Table, state, input and change of each. */
  readonly survivors: readonly string[];
}

export async function tryRows(): Promise<RowOutcome> {
  const mocha = new Mocha({ bail: true, timeout: 5000, reporter: class {} as never });
  mocha.cleanReferencesAfterRun(false).grep(SLOW).invert();
  for (const file of FILES) {
    mocha.addFile(join(import.meta.dirname, `../unit/cm/${file}.test.js`));
  }
  await mocha.loadFilesAsync();
  if ((await failures(mocha)) > 0) throw new Error('the tests fail without a mutation');
  const survivors: string[] = [];
  let tried = 0;
  for (const { name, inputs, input, row } of Object.keys(TABLES).flatMap(mutantsOf)) {
    const original = inputs[input] as Row;
    if (row === undefined) delete inputs[input];
    else inputs[input] = row;
    if ((await failures(mocha)) === 0) survivors.push(name);
    inputs[input] = original;
    tried++;
  }
  return { tried, survivors };
}
