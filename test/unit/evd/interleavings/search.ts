/**
 * Searches everything that can happen in a world, to a fixpoint: until every action has been taken
 * in every state that can be reached. States are told apart by fingerprint. The world holds real
 * objects and cannot be copied, so the search walks: from state to state by actions not taken yet,
 * through known states to the nearest that has some left, and, where that leads nowhere, from the
 * beginning along the shortest path known.
 */
import { Fatal, Violation } from './rules.js';

/** Something that can happen; `choose` may be asked on the way. */
export type Action = readonly [name: string, run: () => void];

export interface Searchable {
  /** What can happen now, in an order that depends on the fingerprint alone. */
  actions(): readonly Action[];
  /** Waits until promises have settled; the rules that hold between actions. */
  check(): Promise<void>;
  /** Everything that the future depends on. */
  fingerprint(): string;
}

/** Makes a world at its beginning; where an outcome is open it asks `choose(options)`. */
export type Beginning = (choose: (options: number) => number) => Searchable;

export interface SearchResult {
  readonly states: number;
  readonly transitions: number;
  /** The first rule that was broken, with the steps that lead there. */
  readonly violation: string | undefined;
}

interface Step {
  readonly action: number;
  /** What was chosen at each open point of the action. */
  readonly choices: readonly number[];
}

/** A state, how it was reached, and what has been tried in it. */
class Node {
  readonly edges: (readonly [Step, Node])[] = [];
  depth = 0;
  private action = 0;
  private choices: readonly number[] = [];
  visit = 0;

  constructor(
    readonly width: number,
    public parent: Node | undefined,
    public via: Step | undefined,
  ) {
    this.depth = parent === undefined ? 0 : parent.depth + 1;
  }

  /** The next step that has not been tried; undefined when all have. */
  get untried(): Step | undefined {
    if (this.action >= this.width) return undefined;
    return { action: this.action, choices: this.choices };
  }

  /** That step has been tried, with these choices. */
  tried(made: readonly Choice[]): void {
    const next = following(made);
    if (next === undefined) this.action++;
    this.choices = next ?? [];
  }

  leadsTo(next: Node, step: Step): void {
    if (next === this || this.edges.some(([, node]) => node === next)) return;
    this.edges.push([step, next]);
  }

  get path(): Step[] {
    const path: Step[] = [];
    // eslint-disable-next-line @typescript-eslint/no-this-alias -- walks up from this node
    let node: Node | undefined = this;
    for (; node?.via !== undefined; node = node.parent) path.push(node.via);
    return path.reverse();
  }
}

type Choice = readonly [choice: number, options: number];

/** @param maxStates gives up there: the result then says so as a violation */
export async function search(begin: Beginning, maxStates = Infinity): Promise<SearchResult> {
  return new Search(begin, maxStates).run();
}

/** Known steps to a state with something left to try; more would cost as much as starting anew. */
const NEARBY = 6;
const NEARBY_STATES = 60;

class Search {
  private readonly nodes = new Map<string, Node>();
  /** States that may have something left, by depth. */
  private readonly open: Node[][] = [];
  private transitions = 0;
  private visits = 0;

  constructor(
    private readonly begin: Beginning,
    private readonly maxStates: number,
  ) {}

  async run(): Promise<SearchResult> {
    let walk = new Walk(this.begin);
    let node = this.nodeOf(walk, undefined, undefined);
    while (this.nodes.size <= this.maxStates) {
      const step = node.untried;
      if (step !== undefined) {
        const made = walk.take(step);
        this.transitions++;
        const violation = await walk.verdict();
        const taken = { action: step.action, choices: made.map(([choice]) => choice) };
        if (violation !== undefined) return this.found(violation, [...node.path, taken]);
        node.tried(made);
        const next = this.nodeOf(walk, node, taken);
        node.leadsTo(next, taken);
        node = next;
        continue;
      }
      const near = this.nearby(node);
      const target = near?.target ?? this.shallowest();
      if (target === undefined) return this.result(undefined);
      if (near === undefined) walk = new Walk(this.begin);
      for (const known of near?.steps ?? target.path) await walk.retake(known);
      node = target;
    }
    return this.result(`more than ${this.maxStates} states`);
  }

