/** What the tests of the target take from the wire. */
import {
  dataOut,
  loginRequest,
  logoutRequest,
  nopOut,
  scsiCommand,
  snackRequest,
  taskManagementRequest,
  textRequest,
} from '../../../../../../samples/ulp/iser/wire/index.js';

export * from '../../../../../../samples/ulp/iser/wire/index.js';

/** PDUs of an initiator, by their type. */
export const initiatorFormats = {
  dataOut,
  loginRequest,
  logoutRequest,
  nopOut,
  scsiCommand,
  snackRequest,
  taskManagementRequest,
  textRequest,
} as const;
