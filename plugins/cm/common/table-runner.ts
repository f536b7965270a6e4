/**
 * State machines as tables, and the class that runs them. A row has the next state, which is set
 * first, and the actions for an input, in order. An input without a row in a state is unexpected:
 * `onUnexpected` is called, and nothing else is done.
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

/** The implementation of each action, shared by all machines of a kind. */
export type Actions<M, Action extends string> = Readonly<
  Partial<Record<Action, (machine: M) => void>>
>;

/** A machine with a state, notified of inputs and actions. */
export interface Machine<State, Input> {
  state: State;
  onUnexpected?(input: Input): void;
  /** Called after the state is set and before the actions run; for flight records. */
  onInput?(input: Input, from: State): void;
  /** Called after the actions. An action that raises an input may have changed the state again. */
  onActionsDone?(from: State): void;
}

/** Runs a table for any number of machines. */
export class TableRunner<
  M extends Machine<State, Input>,
  State extends string,
  Input extends string,
  Action extends string,
> {
  /** @throws Error if the table names an action without an implementation */
  constructor(
    private readonly table: StateTable<State, Input, Action>,
    private readonly actions: Actions<M, Action>,
  ) {
    const states = Object.values(table) as Readonly<Record<string, Row<State, Action>>>[];
    const rows = states.flatMap((inputs) => Object.values(inputs));
    const missing = rows.flatMap((each) => each.actions).find((action) => !actions[action]);
    if (missing !== undefined) throw new Error(`the table names an unknown action: ${missing}`);
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
