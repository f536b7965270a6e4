/** Lists the targets of a portal, and the disks of a target. */
import { type DiscoveredTarget, readTargets } from '../session/initiator/index.js';
import { readLuns } from '../wire/index.js';
import * as commands from './commands.js';
import { ReconnectingSession } from './reconnecting-session.js';
import { type PortalOptions, prepare } from './options.js';

/** Bytes of the longest list of LUNs: 256 of them. */
const LUN_LIST_BYTES = 8 + 8 * 256;

/** A session is made once, and not again when it is lost. */
async function during<T>(
  given: PortalOptions,
  target: string | undefined,
  work: (session: ReconnectingSession) => Promise<T>,
): Promise<T> {
  const type = target === undefined ? 'Discovery' : 'Normal';
  const { options, free } = await prepare(given, type, target);
  const session = new ReconnectingSession({ ...options, reconnect: NEVER });
  try {
    await session.start(given.signal);
    return await work(session);
  } finally {
    await session.close();
    await free();
  }
}

const NEVER = { firstMs: 0, mostMs: 0, attempts: 0 } as const;

/**
 * The targets of a portal (SendTargets=All in a discovery session).
 * @throws IscsiError, as a rejection
 */
export function discover(options: PortalOptions): Promise<DiscoveredTarget[]> {
  return during(options, undefined, async (session) =>
    readTargets(await session.text([['SendTargets', 'All']])),
  );
}

/** Lists the LUNs of a target. @throws IscsiError, as a rejection */
export function listLuns(options: PortalOptions & { target: string }): Promise<number[]> {
  return during(options, options.target, async (session) => {
    const dataIn = new Uint8Array(LUN_LIST_BYTES);
    const command = commands.luns(dataIn, {});
    const answer = await session.execute(command);
    commands.checkStatus(command, answer);
    return readLuns(dataIn.subarray(0, answer.transferredBytes));
  });
}
