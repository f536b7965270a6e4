/**
 * The one form of wrapping: an object with members of a wrapper over those of another object, and
 * all other members of that one, optional members and accessors included. It is an instance of the
 * same class, so that class checks hold.
 */

/** Members that replace an object's own; one that is undefined removes the object's. */
export type Over<T> = { [Name in keyof T]?: T[Name] | undefined };

export function over<T extends object>(inner: T, members: Over<T>): T {
  // Members of a frozen object could not be replaced by a proxy of that object itself.
  const shell = Object.create(Object.getPrototypeOf(inner) as object | null) as T;
  return new Proxy<T>(shell, new Layer(inner, members));
}

class Layer implements ProxyHandler<object> {
  /** Methods bound to their object; bound again when the member has changed. */
  private readonly bound = new Map<PropertyKey, readonly [member: unknown, bound: unknown]>();

  constructor(
    private readonly inner: object,
    private readonly members: object,
  ) {}

  get(_shell: object, name: PropertyKey): unknown {
    const owner = this.ownerOf(name);
    const member: unknown = Reflect.get(owner, name, owner);
    if (typeof member !== 'function' || name === 'constructor') return member;
    const known = this.bound.get(name);
    if (known?.[0] === member) return known[1];
    const bound: unknown = Function.prototype.bind.call(member, owner);
    this.bound.set(name, [member, bound]);
    return bound;
  }

  set(_shell: object, name: PropertyKey, value: unknown): boolean {
    const owner = this.ownerOf(name);
    return Reflect.set(owner, name, value, owner);
  }

  has(_shell: object, name: PropertyKey): boolean {
    const owner = this.ownerOf(name);
    return owner === this.members ? Reflect.get(owner, name) !== undefined : name in owner;
  }

  ownKeys(): (string | symbol)[] {
    return [...new Set([...Reflect.ownKeys(this.inner), ...Reflect.ownKeys(this.members)])];
  }

  getOwnPropertyDescriptor(shell: object, name: PropertyKey): PropertyDescriptor | undefined {
    const owner = this.ownerOf(name);
    if (!Object.hasOwn(owner, name)) return undefined;
    return { value: this.get(shell, name), enumerable: true, configurable: true, writable: true };
  }

  private ownerOf(name: PropertyKey): object {
    const isMember = name in this.members && !(name in Object.prototype);
    return isMember ? this.members : this.inner;
  }
}
