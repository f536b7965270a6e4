import assert from 'node:assert/strict';
import { join } from 'node:path';

import type { RunningCommand, RunResult } from '../command.js';
import type { Guest } from '../guest.js';
import type { Lab } from '../lab.js';
import { repositoryRoot } from '../paths.js';
import type { Dissection } from '../tshark.js';
import { checkConversations, sequenceOf } from '../conversation.js';
import { checkCapture } from '../wire-check.js';

/**
 * Runs `body` with a capture on the link of one guest; returns packets that stood every check.
 * @param sequence messages that each connection shows, each once, in the order of their first
 * occurrence, without MRA; by default any that the CM allows
 */
export async function captured(
  lab: Lab,
  guest: Guest,
  name: string,
  body: () => Promise<void>,
  sequence?: RegExp,
): Promise<Dissection[]> {
  const packets = await checkCapture(await recorded(lab, guest, name, body));
  for (const conversation of checkConversations(packets)) {
    // Who is busy may ask for patience in every conversation.
    const messages = sequenceOf(conversation).replace(/ MRA/g, '');
    if (sequence !== undefined) assert.match(messages, sequence, name);
  }
  return packets;
}

/** As `captured`; returns the file, whose packets have stood every check. */
export async function capturedFile(
  lab: Lab,
  guest: Guest,
  name: string,
  body: () => Promise<void>,
): Promise<string> {
  const file = await recorded(lab, guest, name, body);
  await checkCapture(file);
  return file;
}

async function recorded(
  lab: Lab,
  guest: Guest,
  name: string,
  body: () => Promise<void>,
): Promise<string> {
  const capture = await lab.capture(name, guest);
  try {
    await body();
  } finally {
    await capture.stop();
  }
  return capture.file;
}

/** Starts our own end (test/guest/peer) on the host, and does not wait for it. */
export function startPeer(lab: Lab, command: string): RunningCommand {
  const main = join(repositoryRoot, 'dist', 'test', 'guest', 'peer', 'main.js');
  return lab.host.spawn(`exec '${process.execPath}' --enable-source-maps '${main}' ${command}`);
}

/** What a command said, for the message of a failed assertion. */
export function transcript(result: RunResult): string {
  const output = `${result.stdout.slice(-1500)}${result.stderr.slice(-1500)}`;
  return `exit code ${result.code}, signal ${result.signal}: ${output}`;
}
