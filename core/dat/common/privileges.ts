/** DAT memory privileges, and the SPI access rights for them. */
import { Access } from '../../spi/index.js';
import { MemPrivileges } from './constants.js';

/** Every privilege bit there is. */
export const PRIVILEGE_MASK = MemPrivileges.ALL | MemPrivileges.REMOTE_ATOMIC;

/** Privileges that give peers access. */
export const REMOTE_PRIVILEGES =
  MemPrivileges.REMOTE_READ | MemPrivileges.REMOTE_WRITE | MemPrivileges.REMOTE_ATOMIC;

const TO_ACCESS: readonly (readonly [number, number])[] = [
  [MemPrivileges.LOCAL_WRITE, Access.LOCAL_WRITE],
  [MemPrivileges.REMOTE_READ, Access.REMOTE_READ],
  // IBTA 11.2.8.2: remote write and remote atomic require local write.
  [MemPrivileges.REMOTE_WRITE, Access.REMOTE_WRITE | Access.LOCAL_WRITE],
  [MemPrivileges.REMOTE_ATOMIC, Access.REMOTE_ATOMIC | Access.LOCAL_WRITE],
];

/** Verbs implies local read with any registration; core checks it when requests are posted. */
export function accessOf(privileges: number): number {
  let access = 0;
  for (const [privilege, bits] of TO_ACCESS) if (privileges & privilege) access |= bits;
  return access;
}
