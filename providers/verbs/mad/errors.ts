/** What errno means where a umad device gives it, and what may help. */
import { constants } from 'node:os';
import { getSystemErrorName } from 'node:util';
import { GSI_QKEY, SpiError, ipFromGid } from '../../../core/spi/index.js';
import type { Gid, MadAddress, MadAgentOptions, SpiErrorCode } from '../../../core/spi/index.js';
import { MadClass } from '../../../core/spi/mad-header.js';

const { errno } = constants;

/** The device went away under an open file: EIO, before Linux 5.11 EINVAL or EPIPE. */
export const GONE: ReadonlySet<number> = new Set([errno.EIO, errno.ENODEV, errno.EPIPE]);

export function openFailure(number: number, path: string): SpiError {
  if (number === errno.EACCES || number === errno.EPERM) {
    return new SpiError(
      'EACCES',
      `${path}: permission denied; management datagrams are root's unless a udev rule gives them ` +
        'to a group: KERNEL=="umad*", SUBSYSTEM=="infiniband_mad", GROUP="rdma", MODE="0660"',
    );
  }
  if (number === errno.ENOENT) {
    return new SpiError(
      'ENODEV',
      `${path} does not exist: \`modprobe ib_umad\`, or hand it to the container (--device)`,
    );
  }
  if (number === errno.ENXIO || number === errno.ENODEV) {
    return new SpiError('ENODEV', `${path}: the device is being removed`);
  }
  if (number === errno.EMFILE || number === errno.ENFILE) {
    return new SpiError('ENOMEM', `${path}: no more files (\`ulimit -n\`); each agent has one`);
  }
  return other(number, `open of ${path}`);
}

export function registerFailure(
  number: number,
  path: string,
  { managementClass, classVersion }: MadAgentOptions,
): SpiError {
  const what = `class 0x${managementClass.toString(16)} version ${classVersion}`;
  if (number === errno.EINVAL && managementClass === MadClass.CM) {
    return new SpiError(
      'EINVAL',
      `${what}: the agent of connection management is the kernel's own (ib_cm), and there is no ` +
        'second one; connections over verbs go through librdmacm',
    );
  }
  if (number === errno.EINVAL) {
    return new SpiError(
      'EINVAL',
      `${what}: the kernel refuses it; an agent of the kernel's, or of another process, has one ` +
        'of the methods already',
    );
  }
  if (number === errno.EPROTONOSUPPORT || number === errno.EOPNOTSUPP) {
    return new SpiError('EOPNOTSUPP', `${path}: the port has no QP1`);
  }
  if (number === errno.EACCES || number === errno.EPERM) {
    return new SpiError('EACCES', `${path}: a security module refuses an agent for ${what}`);
  }
  if (GONE.has(number)) return new SpiError('ENODEV', `${path}: the device is gone`);
  return other(number, `registering an agent for ${what} at ${path}`);
}

/** A send that the kernel has not taken. */
export function sendFailure(number: number, gid: Gid): SpiError {
  const peer = ipFromGid(gid);
  const unreachable: readonly number[] = [
    errno.EHOSTUNREACH,
    errno.ENETUNREACH,
    errno.ETIMEDOUT,
    errno.ENODATA,
    errno.ENOENT,
  ];
  if (unreachable.includes(number)) {
    const name = nameOf(number);
    return new SpiError(
      'EHOSTUNREACH',
      `${peer} cannot be reached: no route, or no answer (${name})`,
    );
  }
  if (number === errno.EINVAL) {
    return new SpiError(
      'EINVAL',
      `the kernel refuses the datagram to ${peer}: its GID is of no network of the port, or a ` +
        'datagram with this transaction id has not come back yet',
    );
  }
  return other(number, `sending to ${peer}`);
}

/** @throws SpiError('EOPNOTSUPP') */
export function checkQkey({ qkey }: Pick<MadAddress, 'qkey'>): void {
  if (qkey === GSI_QKEY) return;
  throw new SpiError(
    'EOPNOTSUPP',
    `Q_Key 0x${qkey.toString(16)}: the kernel sends management datagrams with that of QP1, ` +
      '0x80010000, only',
  );
}

/** What would come back of a request, the kernel does not recognize. */
export function unmatchable(gid: Gid): SpiError {
  return new SpiError(
    'EOPNOTSUPP',
    `${ipFromGid(gid)}: on RoCE over IPv4 Linux drops every response (ib_mad looks for the ` +
      "sender's GID where the IPv4 header is); ask by an IPv6 address, or with `rmpp: true`",
  );
}

/** What waits for a response, and neither that nor a timeout is told. */
export function silentFailure(gid: Gid): SpiError {
  return new SpiError(
    'EIO',
    `the kernel has dropped a request to ${ipFromGid(gid)} without a word: the peer ended the ` +
      'transfer, or the datagram could not be sent',
  );
}

const CODES: Readonly<Record<number, SpiErrorCode>> = {
  [errno.EINVAL]: 'EINVAL',
  [errno.ENOMEM]: 'ENOMEM',
  [errno.EBUSY]: 'EBUSY',
  [errno.EPERM]: 'EPERM',
  [errno.EACCES]: 'EACCES',
  [errno.ENODEV]: 'ENODEV',
  [errno.EAGAIN]: 'EAGAIN',
  [errno.EINTR]: 'EINTR',
  [errno.EADDRNOTAVAIL]: 'EADDRNOTAVAIL',
  [errno.EOPNOTSUPP]: 'EOPNOTSUPP',
};

function other(number: number, what: string): SpiError {
  return new SpiError(CODES[number] ?? 'EIO', `${what}: ${nameOf(number)}`);
}

function nameOf(number: number): string {
  try {
    return getSystemErrorName(-number);
  } catch {
    return `errno ${number}`;
  }
}
