/**
 * State machines as tables, and the one way in which they are run. A row says what is done for an
 * input, in this order, and the state afterwards: the state is set first. A pair without a row is
 * unexpected: the machine is told so, and nothing else is done.
 */

export interface Row<State, Action> {
  readonly next: State;
  readonly actions: readonly Action[];
}

export type StateTable<State extends string, Input extends string, Action> = Readonly<
  Partial<Record<State, Readonly<Partial<Record<Input, Row<State, Action>>>>>>
>;

export function row<State extends string, Action extends string = never>(
  next: State,
  ...actions: Action[]
): Row<State, Action> {
  return { next, actions };
}

/** What each action does to a machine; one record serves all of a kind. */
export type Actions<M, Action extends string> = Readonly<
  Partial<Record<Action, (machine: M) => void>>
>;

/** What keeps a state, and hears what becomes of it. */
export interface Machine<State, Input> {
  state: State;
  onUnexpected?(input: Input): void;
  /** The state is the row's, and its actions come. For flight records. */
  onInput?(input: Input, from: State): void;
  /** The actions are done; those that raise inputs may have led on from the row's state. */
  onActionsDone?(from: State): void;
}

/** Runs a table for any number of machines. */
export class TableRunner<
  M extends Machine<State, Input>,
  State extends string,
  Input extends string,
  Action extends string,
> {
  /** @throws Error for an action of the table that is not there: a fault of the program */
  constructor(
    private readonly table: StateTable<State, Input, Action>,
    private readonly actions: Actions<M, Action>,
  ) {
    const states = Object.values(table) as Readonly<Record<string, Row<State, Action>>>[];
    const rows = states.flatMap((inputs) => Object.values(inputs));
    const missing = rows.flatMap((each) => each.actions).find((action) => !actions[action]);
    if (missing !== undefined) throw new Error(`the table asks for ${missing}: unknown`);
  }

  /** False if the input is unexpected in the machine's state. */
  dispatch(machine: M, input: Input): boolean {
    const from = machine.state;
    const found = this.table[from]?.[input];
    if (!found) {
      machine.onUnexpected?.(input);
      return false;
    }
    machine.state = found.next;
    machine.onInput?.(input, from);
    for (const action of found.actions) this.actions[action]?.(machine);
    machine.onActionsDone?.(from);
    return true;
  }
}
