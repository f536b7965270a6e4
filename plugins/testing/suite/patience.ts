/**
 * How long a behaviour waits for an expected event, in ms: longer than any success takes. A slow
 * machine, such as an emulated one, needs more: set `DAPL_TEST_PATIENCE_MS` (default 20000). The
 * test runner's own timeout must be longer.
 */
export const PATIENCE_MS = Number(process.env['DAPL_TEST_PATIENCE_MS'] ?? 20000);
