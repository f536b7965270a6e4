/** A number on the command line of a benchmark. */
import { InvalidArgumentError } from 'commander';

export function positive(text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value > 0) return value;
  throw new InvalidArgumentError('a positive whole number is due.');
}
