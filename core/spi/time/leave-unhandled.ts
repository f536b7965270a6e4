/**
 * Leaves a promise that nothing waits for, and that has no reason to reject. If it rejects, that is
 * a bug: the error is unhandled, which ends a Node process unless it listens for
 * `unhandledRejection` or `uncaughtException`. A promise that may reject gets a handler instead.
 */
export function leaveUnhandled(promise: Promise<unknown>): void {
  // eslint-disable-next-line @typescript-eslint/no-floating-promises -- the one place for it
  void promise;
}
