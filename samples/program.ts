/** What a sample is around its work: one adapter, the signals, and one sentence for a failure. */
import { DatError, type Ia, openIa } from 'dapl';
import { providerAt, type ProviderName } from './provider-option.js';

const EXIT_CODES = { SIGINT: 130, SIGTERM: 143 } as const;

/**
 * Runs `work` to its end; then the adapter that it has opened is closed. SIGINT and SIGTERM close
 * it before. A failure is a line on stderr, `NAME: what`, and exit code 1.
 * @param work is given what opens its adapter, on the own address,
 * over softroce unless another provider is named
 */
export async function runProgram(
  name: string,
  work: (open: (address: string, provider?: ProviderName) => Promise<Ia>) => Promise<unknown>,
): Promise<void> {
  let ia: Ia | undefined;
  let interruptedWith: number | undefined;
  for (const [signal, exitCode] of Object.entries(EXIT_CODES)) {
    process.on(signal, () => {
      interruptedWith ??= exitCode;
      void ia?.close('abrupt');
    });
  }
  try {
    await work(async (address, provider = 'softroce') => {
      ia = await openIa(providerAt(provider, address));
      if (interruptedWith !== undefined) throw new Error('interrupted');
      return ia;
    });
  } catch (error) {
    const why = interruptedWith === undefined ? sentenceOf(error) : 'interrupted';
    process.stderr.write(`${name}: ${why}\n`);
    process.exitCode = 1;
  } finally {
    await ia?.close('abrupt');
  }
  if (interruptedWith !== undefined) process.exitCode = interruptedWith;
}

/** What people need of an error: not the call and not the code. */
export function sentenceOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (!DatError.isDatError(error)) return error.message;
  return error.message.replace(`${error.operation}: `, '').replace(/ \[[A-Z_0-9]+\]$/, '');
}
