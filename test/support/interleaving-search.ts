/**
 * Searches all interleavings of small steps to a fixpoint. Objects cannot be copied, so a state is
 * the way to it, taken again from the beginning; states that look the same are visited once.
 */

/** What is searched: made anew for each way. */
export interface Subject {
  /** What can happen next, in an order that depends on the state alone. */
  steps(): readonly string[];
  /** Lets it happen. @throws Error when something is wrong then */
  take(step: string): Promise<void>;
  /** Equal for states that behave alike from now on. */
  fingerprint(): string;
  /** Lets everything come to rest without further ado. @throws Error when something is left */
  finish(): Promise<void>;
}

export interface SearchReport {
  readonly states: number;
  readonly transitions: number;
  /** States where nothing more can happen. */
  readonly ends: number;
  /** Steps of the longest way. */
  readonly depth: number;
}

/** A state that has not been looked at. */
interface Reached {
  readonly way: readonly string[];
  /** A subject in this state, unless many wait already. */
  readonly subject?: Subject;
}

/** Subjects of a level that wait: they take memory, and a walk to their states takes time. */
const MOST_SUBJECTS = 4096;

/** @throws Error that names the shortest way to what is wrong */
export async function search(make: () => Subject): Promise<SearchReport> {
  const seen = new Set<string>();
  let level: Reached[] = [{ way: [] }];
  let [transitions, ends, depth] = [0, 0, 0];
  seen.add(make().fingerprint());
  while (level.length > 0) {
    const next: Reached[] = [];
    for (const { way, subject: present } of level) {
      const steps = await finished(present ?? (await walk(make, way)), way);
      if (steps.length === 0) ends++;
      for (const step of steps) {
        transitions++;
        const further = [...way, step];
        const subject = await walk(make, further);
        const key = subject.fingerprint();
        if (seen.has(key)) continue;
        seen.add(key);
        next.push(next.length < MOST_SUBJECTS ? { way: further, subject } : { way: further });
      }
    }
    if (next.length > 0) depth++;
    level = next;
  }
  return { states: seen.size, transitions, ends, depth };
}

/** Comes to rest from there; returns what else could have happened. */
async function finished(subject: Subject, way: readonly string[]): Promise<readonly string[]> {
  const steps = subject.steps();
  await onTheWay([...way, '(rest)'], () => subject.finish());
  return steps;
}

async function walk(make: () => Subject, way: readonly string[]): Promise<Subject> {
  const subject = make();
  for (const step of way) await onTheWay(way, () => subject.take(step));
  return subject;
}

async function onTheWay(way: readonly string[], action: () => Promise<void>): Promise<void> {
  try {
    await action();
  } catch (error) {
    const what = error instanceof Error ? error.message : String(error);
    throw new Error(`${way.join(', ')}: ${what}`, { cause: error });
  }
}

/**
 * A text for everything that can be reached from a value by properties, maps, sets and arrays.
 * Functions, the contents of binary arrays and the properties to `ignore` are left out.
 */
export function textOf(root: unknown, ignore: ReadonlySet<string>): string {
  const ids = new Map<object, number>();
  const parts: string[] = [];
  const visit = (value: unknown): void => {
    if (typeof value === 'function' || typeof value === 'symbol') return;
    if (typeof value !== 'object' || value === null) {
      parts.push(typeof value === 'bigint' ? `${value}n` : (JSON.stringify(value) ?? 'undefined'));
      return;
    }
    const known = ids.get(value);
    if (known !== undefined) {
      parts.push(`#${known}`);
      return;
    }
    ids.set(value, ids.size);
    parts.push('{');
    for (const [name, part] of partsOf(value)) {
      if (ignore.has(name)) continue;
      parts.push(name);
      visit(part);
    }
    parts.push('}');
  };
  visit(root);
  return parts.join(' ');
}

function partsOf(value: object): [string, unknown][] {
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return [];
  if (value instanceof Map)
    return [...value].flatMap(([k, v]) => [['k', k] as [string, unknown], ['v', v]]);
  if (value instanceof Set) return [...value].map((part) => ['-', part]);
  return Object.entries(value);
}
