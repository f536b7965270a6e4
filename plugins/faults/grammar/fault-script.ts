/**
 * Faults that a test asks for: which things they are for (match), what becomes of those (action),
 * and the seed of what is left to chance. One grammar for packets, for work requests and for what
 * stands between a port and its network; what each of them may match and do is a table.
 */
import {
  checkNames,
  checkOptions,
  checkValue,
  integer,
  type Kind,
  type Kinds,
  kindOf,
  OBJECT,
  oneOf,
  optional,
  outOfRange,
  type Refuse,
  show,
  within,
} from '../../../core/spi/checks/index.js';

/** The matches that a rule hits. */
export interface Occurrence {
  /** The first of them, an integer from 1 (default) on. */
  readonly nth?: number;
  /**
   * Number of matches to hit from there on: an integer from 1 on, or Infinity for all; default 1,
   * with `percent` all.
   */
  readonly count?: number;
  /** Each of those with this chance, above 0 to 100 (default). */
  readonly percent?: number;
}

export interface FaultRule<Match, Action> {
  /** All that is given must agree. Default: everything matches. */
  readonly match?: Match & Occurrence;
  readonly action: Action;
  /** Seed for `percent`, an integer from 0 to 2^53 - 1. Default: derived from the world's seed. */
  readonly seed?: number;
}

/** A rule at work. */
export interface Fault {
  /** Number of matches, and how many of those were hit. */
  readonly matched: number;
  readonly hits: number;
  /** Nothing more is hit. */
  remove(): void;
}

interface Typed {
  readonly type: string;
}

/** A field of a match: the values it allows, and the test whether a subject agrees. */
export interface MatchField<Subject, Value> {
  readonly kind: Kind;
  readonly agrees: (subject: Subject, wanted: Value) => boolean;
}

/** Fields of a match, and actions by their types, with what else they take. */
export interface FaultGrammar<Subject, Match extends object, Action extends Typed> {
  readonly match: {
    readonly [Name in keyof Match]-?: MatchField<Subject, NonNullable<Match[Name]>>;
  };
  readonly actions: {
    readonly [Type in Action['type']]: Kinds<
      Omit<Extract<Action, { readonly type: Type }>, 'type'>
    >;
  };
  /** True if an action applies to a matching subject; default: each applies to all. */
  readonly concerns?: (action: Action, subject: Subject) => boolean;
}

/** Source of randomness. */
export interface Chance {
  /** True in so many cases of a hundred. */
  percent(percent: number): boolean;
}

const COUNT = kindOf<number>(
  'an integer from 1 on, or Infinity',
  (count) => count === Infinity || (Number.isSafeInteger(count) && (count as number) >= 1),
);
const PERCENT = kindOf<number>(
  'a number above 0, up to 100',
  (percent) => typeof percent === 'number' && percent > 0 && percent <= 100,
);
const OCCURRENCE: Kinds<Occurrence> = {
  nth: optional(integer(1, Infinity)),
  count: optional(COUNT),
  percent: optional(PERCENT),
};
const RULE = {
  match: optional(OBJECT),
  action: OBJECT,
  seed: optional(integer(0, Number.MAX_SAFE_INTEGER)),
};

/** The rules at work on one kind of things; the first one that takes a thing decides. */
export class FaultScript<Subject, Match extends object, Action extends Typed> {
  private readonly faults: ActiveFault<Subject, Match, Action>[] = [];
  /** Number of rules that were ever added. */
  private added = 0;

  /**
   * @param seed of the world: rules with `percent` and no seed of their own follow from it
   * @param chance a generator of its own for each rule
   */
  constructor(
    private readonly grammar: FaultGrammar<Subject, Match, Action>,
    private readonly seed: number,
    private readonly chance: (seed: number) => Chance,
  ) {}

  /** True if there are rules. If not, nothing needs to be looked at. */
  get any(): boolean {
    return this.faults.length > 0;
  }

  /**
   * @throws RangeError for what is not in the grammar: names and words with the nearest that is,
   * values with their limits
   */
  add(rule: FaultRule<Match, Action>): Fault {
    checkRule(rule, this.grammar);
    const { seed = (this.seed + this.added) % Number.MAX_SAFE_INTEGER } = rule;
    const fault = new ActiveFault(rule, this.grammar, this.chance(seed), (gone) => {
      const at = this.faults.indexOf(gone);
      if (at >= 0) this.faults.splice(at, 1);
    });
    this.added++;
    this.faults.push(fault);
    return fault;
  }

