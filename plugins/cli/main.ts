#!/usr/bin/env node
/** The `dapl` command. Each of its commands is a file in commands/. */
import { createRequire } from 'node:module';
import { Command } from 'commander';
import { forwardCommand } from './commands/forward.js';
import { infoCommand } from './commands/info.js';
import { iserInitiatorCommand } from './commands/iser-initiator.js';
import { iserTargetCommand } from './commands/iser-target.js';
import { labCommand } from './commands/lab.js';
import { testCommand } from './commands/test.js';
import { traceCommand } from './commands/trace.js';

// A reader of our output may close the pipe early (`| head`).
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);

const { version } = createRequire(import.meta.url)('dapl/package.json') as { version: string };

/** In the order of the help. */
const COMMANDS = [
  infoCommand,
  testCommand,
  traceCommand,
  labCommand,
  forwardCommand,
  iserTargetCommand,
  iserInitiatorCommand,
];

const program = new Command('dapl')
  .description('RDMA for Node.js, the DAT way.')
  .version(version)
  .enablePositionalOptions() // the options behind a traced program are the program's
  .showHelpAfterError('("dapl --help" lists the commands)');
for (const make of COMMANDS) program.addCommand(make());

try {
  await program.parseAsync();
} catch (error) {
  process.stderr.write(`dapl: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
