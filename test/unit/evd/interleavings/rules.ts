/** What the upcall world is made of: broken rules, and promises that settle when told to. */

export class Violation extends Error {}

/** Not to be swallowed as the failure of a handler. */
export class Fatal extends Violation {
  constructor(message: string) {
    super(message);
    Fatal.last ??= this;
  }
  static last: Fatal | undefined;
}

/** A promise that settles at once when it is told to. */
export class Thenable implements PromiseLike<void> {
  private ok: (() => void) | undefined;
  private fail: ((error: unknown) => void) | undefined;

  then<A = void, B = never>(
    ok?: ((value: void) => A | PromiseLike<A>) | null,
    fail?: ((error: unknown) => B | PromiseLike<B>) | null,
  ): PromiseLike<A | B> {
    this.ok = () => void ok?.();
    this.fail = (error) => void fail?.(error);
    return this as unknown as PromiseLike<A | B>;
  }

  settle(error: unknown): void {
    if (error === undefined) this.ok?.();
    else this.fail?.(error);
  }
}
