/** Errors of sharing an address, with remedies. */
import { type Gid, ipFromGid, SpiError } from '../../../core/spi/index.js';

/** Selects the user ids that are not this process's. */
export function otherUsers(users: readonly number[]): readonly number[] {
  const own = process.geteuid?.();
  return users.filter((uid) => uid !== own);
}

/** @param refusal what a program that does not share was told, with what it may do */
export function inUseByUsers(
  gid: Gid,
  udpPort: number,
  users: readonly number[],
  refusal?: SpiError,
): SpiError {
  const where = whereOf(gid, udpPort);
  const hint =
    refusal?.hint ?? 'programs that share an address are of one user; take another address';
  const options = { hint, ...(refusal && { cause: refusal }) };
  return new SpiError(
    'EADDRINUSE',
    `${where} is in use by a program of user ${users.join(', ')}`,
    options,
  );
}

/** The address is in use, by sockets that are not of its group. */
export function notShared(gid: Gid, udpPort: number, users: readonly number[]): SpiError {
  const others = otherUsers(users);
  if (others.length > 0) return inUseByUsers(gid, udpPort, others);
  const where = whereOf(gid, udpPort);
  return new SpiError('EADDRINUSE', `${where} is in use by a program that does not share it`, {
    hint: 'open it with shared: true there too, with the same addresses in the same order',
  });
}

function whereOf(gid: Gid, udpPort: number): string {
  return `${ipFromGid(gid)}, UDP port ${udpPort}`;
}

/** The system refuses what sends packets to the right process. */
export function steeringError(cause: unknown): SpiError {
  const { code = '', message = '' } = cause as { code?: string; message?: string };
  if (code === 'ENOMEM') {
    return new SpiError('ENOMEM', 'no room for the program that steers packets', {
      cause,
      hint: 'raise net.core.optmem_max (sysctl)',
    });
  }
  return new SpiError(
    'EOPNOTSUPP',
    `no address can be shared here: SO_ATTACH_REUSEPORT_CBPF is refused (${code || message})`,
    {
      cause,
      hint: 'a sandbox (seccomp) may forbid it; or give each program an address of its own',
    },
  );
}
