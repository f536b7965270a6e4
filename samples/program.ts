/**
 * Runs a sample: opens and closes its adapters, handles signals, and prints a failure as one line.
 */
import { DatError, type Ia, openIa } from 'dapl';
import { FlowError } from 'dapl/flow';
import { printable } from './printable.js';
import { providerAt, type ProviderName } from './command-options.js';

const EXIT_CODES = { SIGINT: 130, SIGTERM: 143 } as const;

/**
 * Runs `work`, then closes the adapters that it has opened. SIGINT and SIGTERM close them early. A
 * failure is printed on stderr as one line, `NAME: what`, with exit code 1.
 * @param work receives a function that opens an adapter on a local address, over softroce unless
 * another provider is named
 */
export async function runProgram(
  name: string,
  work: (open: (address: string, provider?: ProviderName) => Promise<Ia>) => Promise<unknown>,
): Promise<void> {
  const opened = new Set<Ia>();
  const closeAll = async (): Promise<void> => {
    await Promise.all([...opened].map((ia) => ia.close('abrupt')));
  };
  let interruptedWith: number | undefined;
  for (const [signal, exitCode] of Object.entries(EXIT_CODES)) {
    process.on(signal, () => {
      interruptedWith ??= exitCode;
      // The end of runProgram closes them too, and reports a failure.
      closeAll().catch(() => undefined);
    });
  }
  try {
    await work(async (address, provider = 'softroce') => {
      const ia = await openIa(providerAt(provider, address));
      for (const other of opened) if (other.isFreed) opened.delete(other);
      opened.add(ia);
      if (interruptedWith !== undefined) throw new Error('interrupted');
      return ia;
    });
  } catch (error) {
    const why = interruptedWith === undefined ? sentenceOf(error) : 'interrupted';
    // It may contain text of the peer.
    process.stderr.write(`${name}: ${printable(why)}\n`);
    process.exitCode = 1;
  } finally {
    await closeAll();
  }
  if (interruptedWith !== undefined) process.exitCode = interruptedWith;
}

/** An error as a sentence for users: without the call and the code. */
export function sentenceOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (FlowError.isFlowError(error)) {
    const { cause } = error;
    return DatError.isDatError(cause) ? sentenceOf(cause) : bare(error);
  }
  return DatError.isDatError(error) ? bare(error) : error.message;
}

function bare({ message, operation }: DatError | FlowError): string {
  return message.replace(`${operation}: `, '').replace(/ \[[A-Z_0-9]+\]$/, '');
}
