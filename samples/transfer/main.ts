/**
 * `transfer`: moves a file between two processes with RDMA writes, through the DAT API. Without a
 * subcommand both sides run on this machine.
 */
import { Command, InvalidArgumentError, Option } from 'commander';
import { localAddressToward } from 'dapl';
import { printable } from '../printable.js';
import { type ProviderName, providerOption } from '../command-options.js';
import { demo } from './demo.js';
import { failureOf, TransferFailure } from './failure.js';
import { receiveFile } from './receiver.js';
import { sendFile } from './sender.js';
import { DEFAULT_PORT, SOCKET_KINDS, type SocketKind } from './session.js';
import { report, reportFailure } from './supervision.js';

/** Signals that end a transfer early, as an AbortSignal whose reason is the failure. */
const EXIT_CODES = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;
/** The process exits after this time, even if something hangs. */
const DEADLINE_MS = 3000;

/**
 * Aborts at the first SIGINT, SIGTERM or SIGHUP; later ones change nothing (a terminal and a parent
 * may both send one). The process exits three seconds later at the latest.
 * @param supervised true to end with the parent process, too
 */
function interruptedBySignals(supervised: boolean): AbortSignal {
  const controller = new AbortController();
  const abort = (exitCode: number, what: string): void => {
    if (controller.signal.aborted) return;
    controller.abort(new TransferFailure(what, { exitCode }));
    setTimeout(() => process.exit(exitCode), DEADLINE_MS).unref();
  };
  for (const [name, exitCode] of Object.entries(EXIT_CODES)) {
    process.on(name, () => abort(exitCode, 'Interrupted'));
  }
  if (supervised) {
    process.on('disconnect', () => abort(1, 'The command has been killed'));
    // Listening for the parent's exit must not keep this process alive.
    process.channel?.unref();
  }
  return controller.signal;
}

const RECEIVER = '127.0.0.1';
const SENDER = '127.0.0.2';

const { stdout: out, stderr } = process;
// A reader of our output may close the pipe early (`| head`); the transfer goes on.
for (const stream of [out, stderr]) stream.on('error', () => undefined);

interface Common {
  readonly port: number;
  readonly socket: SocketKind;
  readonly provider: ProviderName;
  readonly supervised?: boolean;
}

interface BothOptions extends Common {
  readonly out?: string;
  readonly from: string;
  readonly to: string;
  readonly force: boolean;
}

interface ReceivingOptions extends Common {
  readonly listen: string;
  readonly out: string;
  readonly force: boolean;
}

/** Runs a command: a failure is one sentence, on stderr or to the supervising process. */
async function run(
  supervised: boolean,
  work: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  try {
    await work(interruptedBySignals(supervised));
  } catch (error) {
    const failure = failureOf(error);
    if (supervised) reportFailure(failure);
    else stderr.write(`${printable(failure.message)}\n`);
    process.exitCode = failure.exitCode;
  }
}

function port(text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= 1 && value <= 65535) return value;
  throw new InvalidArgumentError('A port is a number from 1 to 65535.');
}

/** The local address towards a receiver; the receiver's own if both are on this machine. */
function sourceTowards(to: string): Promise<string> {
  return to.startsWith('127.') ? Promise.resolve(SENDER) : localAddressToward(to);
}

/** Adds the options that every command has. */
function withCommonOptions(command: Command): Command {
  return command
    .option('--port <number>', 'connection qualifier', port, DEFAULT_PORT)
    .addOption(
      new Option('--socket <kind>', 'socket implementation of softroce')
        .choices(SOCKET_KINDS)
        .default('auto'),
    )
    .addOption(providerOption());
}

const supervisedOption = (): Option => new Option('--supervised').hideHelp();
const FORCE = ['--force', 'replace an existing file of that name', false] as const;

const program = withCommonOptions(new Command('transfer'))
  .enablePositionalOptions()
  .description('Move a file between two processes with RDMA writes.')
  .argument('[file]', 'file to send; without one, 256 MiB of random bytes')
  .option('--out <directory>', 'directory for the file (default: "received", if a file is given)')
  .option('--from <address>', 'address of the sending process', SENDER)
  .option('--to <address>', 'address of the receiving process', RECEIVER)
  .option(...FORCE)
  .action((path: string | undefined, options: BothOptions) =>
    run(false, (signal) => demo({ ...options, path, directory: options.out, signal, out })),
  );

withCommonOptions(program.command('receive'))
  .description('receive one file')
  .option('--listen <address>', 'local address', RECEIVER)
  .option('--out <directory>', 'directory for the file', '.')
  .option(...FORCE)
  .addOption(supervisedOption())
  .action((options: ReceivingOptions) => {
    const { listen, port, supervised = false } = options;
    const onListening = (): void => {
      if (supervised) report({ type: 'listening' });
      else out.write(`Listening on ${listen} port ${port}.\n`);
    };
    const directory = options.out;
    return run(supervised, (signal) =>
      receiveFile({ ...options, directory, signal, out, onListening }),
    );
  });

withCommonOptions(program.command('send'))
  .description('send one file')
  .argument('<file>', 'file to send')
  .option('--from <address>', `local address (default: ${SENDER} on loopback, else by route)`)
  .option('--to <address>', 'address of the receiver', RECEIVER)
  .addOption(supervisedOption())
  .action((path: string, options: Common & { from?: string; to: string }) =>
    run(options.supervised ?? false, async (signal) => {
      const from = options.from ?? (await sourceTowards(options.to));
      await sendFile({ ...options, from, path, signal, out });
    }),
  );

await program.parseAsync();
