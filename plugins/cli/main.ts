#!/usr/bin/env node
/** The `dapl` command: one file a subcommand. */
import { createRequire } from 'node:module';
import { Command } from 'commander';
import { traceCommand } from './trace.js';

const { version } = createRequire(import.meta.url)('dapl/package.json') as { version: string };

await new Command('dapl')
  .description('RDMA for Node.js, the DAT way')
  .version(version)
  .enablePositionalOptions()
  .showHelpAfterError('(dapl --help lists the commands)')
  .addCommand(traceCommand())
  .parseAsync();
