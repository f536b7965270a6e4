/** Behaviours that a device under the provider does not have: run all the same, so as to know. */
import type { Deviation } from './fixture.js';

/** How a deviation names its behaviour. */
export function keyOf(group: string, { name }: { readonly name: string }): string {
  return `${group}: ${name}`;
}

/** @throws Error naming a key that no behaviour has */
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

/** Passes when the behaviour fails as it is known to. */
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
