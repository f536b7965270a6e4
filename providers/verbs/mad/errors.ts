/** Meanings of errno values from a umad device, and what may help. */
import { constants } from 'node:os';
import {
  type Gid,
  GSI_QKEY,
  ipFromGid,
  type MadAddress,
  type MadAgentOptions,
  SpiError,
  type SpiErrorCode,
} from '../../../core/spi/index.js';
import { MadClass } from '../../../core/spi/modules/mad-header.js';
import { errnoError, errnoName } from '../system/errno.js';

const { errno } = constants;

/** The device went away under an open file: EIO, before Linux 5.11 EINVAL or EPIPE. */
export const GONE: ReadonlySet<number> = new Set([errno.EIO, errno.ENODEV, errno.EPIPE]);

/** The meaning of some errno values, in a sentence about the request. */
type Meaning = readonly [
  errnos: Iterable<number>,
  code: SpiErrorCode,
  text: (subject: string, number: number) => string,
];

/** @param call for an errno that means nothing in particular */
function failureOf(
  meanings: readonly Meaning[],
  number: number,
  subject: string,
  call: string,
): SpiError {
  const meaning = meanings.find(([errnos]) => [...errnos].includes(number));
  if (meaning === undefined) return errnoError(call, number);
  const [, code, text] = meaning;
  return new SpiError(code, text(subject, number));
}

const OF_OPEN: readonly Meaning[] = [
  [
    [errno.EACCES, errno.EPERM],
    'EACCES',
    (path) =>
      `${path}: permission denied; management datagrams are root's unless a udev rule gives them ` +
      'to a group: KERNEL=="umad*", SUBSYSTEM=="infiniband_mad", GROUP="rdma", MODE="0660"',
  ],
  [
    [errno.ENOENT],
    'ENODEV',
    (path) =>
      `${path} does not exist: \`modprobe ib_umad\`, or hand it to the container (--device)`,
  ],
  [[errno.ENXIO, errno.ENODEV], 'ENODEV', (path) => `${path}: the device is being removed`],
  [
    [errno.EMFILE, errno.ENFILE],
    'ENOMEM',
    (path) => `${path}: no more files (\`ulimit -n\`); each agent has one`,
  ],
];

export function openFailure(number: number, path: string): SpiError {
  return failureOf(OF_OPEN, number, path, `open of ${path}`);
}

const OF_REGISTERING: readonly Meaning[] = [
  [
    [errno.EINVAL],
    'EINVAL',
    (agent) =>
      `${agent}: the kernel refuses it; an agent of the kernel's, or of another process, has one ` +
      'of the methods already',
  ],
  [
    [errno.EPROTONOSUPPORT, errno.EOPNOTSUPP],
    'EOPNOTSUPP',
    (agent) => `${agent}: the port has no QP1`,
  ],
  [
    [errno.EACCES, errno.EPERM],
    'EACCES',
    (agent) => `${agent}: a security module refuses the agent`,
  ],
  [GONE, 'ENODEV', (agent) => `${agent}: the device is gone`],
];

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
  const agent = `${what} at ${path}`;
  return failureOf(OF_REGISTERING, number, agent, `registering an agent for ${agent}`);
}

const OF_SENDING: readonly Meaning[] = [
  [
    [errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ETIMEDOUT, errno.ENODATA, errno.ENOENT],
    'EHOSTUNREACH',
    (peer, number) => `${peer} cannot be reached: no route, or no answer (${errnoName(number)})`,
  ],
  [
    [errno.EINVAL],
    'EINVAL',
    (peer) =>
      `the kernel refuses the datagram to ${peer}: its GID is of no network of the port, or a ` +
      'datagram with this transaction id has not come back yet',
  ],
];

/** A send that the kernel has not taken. */
export function sendFailure(number: number, gid: Gid): SpiError {
  const peer = ipFromGid(gid);
  return failureOf(OF_SENDING, number, peer, `sending to ${peer}`);
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

/** Error for a request whose response the kernel would not recognize. */
export function unmatchable(gid: Gid): SpiError {
  return new SpiError(
    'EOPNOTSUPP',
    `${ipFromGid(gid)}: on RoCE over IPv4 Linux drops every response (ib_mad looks for the ` +
      "sender's GID where the IPv4 header is); ask by an IPv6 address, or with `rmpp: true`",
  );
}

/** Error for a send that waits for a response, when neither that nor a timeout is reported. */
export function silentFailure(gid: Gid): SpiError {
  return new SpiError(
    'EIO',
    `the kernel has dropped a request to ${ipFromGid(gid)} without a word: the peer ended the ` +
      'transfer, or the datagram could not be sent',
  );
}
