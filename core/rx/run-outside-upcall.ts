import { leaveUnhandled } from '../spi/index.js';

/**
 * Runs what is a subscriber's, of which an upcall tells, outside of the upcall's own promises: the
 * subscriber may await the end of the dispatcher, as the handler may not.
 * @returns when it has been done
 */
export function apart(work: () => void): Promise<void> {
  return new Promise((done) => {
    leaveUnhandled(
      Promise.resolve().then(() => {
        work();
        done();
      }),
    );
  });
}
