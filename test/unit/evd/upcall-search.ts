/**
 * Searches everything that can happen in an upcall world, breadth first, to a fixpoint: states are
 * told apart by fingerprint, and a state is reached again by replaying its steps.
 */
import type { Evd } from '../../../core/evd/index.js';
import { Fatal, Violation } from './upcall-rules.js';
import { type Limits, World } from './upcall-world.js';

interface Step {
  readonly action: number;
  /** What was chosen at each open point of the action. */
  readonly choices: readonly number[];
}

interface Node {
  readonly parent: Node | undefined;
  readonly step: Step | undefined;
}

export interface SearchResult {
  readonly states: number;
  readonly transitions: number;
  /** The first rule that was broken, with the steps that lead there. */
  readonly violation: string | undefined;
}

export async function search(
  EvdClass: typeof Evd,
  limits: Limits,
  maxStates = Infinity,
): Promise<SearchResult> {
  const seen = new Set<string>();
  const frontier: Node[] = [{ parent: undefined, step: undefined }];
  let transitions = 0;
  for (let next = 0; next < frontier.length && seen.size < maxStates; next++) {
    const node = frontier[next];
    if (node === undefined) break;
    const path = pathOf(node);
    const width = new Replay(EvdClass, limits, path).world.actions().length;
    for (let action = 0; action < width; action++) {
      for (let choices: number[] | undefined = []; choices !== undefined;) {
        const replay = new Replay(EvdClass, limits, path);
        const open = replay.run(action, choices);
        transitions++;
        const violation = await replay.verdict();
        if (violation !== undefined) {
          return { states: seen.size, transitions, violation: `${violation}: ${replay.text()}` };
        }
        const fingerprint = replay.world.fingerprint();
        if (!seen.has(fingerprint)) {
          seen.add(fingerprint);
          frontier.push({ parent: node, step: { action, choices: open.map(([c]) => c) } });
        }
        choices = following(open);
      }
    }
  }
  return { states: seen.size, transitions, violation: undefined };
}

/** A world brought to where a path leads. */
class Replay {
  readonly world: World;
  private given: readonly number[] = [];
  private open: [choice: number, options: number][] = [];
  private error: unknown;
  private readonly names: string[] = [];

  constructor(EvdClass: typeof Evd, limits: Limits, path: readonly Step[]) {
    Fatal.last = undefined;
    this.world = new World(EvdClass, limits, (options) => {
      const choice = this.given[this.open.length] ?? 0;
      this.open.push([choice, options]);
      return choice;
    });
    for (const step of path) this.run(step.action, step.choices);
  }

  /** Carries out an action; returns the choices made and how many there were at each point. */
  run(action: number, choices: readonly number[]): [choice: number, options: number][] {
    this.given = choices;
    this.open = [];
    const [name, step] = this.world.actions()[action] ?? [];
    if (name === undefined || step === undefined) throw new Error('the replay has gone astray');
    try {
      step();
    } catch (error) {
      this.error = error;
    }
    const chosen = this.open.map(([choice]) => choice);
    this.names.push(chosen.length === 0 ? name : `${name}(${chosen.join(',')})`);
    return this.open;
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

  text(): string {
    return this.names.join(' → ');
  }
}

function pathOf(node: Node): Step[] {
  const path: Step[] = [];
  for (let at: Node | undefined = node; at?.step !== undefined; at = at.parent) path.push(at.step);
  return path.reverse();
}

/** The next combination of choices in depth-first order; undefined after the last. */
function following(open: readonly [choice: number, options: number][]): number[] | undefined {
  for (let i = open.length - 1; i >= 0; i--) {
    const [choice, options] = open[i] ?? [0, 0];
    if (choice + 1 < options) return [...open.slice(0, i).map(([c]) => c), choice + 1];
  }
  return undefined;
}
