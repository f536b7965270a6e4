/**
 * Runs a sample: opens and closes its adapters, handles signals, and prints a failure as one line.
 */
import { DatError, type Ia, openIa } from 'dapl';
import { FlowError } from 'dapl/flow';
import { printable } from './printable.js';
import { providerAt, type ProviderName } from './provider-option.js';

const EXIT_CODES = { SIGINT: 130, SIGTERM: 143 } as const;

/**
 * Runs `work` to its end; then the adapters that it has opened are closed. SIGINT and SIGTERM close
 * them before. A failure is a line on stderr, `NAME: what`, and exit code 1.
 * @param work is given what opens an adapter, on the own address,
 * over softroce unless another provider is named
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
      // What fails is told at the end, which closes them too.
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
    // It may have words of the peer's in it.
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
