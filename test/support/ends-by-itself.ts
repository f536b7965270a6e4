/**
 * A mocha root hook: once the last test is done the process has to end by itself. What a test
 * leaves open (a device, a socket, a worker) would keep it for ever, and with it the report of
 * what was covered; so what is open is named, and the run fails.
 */

import { patience } from './patience.js';

const PATIENCE_MS = 30_000;

function fail(): void {
  const open = process.getActiveResourcesInfo();
  process.stderr.write(
    `\n0 passed, 1 failed\nThe tests are done, but the process is kept by: ${open.join(', ')}\n`,
  );
  // Mocha's own handler would make it the number of failed tests.
  process.on('exit', () => (process.exitCode = 1));
  process.exit(1);
}

export const mochaHooks = {
  afterAll(): void {
    setTimeout(fail, patience(PATIENCE_MS)).unref();
  },
};
