/** What `dapl` can do, in the order of its help: a file a command. */
import type { Command } from 'commander';
import { forwardCommand } from './forward.js';
import { infoCommand } from './info.js';
import { testCommand } from './test.js';
import { traceCommand } from './trace.js';

export const commands: readonly (() => Command)[] = [
  infoCommand,
  testCommand,
  traceCommand,
  forwardCommand,
];
