/**
 * Named counters (dat_ib_query_counters): numbers in a typed array, so that counting on the data
 * path allocates nothing. Exact up to 2^53.
 */
export class Counters<Name extends string> {
  private readonly values: Float64Array;

  /** @param names in the order of their indices */
  constructor(private readonly names: readonly Name[]) {
    this.values = new Float64Array(names.length);
  }

  bump(index: number, by: number): void {
    this.values[index] = (this.values[index] ?? 0) + by;
  }

  /** The present value. */
  get(index: number): number {
    return this.values[index] ?? 0;
  }

  count(name: Name): void {
    this.bump(this.names.indexOf(name), 1);
  }

  /** The present values; with `reset`, they begin again at 0. */
  read(reset: boolean): Readonly<Record<Name, number>> {
    return readCounters(this.names, this.values, 0, reset);
  }
}

/**
 * Values of the counters from index `first` of `values` on.
 * @param reset they begin again at 0
 */
export function readCounters<Name extends string>(
  names: readonly Name[],
  values: Float64Array,
  first: number,
  reset: boolean,
): Readonly<Record<Name, number>> {
  const entries = names.map((name, index) => [name, values[first + index] ?? 0]);
  if (reset) values.fill(0, first, first + names.length);
  return Object.fromEntries(entries) as Record<Name, number>;
}
