/** The commands of `dapl`, in the order of its help: one file each. */
import type { Command } from 'commander';
import { forwardCommand } from './forward.js';
import { infoCommand } from './info.js';
import { iserInitiatorCommand } from './iser-initiator.js';
import { iserTargetCommand } from './iser-target.js';
import { testCommand } from './test.js';
import { traceCommand } from './trace.js';

export const commands: readonly (() => Command)[] = [
  infoCommand,
  testCommand,
  traceCommand,
  forwardCommand,
  iserTargetCommand,
  iserInitiatorCommand,
];
