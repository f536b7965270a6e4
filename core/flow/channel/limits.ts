/** Limits that one side of a channel offers: its options, and their exchange on connecting. */
import { CmPrivateData } from '../../spi/index.js';
import {
  BYTES,
  checkOptions,
  integer,
  type Kinds,
  optional,
  type Refuse,
} from '../../spi/checks/index.js';
import type { Connection } from '../connection.js';
import { invalidState, refusalOf } from '../flow-error.js';
import type { ListenRequest } from '../options.js';
import {
  ANNOUNCEMENT_BYTES,
  announcementOf,
  type ChannelLimits,
  MAX_BUFFER_BYTES,
  MAX_BUFFERS,
  MAX_MESSAGE_BYTES,
  MIN_BUFFER_BYTES,
  MIN_BUFFERS,
  readAnnouncement,
} from './announcement.js';

export type ChannelOptions = Partial<ChannelLimits>;

const KINDS: Kinds<ChannelLimits> = {
  buffers: optional(integer(MIN_BUFFERS, MAX_BUFFERS)),
  bufferBytes: optional(integer(MIN_BUFFER_BYTES, MAX_BUFFER_BYTES)),
  maxMessageBytes: optional(integer(1, MAX_MESSAGE_BYTES)),
};
const DEFAULTS: ChannelLimits = { buffers: 32, bufferBytes: 16_384, maxMessageBytes: 16 << 20 };
const NO_PRIVATE_DATA = new Uint8Array(0);
/** Start of the private data that a refused peer reads: `channel: …`. */
const REFUSAL_PREFIX = 'channel: ';

/** @throws FlowError DAT_INVALID_PARAMETER */
export function limitsOf(operation: string, options: ChannelOptions): ChannelLimits {
  checkOptions(options, KINDS, refusalOf(operation));
  return { ...DEFAULTS, ...options };
}

/** Options for `connect` or `listen`. */
interface ChannelReceives {
  readonly receives: {
    readonly buffers: number;
    readonly bufferBytes: number;
    readonly lend: true;
  };
  readonly maxMessageBytes: number;
}

function receivesOf({ buffers, bufferBytes }: ChannelLimits): ChannelReceives {
  return { receives: { buffers, bufferBytes, lend: true }, maxMessageBytes: MAX_BUFFER_BYTES };
}

/**
 * Options of `connect` for a channel: `connect(ia, { address, port, ...offerChannel() })`.
 * @param privateData the consumer's own, behind the announcement: at most 36 bytes
 * @throws FlowError DAT_INVALID_PARAMETER
 */
export function offerChannel(
  options: ChannelOptions = {},
  privateData: Uint8Array = NO_PRIVATE_DATA,
): ChannelReceives & { readonly privateData: Uint8Array } {
  const operation = 'offerChannel';
  const limits = limitsOf(operation, options);
  checkOptions({ privateData }, { privateData: BYTES }, refusalOf(operation));
  const most = CmPrivateData.REQ - ANNOUNCEMENT_BYTES;
  if (privateData.length > most) {
    throw refusalOf(operation)('privateData.length', privateData.length, `at most ${most}`);
  }
  return { ...receivesOf(limits), privateData: joined(announcementOf(limits), privateData) };
}

/**
 * Options of `listen` for channels: `listen(ia, { port, ...acceptChannel() })`. A request that
 * announces no channel, or no supported version, is refused with the reason as text.
 * @throws FlowError DAT_INVALID_PARAMETER
 */
export function acceptChannel(
  options: ChannelOptions = {},
): ChannelReceives & { readonly answer: (request: ListenRequest) => Uint8Array | undefined } {
  const limits = limitsOf('acceptChannel', options);
  const announcement = announcementOf(limits);
  const answer = (request: ListenRequest): Uint8Array | undefined => {
    try {
      readAnnouncement(request.privateData);
      return announcement;
    } catch (error) {
      const reason = `${REFUSAL_PREFIX}${(error as Error).message}`;
      const text = new TextEncoder().encode(reason).subarray(0, CmPrivateData.REJ);
      return request.refuse(text);
    }
  };
  return { ...receivesOf(limits), answer };
}

/**
 * The limits that this side has announced on a connection: the peer relies on them.
 * @param options limits that the consumer counts on
 * @throws FlowError DAT_INVALID_STATE without an announcement; DAT_INVALID_PARAMETER for limits, or
 * receives of the connection, that are not those
 */
export function announcedLimits(
  operation: string,
  { sentPrivateData, receives }: Connection,
  options: ChannelOptions,
): ChannelLimits {
  const refuse = refusalOf(operation);
  checkOptions(options, KINDS, refuse);
  const announced = ownAnnouncement(operation, sentPrivateData);
  const { buffers, bufferBytes } = announced;
  checkSame(options, announced, (...about) => refuse(...about));
  const posted = { buffers, bufferBytes, lend: true };
  checkSame(receives, posted, (name, ...about) => refuse(`conn.receives.${name}`, ...about));
  return announced;
}

function ownAnnouncement(operation: string, sent: Uint8Array): ChannelLimits {
  try {
    const { buffers, bufferBytes, maxMessageBytes } = readAnnouncement(sent);
    return { buffers, bufferBytes, maxMessageBytes };
  } catch {
    throw invalidState(operation, 'the connection was made without offerChannel or acceptChannel');
  }
}

function checkSame<T extends object>(given: Partial<T>, announced: T, refuse: Refuse): void {
  for (const [name, value] of Object.entries(given)) {
    const wanted = (announced as Readonly<Record<string, unknown>>)[name];
    if (value !== undefined && value !== wanted) {
      throw refuse(name, value, `${String(wanted)}, as was announced to the peer`);
    }
  }
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array {
  const both = new Uint8Array(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
}