  /** The node of the state that the walk is in. */
  private nodeOf(walk: Walk, parent: Node | undefined, via: Step | undefined): Node {
    const fingerprint = walk.world.fingerprint();
    const known = this.nodes.get(fingerprint);
    if (known === undefined) {
      const node = new Node(walk.world.actions().length, parent, via);
      this.nodes.set(fingerprint, node);
      (this.open[node.depth] ??= []).push(node);
      return node;
    }
    if (parent !== undefined && parent.depth + 1 < known.depth) {
      known.parent = parent;
      known.via = via;
      known.depth = parent.depth + 1;
      if (known.untried !== undefined) (this.open[known.depth] ??= []).push(known);
    }
    return known;
  }

  private shallowest(): Node | undefined {
    for (const level of this.open) {
      if (level === undefined) continue;
      while (level.length > 0) {
        const node = level.at(-1);
        if (node?.untried !== undefined) return node;
        level.pop();
      }
    }
    return undefined;
  }

  /** The nearest state ahead that has something left, and how to get there. */
  private nearby(from: Node): { readonly target: Node; readonly steps: Step[] } | undefined {
    const visit = ++this.visits;
    const queue: { node: Node; back: number; step: Step | undefined; depth: number }[] = [
      { node: from, back: -1, step: undefined, depth: 0 },
    ];
    from.visit = visit;
    for (let i = 0; i < queue.length && i < NEARBY_STATES; i++) {
      const entry = queue[i];
      if (entry === undefined || entry.depth >= NEARBY) break;
      for (const [step, node] of entry.node.edges) {
        if (node.visit === visit) continue;
        node.visit = visit;
        queue.push({ node, back: i, step, depth: entry.depth + 1 });
        if (node.untried === undefined) continue;
        const steps: Step[] = [];
        for (let at = queue.at(-1); at?.step !== undefined; at = queue[at.back]) {
          steps.push(at.step);
        }
        return { target: node, steps: steps.reverse() };
      }
    }
    return undefined;
  }

  private async found(violation: string, path: readonly Step[]): Promise<SearchResult> {
    const walk = new Walk(this.begin);
    for (const step of path) await walk.retake(step).catch(() => undefined);
    return this.result(`${violation}: ${walk.names.join(' → ')}`);
  }

  private result(violation: string | undefined): SearchResult {
    return { states: this.nodes.size, transitions: this.transitions, violation };
  }
}

/** A world under way. */
class Walk {
  readonly world: Searchable;
  readonly names: string[] = [];
  private given: readonly number[] = [];
  private made: Choice[] = [];
  private error: unknown;

  constructor(begin: Beginning) {
    Fatal.last = undefined;
    this.world = begin((options) => {
      const choice = this.given[this.made.length] ?? 0;
      this.made.push([choice, options]);
      return choice;
    });
  }

  take({ action, choices }: Step): readonly Choice[] {
    this.given = choices;
    this.made = [];
    const [name, run] = this.world.actions()[action] ?? [];
    if (name === undefined || run === undefined) throw new Error('the replay has gone astray');
    try {
      run();
    } catch (error) {
      this.error = error;
    }
    const chosen = this.made.map(([choice]) => choice).join('');
    this.names.push(chosen === '' ? name : `${name}(${chosen})`);
    return this.made;
  }

  /** Takes a step that is known to break no rule. */
  async retake(step: Step): Promise<void> {
    this.take(step);
    await this.world.check();
  }

  async verdict(): Promise<string | undefined> {
    if (this.error === undefined && Fatal.last === undefined) {
      await this.world.check().catch((error: unknown) => (this.error = error));
    }
    const error = Fatal.last ?? this.error;
    if (error === undefined) return undefined;
    if (error instanceof Violation) return error.message;
    throw error as Error;
  }
}

/** The next combination of choices in depth-first order; undefined after the last. */
function following(made: readonly Choice[]): number[] | undefined {
  for (let i = made.length - 1; i >= 0; i--) {
    const [choice, options] = made[i] ?? [0, 0];
    if (choice + 1 < options) return [...made.slice(0, i).map(([c]) => c), choice + 1];
  }
  return undefined;
}
