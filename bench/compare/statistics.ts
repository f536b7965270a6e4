/** Medians, and whether a change is more than noise. */

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? NaN) + upper) / 2;
}

/**
 * The sign test: how likely so many values or more lie on one side of 1, either one, when each
 * falls on either side alike. Values of exactly 1 are left out.
 */
export function signTest(ratios: readonly number[]): number {
  const sided = ratios.filter((ratio) => ratio !== 1);
  const above = sided.filter((ratio) => ratio > 1).length;
  const larger = Math.max(above, sided.length - above);
  let tail = 0;
  for (let k = larger; k <= sided.length; k++) tail += binomial(sided.length, k);
  return Math.min(1, (2 * tail) / 2 ** sided.length);
}

function binomial(n: number, k: number): number {
  let result = 1;
  for (let i = 1; i <= k; i++) result = (result * (n - k + i)) / i;
  return result;
}
