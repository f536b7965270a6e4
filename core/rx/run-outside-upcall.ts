import { leaveUnhandled } from '../spi/index.js';

/**
 * Runs a subscriber callback outside the upcall's promise, so that it may await the EVD's teardown.
 * @returns when it has run
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
