/** The error of a refused login. */
import type { LOGIN_STATUS } from '../../../wire/index.js';

export type LoginStatus = (typeof LOGIN_STATUS)[keyof typeof LOGIN_STATUS];

/** Ends the login with this status; the sentence is for people. */
export class LoginRefusal extends Error {
  override readonly name = 'LoginRefusal';

  constructor(
    readonly status: LoginStatus,
    message: string,
  ) {
    super(message);
  }
}
