/** Memory of the peer, as a grant names it. */
import { RemoteSegment } from '../dat/memory/segment.js';
import { checkInteger, checkValue, integer, isU64, kindOf, OBJECT } from '../spi/checks/index.js';
import { FlowError, refusalOf } from './flow-error.js';

/** A grant of the peer as `JSON.parse` returns it, or an address from any other source. */
export interface Remote {
  /** u64: a bigint, or text as `BigInt` reads it: `0x7f0000001000`. */
  readonly address: string | bigint;
  /** u32. */
  readonly rmrContext: number;
  /** Bytes that may be reached from there; absent if only the peer knows. */
  readonly length?: number;
}

const ADDRESS = kindOf<string | bigint>(
  'a bigint, or text such as 0x1000, from 0 to 2^64 - 1',
  (value) => isU64(value) || (typeof value === 'string' && isU64(parsed(value))),
);
const CONTEXT = integer(0, 2 ** 32 - 1);
const MOST = Number.MAX_SAFE_INTEGER;

function parsed(text: string): bigint | undefined {
  return /^(0x[0-9a-f]{1,16}|[0-9]{1,20})$/i.test(text) ? BigInt(text) : undefined;
}

/**
 * The target of a transfer of so many bytes.
 * @param remote a RemoteSegment is used unchanged
 * @throws FlowError DAT_INVALID_PARAMETER; DAT_LENGTH_ERROR outside of what the grant has: nothing
 * is sent then
 */
export function targetOf(
  operation: string,
  remote: Remote | RemoteSegment,
  offset: number,
  lengthBytes: number,
): RemoteSegment {
  if (remote instanceof RemoteSegment && offset === 0) return remote;
  const refuse = refusalOf(operation);
  checkValue('remote', remote, OBJECT, refuse);
  checkInteger('offset', offset, 0, MOST, refuse);
  const { address, rmrContext } = remote;
  checkValue('remote.address', address, ADDRESS, refuse);
  checkValue('remote.rmrContext', rmrContext, CONTEXT, refuse);
  const { length } = remote as Remote;
  if (length !== undefined) {
    checkInteger('remote.length', length, 0, MOST, refuse);
    if (offset + lengthBytes > length) {
      throw new FlowError('DAT_LENGTH_ERROR', {
        operation,
        message: `${lengthBytes} bytes from ${offset} on: the grant has ${length}`,
        value: lengthBytes,
      });
    }
  }
  const segment = new RemoteSegment({ address: BigInt(address), rmrContext });
  if (offset === 0) return segment;
  try {
    return segment.seek(offset);
  } catch (cause) {
    const message = `offset ${offset} from ${String(address)} passes 2^64`;
    throw new FlowError('DAT_INVALID_PARAMETER', { operation, message, value: offset, cause });
  }
}
