/** `dapl trace`: runs a program and writes the packets of all devices that it opens into a file. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { constants } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { Command } from 'commander';
import { mergeCaptures } from 'dapl/plugins/pcap';

const DEFAULT_FILE = 'dapl.pcapng';
/** Exit codes of a shell. */
const NOT_FOUND = 127;
const NOT_EXECUTABLE = 126;
const BY_SIGNAL = 128;

export function traceCommand(): Command {
  return new Command('trace')
    .summary('run a program and capture its packets')
    .description(
      'Runs a program and writes the packets of every device that it, or a process that it ' +
        'starts, opens through dapl into a pcapng file for Wireshark. Devices of verbs show no ' +
        'packets: theirs never pass through the program.',
    )
    .option('-o, --output <file>', 'capture file; replaced if it exists', DEFAULT_FILE)
    .argument('<command...>', 'the program and its arguments')
    .passThroughOptions()
    .addHelpText('after', '\nExample:\n  dapl trace -o out.pcapng node my-program.js --size 64')
    .action(async (command: string[], { output }: { output: string }) => {
      process.exitCode = await trace(command, resolve(output));
    });
}

/** @returns the exit code: that of the program, or 128 and its signal */
async function trace(command: readonly string[], output: string): Promise<number> {
  let folder: string;
  try {
    // In the folder of the result: the same disk, and the same permission.
    folder = mkdtempSync(join(dirname(output), '.dapl-trace-'));
  } catch (error) {
    say(error instanceof Error ? error.message : String(error));
    return 1;
  }
  try {
    const exitCode = await run(command, join(folder, '%p.pcapng'));
    const files = readdirSync(folder).sort();
    const { packets, interfaces } = mergeCaptures(
      files.map((name) => join(folder, name)),
      output,
    );
    const devices = `${String(interfaces)} ${interfaces === 1 ? 'device' : 'devices'}`;
    say(
      interfaces === 0
        ? `${output}: empty, the program opened no device whose packets pass through it`
        : `${output}: ${String(packets)} packets of ${devices}`,
    );
    return exitCode;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function run([program = '', ...args]: readonly string[], file: string): Promise<number> {
  const child = spawn(program, args, {
    stdio: 'inherit',
    env: { ...process.env, DAPL_PCAP: file },
  });
  const stopForwarding = forwardSignals(child);
  try {
    return await new Promise<number>((resolved) => {
      child.once('error', (error: NodeJS.ErrnoException) => {
        say(`${program}: ${error.code === 'ENOENT' ? 'no such program' : error.message}`);
        resolved(error.code === 'ENOENT' ? NOT_FOUND : NOT_EXECUTABLE);
      });
      child.once('exit', (code, signal) => {
        resolved(code ?? BY_SIGNAL + (signal === null ? 0 : constants.signals[signal]));
      });
    });
  } finally {
    stopForwarding();
  }
}

/** Ctrl-C reaches the program directly. We wait for its exit, so that the capture is complete. */
function forwardSignals(child: ChildProcess): () => void {
  const stop = (signal: NodeJS.Signals): void => {
    child.kill(signal);
  };
  const wait = (): void => undefined;
  process.on('SIGINT', wait);
  process.on('SIGTERM', stop);
  process.on('SIGHUP', stop);
  return () => {
    process.off('SIGINT', wait);
    process.off('SIGTERM', stop);
    process.off('SIGHUP', stop);
  };
}

function say(line: string): void {
  process.stderr.write(`dapl trace: ${line}\n`);
}
