/** Tests that cannot run on every machine, or not as every user. */

/**
 * Leaves a test out, and says so in a line of its own. In CI nothing is left out: there it fails.
 * @param lack what is missing here
 * @param remedy how to run the test all the same
 */
export function leaveOut(
  test: { readonly skip: () => never },
  lack: string,
  remedy: string,
): never {
  if (process.env['CI']) throw new Error(`left out, and this is CI: ${lack}: ${remedy}`);
  console.warn(`    SKIPPED: ${lack}: ${remedy}`);
  return test.skip();
}

/** That a system shows for all whom it cannot name. */
const UNNAMED_USER = 65_534;

/** Of payload that is sent from where it lies: for this user it is copied, as it may be anybody. */
export function leaveOutUnnamedUser(test: { readonly skip: () => never }): void {
  if (process.geteuid?.() !== UNNAMED_USER) return;
  leaveOut(test, `user ${UNNAMED_USER} may be anybody`, 'as a user with a name: npm test');
}
