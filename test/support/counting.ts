/** A module that notes what another one is asked to do, and has that do it. */

/**
 * @param note is called with the name of each method that is called, the inner one's own calls of
 * itself left out
 */
export function counting<T extends object>(inner: T, note: (name: string) => void): T {
  return new Proxy(inner, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== 'function') return member;
      return (...values: unknown[]): unknown => {
        note(String(name));
        return Reflect.apply(member, target, values);
      };
    },
  });
}
