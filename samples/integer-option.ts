import { InvalidArgumentError } from 'commander';

/** Parses an option that is an integer from `min` to `max`. */
export function integer(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (Number.isInteger(value) && value >= min && value <= max) return value;
    throw new InvalidArgumentError(`an integer from ${min} to ${max}`);
  };
}
