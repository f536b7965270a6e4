/**
 * Decision tables: rows that a person reads, compiled once into an array that is indexed by the
 * facts, so that a decision at run time is one load.
 */
import type { LimitName } from './limits.js';

export interface Row<Fact extends string, Action extends string> {
  readonly name: string;
  /** Facts that must hold, and facts that must not. */
  readonly when?: readonly Fact[];
  readonly unless?: readonly Fact[];
  readonly then: Action;
  readonly reason: string;
  /** The constants behind its facts or its action. */
  readonly limits?: readonly LimitName[];
}

/** The first row that fits decides. */
export interface DecisionTable<Fact extends string, Action extends string> {
  /** The question that the table decides. */
  readonly question: string;
  /** The first one is bit 0 of the index. */
  readonly facts: readonly Fact[];
  readonly rows: readonly Row<Fact, Action>[];
}

export interface Decisions<Fact extends string, Action extends string> {
  readonly table: DecisionTable<Fact, Action>;
  /** The number of each action. */
  readonly actions: Readonly<Record<Action, number>>;
  /** The number of the action for each combination of facts. */
  readonly byFacts: Uint8Array;
}

/**
 * @param names of the actions by their numbers; default: as the rows come
 * @throws Error when no row decides a combination, or when a row decides none
 */
export function compile<const Fact extends string, const Action extends string>(
  table: DecisionTable<Fact, Action>,
  names: readonly Action[] = [...new Set(table.rows.map(({ then }) => then))],
): Decisions<Fact, Action> {
  const { question, facts, rows } = table;
  const bitsOf = (some: readonly Fact[] = []): number =>
    some.reduce((bits, name) => bits | (1 << facts.indexOf(name)), 0);
  const masks = rows.map(({ when, unless }) => ({
    care: bitsOf(when) | bitsOf(unless),
    value: bitsOf(when),
  }));
  const used = new Set<number>();
  const byFacts = Uint8Array.from({ length: 1 << facts.length }, (_, index) => {
    const row = masks.findIndex(({ care, value }) => (index & care) === value);
    if (row < 0) throw new Error(`${question}: no row for the facts ${index.toString(2)}`);
    used.add(row);
    return names.indexOf(rows[row]!.then);
  });
  const unused = rows.find((_, row) => !used.has(row));
  if (unused) throw new Error(`${question}: the row '${unused.name}' decides nothing`);
  const numbers = names.map((name, number) => [name, number]);
  const actions = Object.fromEntries(numbers) as Record<Action, number>;
  return { table, actions, byFacts };
}
