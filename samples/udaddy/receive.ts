/** Receives the next datagram, which must be one of udaddy's. */
import { type Datagram, type Datagrams, FlowError } from 'dapl/flow';

const STEP_TIMEOUT_MS = 10_000;

/**
 * @param sizeBytes of every message
 * @param timeoutMs undefined to wait without limit, for a service's first message
 * @throws Error if none arrives, or one that is no message of udaddy
 */
export async function receiveOne(
  box: Datagrams,
  sizeBytes: number,
  timeoutMs = STEP_TIMEOUT_MS,
): Promise<Datagram> {
  const datagram = await nextOf(box, timeoutMs);
  if (datagram.immediate === undefined) {
    throw new Error('not a message of udaddy: it has no immediate data');
  }
  if (datagram.lengthBytes === sizeBytes) return datagram;
  throw new Error(`a message of ${datagram.lengthBytes} bytes, not ${sizeBytes}: use -S`);
}

async function nextOf(box: Datagrams, timeoutMs: number): Promise<Datagram> {
  try {
    return await box.receive({ timeoutMs });
  } catch (error) {
    if (!FlowError.isFlowError(error) || error.code !== 'DAT_TIMEOUT_EXPIRED') throw error;
    throw new Error('no more datagrams arrive: some were lost, as datagrams can be', {
      cause: error,
    });
  }
}
