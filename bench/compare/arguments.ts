/** Arguments of benchmarks. */
import { InvalidArgumentError } from 'commander';

/** @throws InvalidArgumentError, which commander reports */
export function positive(text: string): number {
  const value = Number(text);
  if (value > 0 && Number.isFinite(value)) return value;
  throw new InvalidArgumentError('a positive number is due.');
}

/** Rows whose name contains one of the texts, whatever its case. */
export function named<R extends { readonly label: string }>(
  rows: readonly R[],
  texts: readonly string[],
): R[] {
  const wanted = texts.map((text) => text.toLowerCase());
  return rows.filter(({ label }) => wanted.some((text) => label.toLowerCase().includes(text)));
}
