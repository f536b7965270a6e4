/** Finds the known word that a misspelt one means: for "did you mean". */

/** Longer words are not misspelt ones. */
const MAX_LENGTH = 40;
/** Fewer letters begin too many words to mean one of them. */
const MIN_BEGINNING = 3;

/**
 * The nearest known word: with one letter in three wrong, missing, too many or exchanged with its
 * neighbour, in any case; or one that begins so. Undefined when none is near.
 */
export function nearest(word: string, known: readonly string[]): string | undefined {
  if (word.length > MAX_LENGTH) return undefined;
  const given = word.toLowerCase();
  let best: string | undefined;
  let least = Infinity;
  for (const each of known) {
    const other = each.toLowerCase();
    const most = Math.floor(Math.max(given.length, other.length) / 3);
    const apart = distance(given, other);
    if (apart > most || apart >= least) continue;
    least = apart;
    best = each;
  }
  return best;
}

function distance(given: string, known: string): number {
  if (given === known) return 0;
  return given.length >= MIN_BEGINNING && known.startsWith(given) ? 1 : edits(given, known);
}

/** Edits from one word to the other; two exchanged letters are one edit (Damerau). */
function edits(from: string, to: string): number {
  let before: number[] = [];
  let above = Array.from({ length: to.length + 1 }, (_, j) => j);
  for (let i = 1; i <= from.length; i++) {
    const row = [i];
    for (let j = 1; j <= to.length; j++) {
      const same = from[i - 1] === to[j - 1];
      const beside = Math.min(row[j - 1]!, above[j]!) + 1;
      let least = Math.min(beside, above[j - 1]! + (same ? 0 : 1));
      if (i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1]) {
        least = Math.min(least, before[j - 2]! + 1);
      }
      row.push(least);
    }
    before = above;
    above = row;
  }
  return above[to.length]!;
}
