/** Connecting to a host: its addresses, one after the other, until one answers. */
import { addressesOf, type OnLookup } from './addresses.js';
import type { ConnectTarget } from './arguments.js';
import { StreamError } from './stream-error.js';
import type { ByteStream, ByteStreamProtocol } from './stream-transport.js';

/**
 * @param signal ends it
 * @throws StreamError, an error of the resolver, or an AggregateError with the code of the first
 * where several addresses were tried, as node:net has it; anything once the signal has fired
 */
export async function connectTo(
  protocol: ByteStreamProtocol,
  target: ConnectTarget,
  signal: AbortSignal,
  onLookup: OnLookup,
): Promise<ByteStream> {
  const { port, localAddress, localPort } = target;
  const addresses = await addressesOf(target, onLookup);
  const errors: Error[] = [];
  for (const address of addresses) {
    signal.throwIfAborted();
    try {
      return await protocol.connect({ address, port, localAddress, localPort, signal });
    } catch (error) {
      errors.push(error as Error);
    }
  }
  throw errorOf(target, errors);
}

function errorOf({ host, port }: ConnectTarget, errors: readonly Error[]): Error {
  const [first] = errors;
  if (first === undefined) {
    const options = { syscall: 'connect', address: host, port, detail: 'it has no address' };
    return new StreamError('EHOSTUNREACH', options);
  }
  if (errors.length === 1) return first;
  const { code } = first as NodeJS.ErrnoException;
  const texts = errors.map(({ message }) => message).join('; ');
  return Object.assign(new AggregateError(errors, texts), { code });
}
