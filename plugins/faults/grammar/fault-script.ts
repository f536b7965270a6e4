/**
 * Faults by rules: the subjects that a rule applies to (match), what happens to them (action), and
 * the seed of randomness. Packets, work requests and the functions between a port and its network
 * use the same grammar; a table lists the matches and actions of each.
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
  /** The first match to hit, an integer from 1 (default) on. */
  readonly nth?: number;
  /**
   * Number of matches to hit from there on: an integer from 1 on, or Infinity for all; default 1,
   * with `percent` all.
   */
  readonly count?: number;
  /** Probability of each of those in percent, above 0 to 100 (default). */
  readonly percent?: number;
}

export interface FaultRule<Match, Action> {
  /** Fields that must all agree. Default: everything matches. */
  readonly match?: Match & Occurrence;
  readonly action: Action;
  /** Seed for `percent`, an integer from 0 to 2^53 - 1. Default: derived from the world's seed. */
  readonly seed?: number;
}

/** An active rule. */
export interface Fault {
  /** Number of matches, and how many of those were hit. */
  readonly matched: number;
  readonly hits: number;
  /** Removes the rule: nothing more is hit. */
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

/**
 * The grammar for one kind of subject: fields of a match, and the types of actions with their
 * fields.
 */
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
  /** True with this probability in percent. */
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

/** The active rules for one kind of subject. The first rule that hits a subject decides. */
export class FaultScript<Subject, Match extends object, Action extends Typed> {
  private readonly faults: ActiveFault<Subject, Match, Action>[] = [];
  /** Number of rules that were ever added. */
  private added = 0;

  /**
   * @param seed of the world; rules with `percent` and without a seed derive theirs from it
   * @param chance creates a random generator for each rule
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
   * Adds a rule.
   * @throws RangeError for anything outside the grammar; it names the nearest word, or the limits
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

  /** The active rules that have hit nothing yet, in words. */
  get unhit(): readonly string[] {
    return this.faults.filter(({ hits }) => hits === 0).map((fault) => fault.describe());
  }

  /**
   * Call this at the end of a test: a fault that never happened tests nothing.
   * @throws Error that names each active rule that has hit nothing
   */
  assertAllHit(): void {
    refuseUnhit(this.unhit);
  }
}

/** @throws Error if there are any */
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

/** Checks the type first: the other fields depend on it. */
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
