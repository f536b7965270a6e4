/** Known deviations: they are run all the same, to notice when they no longer fail. */
import type { Deviation } from './fixture.js';

/** The key by which a deviation names its behaviour. */
export function keyOf(group: string, { name }: { readonly name: string }): string {
  return `${group}: ${name}`;
}

/** @throws Error if a key names no behaviour */
export function checkDeviations(
  deviations: Readonly<Record<string, Deviation>>,
  groups: readonly {
    readonly name: string;
    readonly behaviours: readonly { readonly name: string }[];
  }[],
): void {
  const keys = new Set(
    groups.flatMap(({ name, behaviours }) => behaviours.map((each) => keyOf(name, each))),
  );
  for (const key of Object.keys(deviations)) {
    if (!keys.has(key)) throw new Error(`deviation ${JSON.stringify(key)}: no such behaviour`);
  }
}

/** Passes if the behaviour fails as declared. */
export async function deviates(run: () => Promise<void>, deviation: Deviation): Promise<void> {
  const { failsWith, why, mayHold = false } = deviation;
  try {
    await run();
  } catch (error) {
    if (failsWith.test(error instanceof Error ? error.message : String(error))) return;
    throw error;
  }
  if (mayHold) return;
  throw new Error(`it behaves as DAT says: the deviation (${why}) has gone`);
}
