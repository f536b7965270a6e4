/** Of suites that take long a part runs each day, so that all of it runs within a few. */

const DAY_MS = 86_400_000;

/** @returns from 0 to parts - 1, another one each day */
export function partOfToday(parts: number): number {
  return Math.floor(Date.now() / DAY_MS) % parts;
}
