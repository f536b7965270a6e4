/**
 * How long a behaviour waits for what must come, in ms: longer than anything that works takes.
 * `DAPL_TEST_PATIENCE_MS` (default 20000) gives a slow machine, such as an emulated one, more; the
 * test runner's own bound has to be above it.
 */
export const PATIENCE_MS = Number(process.env['DAPL_TEST_PATIENCE_MS'] ?? 20000);
