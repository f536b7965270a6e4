/** Options for reaching a target, and the connections made from them. */
import { randomBytes, randomInt } from 'node:crypto';
import { hostname } from 'node:os';
import { DatError, type Ia, localAddressToward, openIa } from 'dapl';
import { softroce } from 'dapl/providers/softroce';
import {
  InitiatorMemory,
  IserInitiatorMover,
  type MakeMover,
  TcpInitiatorMover,
} from '../mover/initiator/index.js';
import {
  type Backoff,
  type ChapOptions,
  DEFAULT_TIMES,
  DEFAULT_WISHES,
  ISCSI_PORT,
  IscsiError,
  type SessionTimes,
  type SessionType,
  type Wishes,
} from '../session/initiator/index.js';
import { md5, md5Refusal } from '../mover/system.js';
import { checkName, MIN_CHAP_SECRET_BYTES, WireError } from '../wire/index.js';
import type { ReconnectOptions } from './reconnecting-session.js';

export type TransportName = 'iser' | 'tcp';

export interface ChapSecrets {
  readonly name: string;
  /** Text, or bytes: 12 to 255 of them. */
  readonly secret: string | Uint8Array;
  /** Credentials that the target must prove; without them it need not authenticate. */
  readonly target?: { readonly name: string; readonly secret: string | Uint8Array };
}

export interface PortalOptions {
  /** IP address of the target; over TCP also a host name. */
  readonly address: string;
  /** 1 to 65535, default 3260. */
  readonly port?: number;
  /** Default `iser`. */
  readonly transport?: TransportName;
  /**
   * An open adapter for iSER; default: one of softroce, on the address with a route to the target.
   */
  readonly ia?: Ia;
  /** Local address for iSER without `ia`; default: by route to the target. */
  readonly localAddress?: string;
  /** Default: `iqn.2026-01.io.dapl:` and the name of this machine. */
  readonly initiatorName?: string;
  readonly chap?: ChapSecrets;
  /** Aborts the opening. */
  readonly signal?: AbortSignal;
  /** Timeouts of logins, NOPs and other requests. */
  readonly times?: Partial<SessionTimes>;
  /** Values to offer at login in place of the transport's defaults. */
  readonly wishes?: Partial<Wishes>;
  /** Commands in flight, 1 to 1024; more wait. Default 128. */
  readonly queueDepth?: number;
  /** Backoff for logging in again after a lost session; `attempts: 0` for never. */
  readonly reconnect?: Backoff;
  /** Receives a sentence when a session is lost, and when there is one again. */
  readonly notice?: (what: string) => void;
  /** Clock, timers and randomness; default: those of this process. */
  readonly timing?: Timing;
}

/** The options of a ReconnectingSession, and the resources to free after it. */
export interface Opened {
  readonly options: ReconnectOptions;
  /** Bytes that one command moves at most. */
  readonly maxTransferBytes: number;
  /** Frees adapter and memory, unless they are the caller's. */
  readonly free: () => Promise<void>;
}

/** @throws IscsiError ISCSI_INVALID_PARAMETER; DatError if no adapter can be opened */
export async function prepare(
  given: PortalOptions,
  type: SessionType,
  targetName?: string,
): Promise<Opened> {
  const { address, transport = 'iser', timing = REAL_TIMING, notice, reconnect } = given;
  const port = integer('port', given.port ?? ISCSI_PORT, 1, 65_535);
  const maxTasks = integer('queueDepth', given.queueDepth ?? 128, 1, 1024);
  if (transport !== 'iser' && transport !== 'tcp') {
    throw invalid('transport', String(transport), 'iser or tcp');
  }
  const initiatorName = name('initiatorName', given.initiatorName ?? ownName());
  if (targetName !== undefined) name('target', targetName);
  const wishes = { ...DEFAULT_WISHES[transport], ...given.wishes };
  const times = { ...DEFAULT_TIMES, ...given.times };
  const chap = given.chap === undefined ? undefined : chapOf(given.chap);
  const refusal = chap === undefined ? undefined : md5Refusal();
  if (refusal !== undefined) throw new IscsiError('ISCSI_INVALID_PARAMETER', refusal);
  const isNormal = type === 'Normal';
  const login = {
    initiatorName,
    ...(targetName !== undefined && { targetName }),
    type,
    isid: isidOf(),
    isIser: transport === 'iser' && isNormal,
    wishes,
    ...(chap !== undefined && { chap }),
    tools: {
      md5,
      random: (lengthBytes: number) => new Uint8Array(randomBytes(lengthBytes)),
    },
    initialCmdSn: randomInt(2 ** 32),
  };
  const { makeMover, ...rest } =
    transport === 'tcp'
      ? overTcp(wishes)
      : await overIser(given, { wishes, tasks: isNormal ? maxTasks : 8, times });
  const options: ReconnectOptions = {
    ...{ makeMover, portal: { address, port }, login, times, timing },
    // Requests that are no commands have tags, too.
    maxTasks: maxTasks + 32,
    ...(reconnect !== undefined && { reconnect }),
    ...(notice !== undefined && { notice }),
  };
  return { options, ...rest };
}

