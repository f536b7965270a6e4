/**
 * Named counters (DAT facts 1.8, dat_ib_query_counters): numbers in a typed array, so that counting
 * on the data path allocates nothing. Exact up to 2^53.
 */
export class Counters<Name extends string> {
  /**
   * @param names in the order of their indices
   * @param values where they are kept, from index `first` on
   */
  constructor(
    private readonly names: readonly Name[],
    protected values: Float64Array = new Float64Array(names.length),
    private readonly first = 0,
  ) {}

  bump(index: number, by: number): void {
    const at = this.first + index;
    this.values[at] = (this.values[at] ?? 0) + by;
  }

  count(name: Name): void {
    this.bump(this.names.indexOf(name), 1);
  }

  /** The present values; with `reset`, they begin again at 0. */
  read(reset: boolean): Readonly<Record<Name, number>> {
    const entries = this.names.map((name, index) => [name, this.values[this.first + index] ?? 0]);
    if (reset) this.values.fill(0, this.first, this.first + this.names.length);
    return Object.fromEntries(entries) as Record<Name, number>;
  }
}
