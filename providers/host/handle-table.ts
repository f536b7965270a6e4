/** Objects by small numbers: a free number is given out again. */
export class Numbered<T extends object> {
  private readonly things: (T | undefined)[] = [];

  /** @param what they are, for errors */
  constructor(private readonly what: string) {}

  add(thing: T): number {
    const free = this.things.indexOf(undefined);
    const number = free < 0 ? this.things.length : free;
    this.things[number] = thing;
    return number;
  }

  find(number: number): T | undefined {
    return this.things[number];
  }

  /** @throws RangeError when there is none of that number */
  get(number: number): T {
    const thing = this.things[number];
    if (thing === undefined) throw new RangeError(`no ${this.what} ${number}`);
    return thing;
  }

  /** @throws RangeError when there is none of that number */
  remove(number: number): T {
    const thing = this.get(number);
    this.things[number] = undefined;
    return thing;
  }

  clear(): void {
    this.things.length = 0;
  }

  /** The number of the first one that fits; -1 for none. */
  numberOf(fits: (thing: T) => boolean): number {
    return this.things.findIndex((thing) => thing !== undefined && fits(thing));
  }

  /** The number of entries. */
  get size(): number {
    return this.things.reduce((sum, thing) => sum + (thing === undefined ? 0 : 1), 0);
  }
}