interface Transport {
  readonly makeMover: MakeMover;
  readonly maxTransferBytes: Opened['maxTransferBytes'];
  readonly free: Opened['free'];
}

function overTcp(wishes: Wishes): Transport {
  return {
    makeMover: (portal, host) => new TcpInitiatorMover(portal, host, wishes.recvDataSegment),
    maxTransferBytes: Infinity,
    free: async () => undefined,
  };
}

async function overIser(
  { address, localAddress, ia: given }: PortalOptions,
  { wishes, tasks, times }: { wishes: Wishes; tasks: number; times: SessionTimes },
): Promise<Transport> {
  const ia = given ?? (await openAdapter(address, localAddress));
  const memory = new InitiatorMemory(ia);
  const limits = {
    tasks,
    recvDataSegment: wishes.recvDataSegment,
    sendDataSegment: wishes.sendDataSegment,
    connectTimeoutMs: times.loginTimeoutMs,
  };
  return {
    makeMover: (portal, host) => new IserInitiatorMover(portal, host, memory, limits),
    maxTransferBytes: memory.maxBufferBytes,
    free: async () => {
      memory.close();
      if (given === undefined) await ia.close();
    },
  };
}

/** Attempts to find a loopback address that no other program uses. */
const LOOPBACK_ATTEMPTS = 8;

/**
 * Opens an adapter. An address of softroce belongs to one program, so towards loopback a free
 * address near the target's is used.
 */
async function openAdapter(address: string, localAddress: string | undefined): Promise<Ia> {
  const open = (local: string): Promise<Ia> => openIa(softroce({ addresses: [local] }));
  if (localAddress !== undefined) return open(localAddress);
  const [, block] = /^127\.(\d+)\./.exec(address) ?? [];
  if (block === undefined) return open(await localAddressToward(address));
  for (let attempt = 1; ; attempt++) {
    try {
      return await open(`127.${block}.${randomInt(1, 255)}.${randomInt(1, 255)}`);
    } catch (error) {
      const isTaken = DatError.isDatError(error) && error.code === 'DAT_PORT_IN_USE';
      if (!isTaken || attempt === LOOPBACK_ATTEMPTS) throw error;
    }
  }
}

/**
 * An ISID of type "random" (RFC 7143, 11.12.5), so that sessions of this machine do not replace
 * each other.
 */
function isidOf(): Uint8Array {
  const isid = new Uint8Array(randomBytes(6));
  isid[0] = 0x80;
  return isid;
}

function ownName(): string {
  const host = hostname()
    .toLowerCase()
    .replace(/[^a-z0-9.-]/g, '-');
  return `iqn.2026-01.io.dapl:${host}`;
}

function chapOf({ name: own, secret, target }: ChapSecrets): ChapOptions {
  const chap = {
    own: { name: own, secret: secretOf('chap.secret', secret) },
    ...(target !== undefined && {
      target: { name: target.name, secret: secretOf('chap.target.secret', target.secret) },
    }),
  };
  if (chap.target !== undefined && Buffer.compare(chap.own.secret, chap.target.secret) === 0) {
    throw invalid('chap.target.secret', 'that of chap.secret', 'another one (RFC 7143, 9.2.1)');
  }
  return chap;
}

function secretOf(what: string, secret: string | Uint8Array): Uint8Array {
  const bytes = typeof secret === 'string' ? new TextEncoder().encode(secret) : secret;
  if (bytes.length >= MIN_CHAP_SECRET_BYTES && bytes.length <= 255) return bytes;
  throw invalid(what, `of ${bytes.length} bytes`, `of ${MIN_CHAP_SECRET_BYTES} to 255 bytes`);
}

function name(what: string, value: string): string {
  try {
    return checkName(what, value);
  } catch (error) {
    if (!(error instanceof WireError)) throw error;
    throw new IscsiError('ISCSI_INVALID_PARAMETER', error.message, { cause: error });
  }
}

export function integer(what: string, value: number, least: number, most: number): number {
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  throw invalid(what, String(value), `an integer from ${least} to ${most}`);
}

export function invalid(what: string, value: string, limit: string): IscsiError {
  return new IscsiError('ISCSI_INVALID_PARAMETER', `${what} is ${value}, must be ${limit}`);
}

/**
 * Clock, timers and randomness for keeping a session, passed in so that a simulation controls them.
 */
export interface Timing {
  nowMs(): number;
  /** Runs once after so many milliseconds. @returns a function that cancels it */
  after(ms: number, run: () => void): () => void;
  /** 0 up to 1, 1 excluded. */
  random(): number;
}

/** Clock, timers and randomness of this process. */
export const REAL_TIMING: Timing = {
  nowMs: () => performance.now(),
  after: (ms, run) => {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
  random: Math.random,
};
