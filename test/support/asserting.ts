/** Loaded before anything else: invariants are checked (core/spi/checks/assert.ts). */
process.env['DAPL_ASSERT'] ??= '1';