  clear(): void {
    this.faults.length = 0;
  }

  /** The action on a subject; undefined if no rule hits it. */
  decide(subject: Subject): Action | undefined {
    return this.faults.find((fault) => fault.takes(subject))?.rule.action;
  }

  /** The rules at work that have hit nothing yet, in words. */
  get unhit(): readonly string[] {
    return this.faults.filter(({ hits }) => hits === 0).map((fault) => fault.describe());
  }

  /**
   * For the end of a test, whose faults must not have been none.
   * @throws Error that names each rule at work that has hit nothing
   */
  assertAllHit(): void {
    refuseUnhit(this.unhit);
  }
}

/** @throws Error when there are any */
export function refuseUnhit(unhit: readonly string[]): void {
  if (unhit.length > 0) throw new Error(`faults that have hit nothing: ${unhit.join('; ')}`);
}

class ActiveFault<Subject, Match extends object, Action extends Typed> implements Fault {
  matched = 0;
  hits = 0;
  private readonly first: number;
  private readonly last: number;
  private readonly percent: number;
  private readonly fields: readonly (readonly [
    MatchField<Subject, unknown>['agrees'],
    wanted: unknown,
  ])[];

  constructor(
    readonly rule: FaultRule<Match, Action>,
    private readonly grammar: FaultGrammar<Subject, Match, Action>,
    private readonly chance: Chance,
    private readonly onRemove: (fault: ActiveFault<Subject, Match, Action>) => void,
  ) {
    const match: Occurrence = rule.match ?? {};
    const { nth = 1, percent = 100, count = match.percent === undefined ? 1 : Infinity } = match;
    this.first = nth;
    this.last = nth + count - 1;
    this.percent = percent;
    const table = grammar.match as Readonly<Record<string, MatchField<Subject, unknown>>>;
    this.fields = Object.entries(match).flatMap(([name, wanted]: [string, unknown]) => {
      const field = table[name];
      return field === undefined || wanted === undefined ? [] : [[field.agrees, wanted] as const];
    });
  }

  takes(subject: Subject): boolean {
    const { fields, grammar, rule } = this;
    if (!fields.every(([agrees, wanted]) => agrees(subject, wanted))) return false;
    if (grammar.concerns?.(rule.action, subject) === false) return false;
    this.matched++;
    if (this.matched < this.first || this.matched > this.last) return false;
    if (this.percent < 100 && !this.chance.percent(this.percent)) return false;
    this.hits++;
    return true;
  }

  remove(): void {
    this.onRemove(this);
  }

  describe(): string {
    const { match = {}, action } = this.rule;
    const words = Object.entries(match).map(([name, value]) => `${name} ${describeValue(value)}`);
    const what = words.length === 0 ? 'everything' : words.join(', ');
    return `${action.type} of ${what} (${this.matched} matched)`;
  }
}

/** A value of a match; an object is shown with its fields. */
function describeValue(value: unknown): string {
  if (typeof value !== 'object' || value === null) return show(value);
  const fields = Object.entries(value).map(([name, each]) => `${name} ${show(each)}`);
  return `{ ${fields.join(', ')} }`;
}

function checkRule<Subject, Match extends object, Action extends Typed>(
  rule: FaultRule<Match, Action>,
  grammar: FaultGrammar<Subject, Match, Action>,
): void {
  checkOptions(rule, RULE, outOfRange);
  const fields = Object.entries<MatchField<Subject, never>>(grammar.match).map(
    ([name, { kind }]) => [name, optional(kind)] as const,
  );
  const match = { ...Object.fromEntries(fields), ...OCCURRENCE } as Readonly<Record<string, Kind>>;
  checkOptions<object>(rule.match ?? {}, match, within('match', outOfRange));
  checkAction(rule.action, grammar.actions, within('action', outOfRange));
}

/** The type first: what else there may be follows from it. */
function checkAction(
  action: Typed,
  actions: Readonly<Record<string, Kinds<object>>>,
  refuse: Refuse,
): void {
  const { type, ...rest } = action;
  checkValue('type', type, oneOf(Object.keys(actions)), refuse);
  const table = actions[type]!;
  checkNames(action, ['type', ...Object.keys(table)], refuse);
  checkOptions(rest, table, refuse);
}
